package background

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/pattern"
)

// Instructions in plain language are parsed with a small grammar: each sentence says when,
// and what then. So the same words always mean the same, cost nothing, and can be shown
// before anything runs. A model may read what the grammar does not understand (see Read); the
// result only takes effect once somebody has seen it.

const subject = `(?:it|this|that|the output|the log|(?:the|this|my) [\w-]+(?: [\w-]+)?)`

var (
	whenOutput = pattern.Lazy(`(?i)\b(?:when|whenever|if|once|as soon as|every time|each time)\s+` + subject +
		`\s+(?:prints?|says?|outputs?|logs?|shows?|writes?|contains?|has|match(?:es)?)\s+(?:"([^"]+)"|'([^']+)'|“([^”]+)”|/((?:[^/\\]|\\.)+)/)`)
	whenTimeout = pattern.Lazy(`(?i)\b(?:after|(?:when|if|once)\s+` + subject + `\s+(?:still runs|is still running|is not done|is not over|isn't done|has not (?:ended|finished)|hasn't (?:ended|finished)|` +
		`(?:takes|runs|needs) (?:for )?(?:longer|more) than)(?:\s+(?:after|for))?)\s+(\d+(?:\.\d+)?)\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)\b`)
	whenFailure = pattern.Lazy(`(?i)\b(?:when|if|once|should)\s+` + subject + `\s+(?:fails?|crash(?:es)?|breaks?|dies|goes wrong|(?:exits|ends|stops) (?:with an error|badly|with a failure|unsuccessfully))`)
	whenSuccess = pattern.Lazy(`(?i)\b(?:when|if|once|should)\s+` + subject + `\s+(?:succeeds?|pass(?:es)?|works?|is successful|(?:exits|ends|finishes|completes) (?:well|cleanly|successfully|without an? error|with (?:exit )?code 0))`)
	whenExit    = pattern.Lazy(`(?i)\b(?:when|if|once|as soon as)\s+` + subject + `\s+(?:exits?|ends?|finish(?:es)?|completes?|stops?|is (?:done|over|finished|ready|complete|through)|has (?:ended|finished))|\b(?:at the end|in the end|when done|when finished)\b`)

	thenNotify = pattern.Lazy(`(?i)^(?:please )?(?:tell|notify|inform|ping|alert|warn|message) (?:me|us|people|everybody|everyone|the channel|the room|the team)\b|^(?:please )?(?:let (?:me|us) know|say so|post (?:a notice|it|that))\b`)
	thenStop   = pattern.Lazy(`(?i)^(?:please )?(?:stop|kill|end|terminate) (?:it|this|the (?:process|command|server|build|program))$`)
	thenAbort  = pattern.Lazy(`(?i)^(?:please )?(?:stop|abort|cancel|end) (?:working|(?:the|this|your) (?:run|thread|branch|conversation|work))$`)
	thenSpawn  = pattern.Lazy(`(?i)^(?:please )?(?:(?:start|begin|open|spawn|create)(?: in)? a (?:new )?(?:thread|branch|conversation|session)|in a new (?:thread|branch|conversation|session))\b[,:]?\s*(?:(?:to|and|that|which)\s+)?(.*)$`)
	thenTell   = pattern.Lazy(`(?i)^(?:please )?(?:(?:tell|ask) (?:yourself|the agent|this (?:thread|conversation))(?: to)?[,:]?|(?:come back|wake up|continue)(?: here)? (?:to|and)|then)\s+`)

	sentences = pattern.Lazy(`[;\n]+|[.!]\s+|[.!]$|,?\s+and\s+(?:also\s+)?(?:(?:when|whenever|if|once)\s)`)
	joining   = pattern.Lazy(`(?i)(?:when|whenever|if|once)\s$`)
)

// ErrNotUnderstood means that the grammar cannot parse instructions. It says how to write them.
var ErrNotUnderstood = errors.New(`say when and what then, a sentence each, for instance: "when it fails, look at the log and fix it", "tell me when it is done", ` +
	`"when it prints 'listening on', run the tests", "after 10 minutes, stop it", "if it crashes, start a new thread to find out why"`)

