// Package nodestest has stories of several nodes that work on one
// database: what is done on one is visible on all.
package nodestest
