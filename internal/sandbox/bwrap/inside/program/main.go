// Command program is process 1 of a sandbox. It is built to be small and embedded in
// Chorus, so that a sandbox that waits for its next command costs little.
package main

import "chorus/internal/sandbox/bwrap/inside"

func main() { inside.Main() }
