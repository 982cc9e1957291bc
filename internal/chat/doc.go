// Package chat holds the words that every other part of Chorus speaks: who talks
// (participant), on whose authority (principal), where (thread), what is said
// (blocks), what has happened (event) and what comes in (inbound).
//
// It promises to import nothing else of Chorus, to do no I/O, and that its closed
// sets (blocks, event bodies, live pieces) stay closed: a switch over all kinds
// is complete.
package chat
