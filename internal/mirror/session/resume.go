package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// Resume picks the part of an old conversation with which the new one begins:
//
//	full     everything
//	last-N   from the Nth last user message on
//	summary  one user message that says how much there was, made without a model
//
// Any other mode is full, with a warning (warn may be nil).
func Resume(lines []chat.Line, mode string, warn func(string)) []chat.Line {
	switch n, ok := lastN(mode); {
	case ok:
		return last(lines, n)
	case mode == "summary":
		return summary(lines)
	case mode != "full" && mode != "" && warn != nil:
		warn(fmt.Sprintf("unknown resume mode %.40q: want full, last-N (N from 1) or summary; resuming in full", mode))
	}
	return lines
}

// ValidMode reports whether Resume knows the mode.
func ValidMode(mode string) bool {
	_, ok := lastN(mode)
	return ok || mode == "full" || mode == "summary"
}

func lastN(mode string) (int, bool) {
	digits, ok := strings.CutPrefix(mode, "last-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && digits[0] != '+'
}

func last(lines []chat.Line, n int) []chat.Line {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Role != "user" {
			continue
		}
		if n--; n == 0 {
			return lines[i:]
		}
	}
	return lines
}

// maxLastPrompt is how much of the last prompt a summary quotes.
const maxLastPrompt = 80

func summary(lines []chat.Line) []chat.Line {
	if len(lines) == 0 {
		return nil
	}
	var users, answers, calls int
	var tools []string
	var prompt string
	newest := lines[len(lines)-1]
	for _, l := range lines {
		switch l.Role {
		case "user":
			users++
			prompt = l.Blocks.Text()
		case "assistant":
			answers++
			for _, c := range l.Blocks.Calls() {
				calls++
				tools = append(tools, c.Name)
			}
		}
	}
	slices.Sort(tools)
	said := fmt.Sprintf("Summary of the earlier session: %d user messages, %d assistant messages, %d tool calls.", users, answers, calls)
	if tools = slices.Compact(tools); len(tools) > 0 {
		said += " Tools used: " + strings.Join(tools, ", ") + "."
	}
	if prompt != "" {
		said += " Last prompt: " + text.Clip(strings.Join(strings.Fields(prompt), " "), maxLastPrompt)
	}
	return []chat.Line{{Role: "user", From: chat.Participant{Kind: chat.System}, At: newest.At, Blocks: chat.TextBlocks(said)}}
}
