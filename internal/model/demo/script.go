package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// verb is a directive's first word.
type verb string

const (
	vSay   verb = "say"
	vThink verb = "think"
	vCall  verb = "call"
	vSlow  verb = "slow"
	vChunk verb = "chunk"
	vUsage verb = "usage"
	vStop  verb = "stop"
	vFail  verb = "fail"
	vCut   verb = "cut"
	vWait  verb = "wait"
	vEnd   verb = "end"
)

var verbs = []verb{vSay, vThink, vCall, vSlow, vChunk, vUsage, vStop, vFail, vCut, vWait, vEnd}

// directive is one line of a script.
type directive struct {
	verb  verb
	text  string // say, think; arguments of call
	tool  string
	wait  time.Duration // slow; retry-after of fail
	n     int           // chunk; how often fail fails (0: always)
	usage chat.Usage
	stop  chat.Stop
	kind  model.ErrorKind
	line  int
}

// script is a list of steps, each a list of directives.
type script [][]directive

// step returns the k-th step (from 0) and whether there is one.
func (s script) step(k int) ([]directive, bool) {
	if k < 0 || k >= len(s) {
		return nil, false
	}
	return s[k], true
}

// findScript looks for a script in a user's message. With whole, a message whose first line is
// a directive also counts. Without a script it returns nil and no error.
func findScript(text string, whole bool) (script, error) {
	if lines, at, ok := fenced(text); ok {
		return parse(lines, at)
	}
	lines := strings.Split(text, "\n")
	var marked []string
	found := false
	for _, line := range lines {
		trimmed := afterName(strings.TrimSpace(line))
		if rest, ok := strings.CutPrefix(trimmed, "!"); ok && isDirective(rest) {
			marked, found = append(marked, rest), true
		} else {
			marked = append(marked, "")
		}
	}
	if found {
		return parse(marked, 1)
	}
	if whole {
		for i, line := range lines {
			bare := strings.TrimSpace(line)
			if bare == "" || strings.HasPrefix(bare, "#") {
				continue
			}
			if bare = afterName(bare); !isDirective(bare) {
				return nil, nil
			}
			lines[i] = bare
			return parse(lines, 1)
		}
	}
	return nil, nil
}

// fenced extracts the lines between ```demo and ```. at is the number of the first.
func fenced(text string) (lines []string, at int, ok bool) {
	all := strings.Split(text, "\n")
	start := slices.IndexFunc(all, func(l string) bool {
		l = strings.TrimSpace(l)
		return l == "```demo" || l == "```script"
	})
	if start < 0 {
		return nil, 0, false
	}
	lines = all[start+1:]
	if end := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "```" }); end >= 0 {
		lines = lines[:end]
	}
	return lines, start + 2, true
}

// afterName drops the "ada: " that a room puts before what somebody said.
func afterName(line string) string {
	name, rest, ok := strings.Cut(line, ": ")
	if !ok || name == "" || len(name) > 40 || strings.ContainsAny(name, " !{") {
		return line
	}
	return strings.TrimSpace(rest)
}

func isDirective(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return word == "---" || slices.Contains(verbs, verb(word))
}

// parse parses lines into steps. at is the first line's number, for messages.
func parse(lines []string, at int) (script, error) {
	var steps script
	var step []directive
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimPrefix(line, "!")
		d, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("script line %d: %w", at+i, err)
		}
		d.line = at + i
		if d.verb == vEnd {
			steps = append(steps, step)
			step = nil
			continue
		}
		step = append(step, d)
	}
	if step != nil || steps == nil {
		steps = append(steps, step)
	}
	return steps, nil
}

func parseLine(line string) (directive, error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	d := directive{verb: verb(word)}
	var err error
	switch d.verb {
	case vSay, vThink:
		d.text = strings.ReplaceAll(rest, `\n`, "\n")
	case vCall:
		d.tool, d.text, _ = strings.Cut(rest, " ")
		d.text = strings.TrimSpace(d.text)
		if d.tool == "" {
			err = fmt.Errorf("call needs the name of a tool: call read {\"path\":\"README.md\"}")
		}
	case vSlow:
		d.wait, err = duration(rest)
	case vChunk:
		if d.n, err = strconv.Atoi(rest); err != nil || d.n < 1 {
			err = fmt.Errorf("chunk needs a number of characters, not %q", rest)
		}
	case vUsage:
		d.usage, err = parseUsage(rest)
	case vStop:
		d.stop, err = parseStop(rest)
	case vFail:
		err = d.parseFail(rest)
	case vCut, vWait, vEnd:
	default:
		if word == "---" {
			return directive{verb: vEnd}, nil
		}
		err = fmt.Errorf("no directive %q; there are say, think, call, slow, chunk, usage, stop, fail, cut, wait, end", word)
	}
	return d, err
}

func (d *directive) parseFail(rest string) error {
	words := strings.Fields(rest)
	if len(words) == 0 {
		return fmt.Errorf("fail needs a kind, for example: fail overloaded once")
	}
	kinds := []model.ErrorKind{model.Auth, model.RateLimited, model.Overloaded, model.TooLong, model.Refused, model.Network, model.BadRequest}
	d.kind = model.ErrorKind(words[0])
	if !slices.Contains(kinds, d.kind) {
		return fmt.Errorf("no kind of failure %q; there are %v", words[0], kinds)
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		var err error
		switch {
		case words[0] == "once":
			d.n = 1
			continue
		case words[0] == "retry-after" && len(words) > 1:
			d.wait, err = duration(words[1])
		case words[0] == "times" && len(words) > 1:
			if d.n, err = strconv.Atoi(words[1]); err != nil || d.n < 1 {
				err = fmt.Errorf("times needs a number, not %q", words[1])
			}
		default:
			err = fmt.Errorf("fail does not know %q; it takes retry-after DURATION, once, times N", words[0])
		}
		if err != nil {
			return err
		}
		words = words[1:]
	}
	return nil
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 50ms or 2s", s)
	}
	return d, nil
}

func parseUsage(s string) (chat.Usage, error) {
	var u chat.Usage
	fields := map[string]*int{"in": &u.Input, "out": &u.Output, "read": &u.CacheRead, "write": &u.CacheWrite}
	for word := range strings.FieldsSeq(s) {
		name, value, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(value)
		if fields[name] == nil || err != nil || n < 0 {
			return u, fmt.Errorf("usage takes in=N out=N read=N write=N, not %q", word)
		}
		*fields[name] = n
	}
	return u, nil
}

func parseStop(s string) (chat.Stop, error) {
	stops := []chat.Stop{chat.StopEnd, chat.StopTools, chat.StopLength, chat.StopSeq, chat.StopRefused}
	if !slices.Contains(stops, chat.Stop(s)) {
		return "", fmt.Errorf("no reason to stop %q; there are %v", s, stops)
	}
	return chat.Stop(s), nil
}
