// Package webtest looks at the web pages the way people do: in a real browser, against a
// whole server. It has no code of its own beside its tests.
//
// They promise that each thing people do on the pages works, that nothing is lost or
// shown twice whatever happens to the connection, that nothing anybody wrote runs, and
// that no page asks its browser for anything the policy forbids.
package webtest
