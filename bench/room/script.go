// Package room measures what a long conversation of several people costs: how much
// of each prompt providers find in their caches, and how long a prompt takes to build.
//
// It promises real parts: the store on a disk, the engine, a provider's own wire
// format against the simulator, whose prefix cache does the counting.
package room

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// People are the six who talk; Bot answers them.
var People = []string{"Ada", "Bela", "Carmen", "Dov", "Emre", "Fumi"}

// Bot is the agent's name in the room.
const Bot = "Chorus"

// Line is one message of the script. With Asks set the agent answers next.
type Line struct {
	From, Text string
	Asks       bool
	Answer     string // what it then says
}

// The script's size, its answers included.
const (
	Messages = 500
	Answers  = 60
)

// Script is always the same conversation: 500 messages, 60 of them the agent's
// answers of at most 200 tokens.
func Script() []Line {
	r := rand.New(rand.NewPCG(3, 14))
	said := Messages - Answers
	lines := make([]Line, said)
	for i := range lines {
		lines[i] = Line{From: People[r.IntN(len(People))], Text: prose(r, 4+r.IntN(40))}
		// Spread evenly: the k-th answer comes after its share of what is said.
		if (i+1)*Answers/said > i*Answers/said {
			lines[i].Asks, lines[i].Answer = true, prose(r, 10+r.IntN(110))
		}
	}
	return lines
}

var words = strings.Fields(`the a room window people talk about moving north because of long cold summers and nobody knows where
	the key was left when we last spoke of it but maybe somebody wrote down which train goes there before noon or after
	dinner with bread soup apples and one small lamp that still burns near the door`)

func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String() + "."
}

// system is as long as the prompt and the tools of the plain agent together.
func system() string {
	r := rand.New(rand.NewPCG(1, 1))
	return fmt.Sprintf("You are %s, one of several people in a room. %s", Bot, prose(r, 1150))
}
