// Package webtest tests the web pages in a real browser against a whole server. It contains
// tests only.
//
// They check that everything people can do on the pages works, that nothing is lost or shown
// twice whatever happens to the connection, that no text of users or models is executed, and
// that no page violates the content security policy.
package webtest