// Compile parses instructions in plain language. Empty instructions give no rules.
func Compile(instructions string) ([]Rule, error) {
	var rules []Rule
	for _, text := range cut(instructions) {
		r, err := compile(text)
		if err != nil {
			return nil, fmt.Errorf("%.100q is not understood: %w", text, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// cut splits instructions. Quoted text stays together.
func cut(instructions string) (out []string) {
	quoted := regexp.MustCompile(`"[^"]*"|'[^']*'|“[^”]*”|/(?:[^/\\]|\\.)+/`).FindAllStringIndex(instructions, -1)
	inside := func(at int) bool {
		return slices.ContainsFunc(quoted, func(q []int) bool { return at > q[0] && at < q[1] })
	}
	begin := 0
	add := func(end int) {
		if text := strings.Trim(instructions[begin:end], " \t\r\n.,;!-*"); text != "" {
			out = append(out, text)
		}
	}
	for _, m := range sentences().FindAllStringIndex(instructions, -1) {
		if inside(m[0]) || m[0] < begin {
			continue
		}
		add(m[0])
		begin = m[1]
		if w := joining().FindString(instructions[m[0]:m[1]]); w != "" {
			begin = m[1] - len(w)
		}
	}
	add(len(instructions))
	return out
}

func compile(text string) (Rule, error) {
	var r Rule
	rest, found := text, true
	take := func(m []int) { rest = text[:m[0]] + "\x00" + text[m[1]:] }
	part := func(m []int, i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return text[m[2*i]:m[2*i+1]]
	}
	if m := whenOutput().FindStringSubmatchIndex(text); m != nil {
		take(m)
		r.On, r.Pattern = OnOutput, part(m, 4)
		if r.Pattern == "" {
			r.Pattern = "(?i)" + regexp.QuoteMeta(part(m, 1)+part(m, 2)+part(m, 3))
		}
	} else if m := whenTimeout().FindStringSubmatchIndex(text); m != nil {
		take(m)
		r.On, r.After = OnTimeout, seconds(part(m, 1), part(m, 2))
	} else if m := whenFailure().FindStringIndex(text); m != nil {
		take(m)
		r.On, r.If = OnExit, FailureOnly
	} else if m := whenSuccess().FindStringIndex(text); m != nil {
		take(m)
		r.On, r.If = OnExit, SuccessOnly
	} else if m := whenExit().FindStringIndex(text); m != nil {
		take(m)
		r.On, r.If = OnExit, AnyExit
	} else {
		r.On, r.If, found = OnExit, AnyExit, false
	}
	before, after, _ := strings.Cut(rest, "\x00")
	action := strings.Trim(before, " \t,:") + " " + strings.Trim(after, " \t,:")
	action = strings.TrimSpace(action)
	action = strings.TrimSpace(regexp.MustCompile(`(?i)^(?:then|please|just|and)\s+`).ReplaceAllString(action, ""))
	switch {
	case action == "" || thenNotify().MatchString(action):
		r.Do = NotifyChannel
		if words := strings.TrimSpace(thenNotify().ReplaceAllString(action, "")); len(words) > len("about it") {
			r.Message = words
		}
	case !found:
		return r, ErrNotUnderstood
	case thenStop().MatchString(action):
		r.Do = StopProcess
	case thenAbort().MatchString(action):
		r.Do = StopThread
	default:
		r.Do = InjectContext
		if m := thenSpawn().FindStringSubmatch(action); m != nil {
			r.Do, action = SpawnThread, m[1]
		}
		r.Message = strings.TrimSpace(thenTell().ReplaceAllString(action, ""))
	}
	return r.Checked()
}

func seconds(number, unit string) int {
	n, _ := strconv.ParseFloat(number, 64)
	switch strings.ToLower(unit)[0] {
	case 'm':
		n *= 60
	case 'h':
		n *= 3600
	}
	return max(int(n), 1)
}
