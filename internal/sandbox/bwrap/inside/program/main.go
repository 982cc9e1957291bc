// Command program is process 1 of a sandbox. It is built small and put into Chorus, so that a
// sandbox that waits for its next command costs little.
package main

import "chorus/internal/sandbox/bwrap/inside"

func main() { inside.Main() }
