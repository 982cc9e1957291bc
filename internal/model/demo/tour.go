package demo

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"chorus/internal/chat"
)

// tour is a request that takes the guide several steps. The next step follows from the results so
// far, so a tour continues after a restart and ends with what really happened.
type tour struct {
	ask  *regexp.Regexp
	next func(t talk, done []outcome) []directive
}

// outcome is a result since the request.
type outcome struct {
	text   string
	failed bool
}

var tours = sync.OnceValue(func() []tour {
	return []tour{
		{regexp.MustCompile(`(?i)\b(?:fix|mend|repair)\b.*\b(?:tests?|bug)\b`), fixTheTest},
		{regexp.MustCompile(`(?i)\b(?:explain|describe|what does|what is)\b.*\b(?:project|repository|repo)\b`), explainProject},
		{regexp.MustCompile(`(?i)^(?:please\s+)?(?:try|do)\s+something\s+(?:dangerous|forbidden)\b`), tryDanger},
		{regexp.MustCompile(`(?i)^(?:why\b|what\b.*\bcosts?\b|how much\b)`), lookBackTour},
	}
})

// toured returns the next step of the tour that the newest words ask for, if any.
func (t talk) toured(prompt string) ([]directive, bool) {
	wish := strings.TrimSpace(prompt)
	// A request is one line. What another guide says, with its list of requests,
	// does not count: two guides in a room would go on forever.
	if t.Tools["read"] == nil || t.Tools["bash"] == nil || strings.Contains(wish, "\n") {
		return nil, false
	}
	for _, w := range tours() {
		if w.ask.MatchString(wish) {
			return w.next(t, t.outcomes()), true
		}
	}
	return nil, false
}

// saidNo reports whether somebody who was asked refused.
func (o outcome) saidNo() bool { return strings.HasPrefix(o.text, "denied by ") }

// outcomes returns the results since somebody spoke.
func (t talk) outcomes() []outcome {
	var out []outcome
	for _, m := range t.Messages {
		if m.said() != "" {
			out = nil
		}
		for _, b := range m.Blocks {
			if r, ok := b.(chat.ToolResult); ok {
				out = append(out, outcome{turn{Blocks: chat.Blocks{r}}.resultText(), r.Failed})
			}
		}
	}
	return out
}

// calling returns a sentence and a call.
func calling(lead, tool string, args map[string]string) []directive {
	data, _ := json.Marshal(args) // strings always encode
	return append(saying(lead), directive{verb: vCall, tool: tool, text: string(data)})
}

const (
	sampleBug = "share=$((cents / people))\nwhile [ \"$people\" -gt 0 ]; do\n\techo \"$share\"\n"
	sampleFix = "while [ \"$people\" -gt 0 ]; do\n\tshare=$((cents / people)) # of what is left, so that not a cent is lost\n\techo \"$share\"\n\tcents=$((cents - share))\n"
	noSample  = "I can fix only one bug, the one in the sample project. Pick a suggestion on the start page, or create the project with `chorus sample`."
)

// lookBack tells a newcomer where to see how answers came about and what they used.
const lookBack = "`/why` explains an answer, with the rule behind every call (in a shell: `chorus thread why`). " +
	"`/cost` shows what it used, and so do the *Costs* page and `chorus cost`: tokens but no money, because I am built in and not a language model."

var runTests = map[string]string{"command": "sh test.sh", "description": "run the tests"}

// fixTheTest runs the tests of the sample project, finds its bug, fixes it and runs them again.
func fixTheTest(t talk, done []outcome) []directive {
	last := outcome{}
	if len(done) > 0 {
		last = done[len(done)-1]
	}
	switch len(done) {
	case 0:
		return calling("First I run the tests to see what fails. Commands need your approval.", "bash", runTests)
	case 1:
		switch {
		case strings.Contains(last.text, " 0 failed"):
			return saying("All tests pass, so there is nothing to fix.")
		case last.saidNo():
			return saying("You denied the command, so nothing ran. Say *fix the failing test* again when you want to see it.")
		case !strings.Contains(last.text, "together they pay"):
			return saying("The tests did not run. The tool said:\n\n" + clip(last.text) + "\n\n" + noSample)
		}
		return calling("Some bills do not add up: cents get lost. I will read the program.", "read", map[string]string{"path": "split.sh"})
	case 2:
		if last.failed || !strings.Contains(last.text, "share=$((cents / people))") {
			return saying("This is not the program I know how to fix.\n\n" + noSample)
		}
		return calling("Found it: every share is rounded down, and nobody pays the remainder. Each person must pay their part of what is left.", "edit",
			map[string]string{"path": "split.sh", "old_string": sampleBug, "new_string": sampleFix})
	case 3:
		if last.failed {
			return saying("The edit failed. The tool said:\n\n" + clip(last.text))
		}
		return calling("Now I run the tests again.", "bash", runTests)
	}
	if last.saidNo() {
		return saying("The edit is made but not tested, because you denied the command. Run `sh test.sh` to test it.")
	}
	if !strings.Contains(last.text, " 0 failed") {
		return saying("The edit is made, but the tests still fail:\n\n" + clip(last.text))
	}
	return saying("**Fixed.** All tests pass now.\n\n" +
		"- *The bug*: `split.sh` rounded every share down, so 1000 cents for 3 people came to 999.\n" +
		"- *The fix*: each person pays their part of what is left. The edit above shows the difference.\n" +
		"- *What to look at next*: " + lookBack + "\n\n" + keyHint)
}

// explainProject lists the files and reads the README.
func explainProject(t talk, done []outcome) []directive {
	switch {
	case len(done) == 0:
		step := calling("I will look at what is here.", "list_files", map[string]string{})
		return append(step, calling("", "read", map[string]string{"path": "README.md"})[1])
	case len(done) < 2:
		return saying(showResult(done[0].text, done[0].failed))
	case done[1].failed:
		return saying("There is no README.md. These files are here:\n\n" + code(done[0].text) + "\n" + keyHint)
	}
	return saying("These files are here:\n\n" + code(done[0].text) + "\nand the README says:\n\n" + quote(done[1].text) +
		"\nThat is all I can say, because I am the built-in guide and not a language model. " + keyHint)
}

// tryDanger shows that some things are refused whoever asks.
func tryDanger(t talk, done []outcome) []directive {
	if len(done) == 0 {
		return calling("I will try to remove your home folder. Watch what happens.", "bash", map[string]string{"command": "rm -rf ~", "description": "remove the home folder"})
	}
	if !done[0].failed {
		return saying("It was not refused! Check `chorus doctor` and your permissions before you continue.")
	}
	return saying("It was refused before anything ran, and no approval could have allowed it:\n\n" + code(done[0].text) +
		"\nOther commands wait for your approval, and what you always allow becomes a rule you can read. `chorus permit explain 'COMMAND'` shows what would happen to any command, and why.")
}

// lookBackTour says where to look, which needs no tool.
func lookBackTour(talk, []outcome) []directive {
	return saying("Chorus can tell you that better than I can: " + lookBack)
}

// clip returns about a screen of a result as a code block.
func clip(text string) string {
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "\n…"
	}
	return code(text)
}

func code(text string) string { return "```text\n" + strings.TrimSpace(text) + "\n```\n" }

// quote returns a file that was read as a quotation, without line numbers.
func quote(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if number, rest, ok := strings.Cut(line, "\t"); ok && strings.Trim(number, " 0123456789") == "" {
			line = rest
		}
		out.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
	}
	return out.String()
}
