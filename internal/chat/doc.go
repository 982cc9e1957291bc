// Package chat defines the types that every other part of Chorus uses: who talks
// (participant), on whose authority (principal), where (thread), what is said (blocks),
// what has happened (event) and what comes in (inbound).
//
// It does no I/O and, apart from package text and package pattern, imports
// nothing else of Chorus. Its sets of types (blocks, event bodies, live pieces)
// are closed: a switch over all kinds is complete.
package chat
