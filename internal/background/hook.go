package background

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Trigger says what a hook waits for.
type Trigger string

// The triggers.
const (
	OnExit    Trigger = "exit"
	OnOutput  Trigger = "output"
	OnTimeout Trigger = "timeout"
)

// Action is what a hook does.
type Action string

// The actions.
const (
	NotifyChannel Action = "notify_channel" // people are told; no model is asked
	InjectContext Action = "inject_context" // the conversation that started it is told: a current run between its steps; otherwise it answers
	SpawnThread   Action = "spawn_thread"   // a new conversation is told
	StopProcess   Action = "stop_process"
	StopThread    Action = "stop_thread" // ends the run of the conversation that started it
)

// Filters of OnExit.
const (
	AnyExit     = "any"
	SuccessOnly = "success"
	FailureOnly = "failure"
)

// Rule says when a hook acts, and how.
type Rule struct {
	On       Trigger `json:"on" jsonschema:"exit, output or timeout"`
	If       string  `json:"if,omitempty" jsonschema:"with exit: any, success or failure"`
	Pattern  string  `json:"pattern,omitempty" jsonschema:"with output: a regular expression that a line has to match"`
	After    int     `json:"after,omitempty" jsonschema:"with timeout: seconds after the start"`
	Do       Action  `json:"do" jsonschema:"notify_channel, inject_context, spawn_thread, stop_process or stop_thread"`
	Message  string  `json:"message,omitempty" jsonschema:"what is to be done then, for whoever is told"`
	Delay    *int    `json:"delay,omitempty" jsonschema:"with output: seconds that the lines after a match have to come, default 2"`
	MaxFires *int    `json:"maxFires,omitempty" jsonschema:"how often it may act, 0 without limit; default 1, with output 0"`
	Interval *int    `json:"interval,omitempty" jsonschema:"seconds at least between two times; default 180 for notices, else 60"`
}

// Hook is a rule of one process with its progress.
type Hook struct {
	Rule
	Progress
}

// Progress is the state of a hook.
type Progress struct {
	Fires      int       `json:"fires,omitempty"`
	Suppressed int       `json:"suppressed,omitempty"` // suppressed since it last fired, because that was too soon
	LastAt     time.Time `json:"lastAt,omitzero"`
	Matched    time.Time `json:"matched,omitzero"` // when a line matched that it has not fired for yet
	Line       string    `json:"line,omitempty"`   // that line
}

// aliases are the names from the design in which processes had branches.
var aliases = map[string]string{"on_exit": string(OnExit), "on_output_match": string(OnOutput), "output_match": string(OnOutput), "on_timeout": string(OnTimeout),
	"spawn_branch": string(SpawnThread), "stop_branch": string(StopThread), "notify": string(NotifyChannel)}

// Checked returns the rule with its defaults, or why it is invalid.
func (r Rule) Checked() (Rule, error) {
	r.On = Trigger(cmp.Or(aliases[string(r.On)], string(r.On)))
	r.Do = Action(cmp.Or(aliases[string(r.Do)], string(r.Do)))
	switch r.On {
	case OnExit:
		if r.If = cmp.Or(r.If, AnyExit); !slices.Contains([]string{AnyExit, SuccessOnly, FailureOnly}, r.If) {
			return r, fmt.Errorf("a hook on exit must be for any, success or failure, not %.40q", r.If)
		}
	case OnOutput:
		if r.Pattern == "" || len(r.Pattern) > maxPattern {
			return r, fmt.Errorf("a hook on output needs a pattern of at most %d characters", maxPattern)
		}
		if _, err := regexp.Compile(r.Pattern); err != nil {
			return r, fmt.Errorf("the pattern of a hook cannot be read: %w", err)
		}
	case OnTimeout:
		if r.After <= 0 {
			return r, fmt.Errorf("a hook on timeout needs the seconds after which it acts, as 'after'")
		}
	default:
		return r, fmt.Errorf("a hook must be on exit, output or timeout, not %.40q", r.On)
	}
	if !slices.Contains([]Action{NotifyChannel, InjectContext, SpawnThread, StopProcess, StopThread}, r.Do) {
		return r, fmt.Errorf("a hook must do one of notify_channel, inject_context, spawn_thread, stop_process and stop_thread, not %.40q", r.Do)
	}
	if len(r.Message) > maxMessage {
		return r, fmt.Errorf("the message of a hook has at most %d characters", maxMessage)
	}
	for _, n := range []*int{r.Delay, r.MaxFires, r.Interval} {
		if n != nil && *n < 0 {
			return r, fmt.Errorf("the numbers of a hook are 0 or more, not %d", *n)
		}
	}
	return r, nil
}

// Check is Checked for all hooks of a process. Without hooks it returns
// the default: people are told how the process ended.
func Check(rules []Rule) ([]Rule, error) {
	if len(rules) == 0 {
		return []Rule{{On: OnExit, If: AnyExit, Do: NotifyChannel}}, nil
	}
	if len(rules) > MaxHooks {
		return nil, fmt.Errorf("a process has at most %d hooks", MaxHooks)
	}
	out := make([]Rule, len(rules))
	for i, r := range rules {
		var err error
		if out[i], err = r.Checked(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Waits reports whether the rule only reports what happened, without
// anything to do. It starts no run; the next run sees it.
func (r Rule) Waits() bool { return r.Do == InjectContext && r.Message == "" }

func (r Rule) most() int {
	switch {
	case r.MaxFires != nil:
		return *r.MaxFires
	case r.On == OnOutput:
		return 0
	}
	return 1
}

func (r Rule) interval() time.Duration {
	seconds := defaultInterval
	switch {
	case r.Interval != nil:
		seconds = *r.Interval
	case r.On != OnOutput || r.Do == StopProcess || r.Do == StopThread:
		seconds = 0
	case r.Do == NotifyChannel:
		seconds = notifyInterval
	}
	return time.Duration(seconds) * time.Second
}

func (r Rule) delay() time.Duration {
	if r.Delay != nil {
		return time.Duration(*r.Delay) * time.Second
	}
	return defaultDelay * time.Second
}

// String describes the rule in a sentence.
func (r Rule) String() string {
	when := "when it ends"
	switch {
	case r.On == OnOutput:
		when = "when it prints a line that matches /" + r.Pattern + "/"
	case r.On == OnTimeout:
		when = "when it still runs after " + (time.Duration(r.After) * time.Second).String()
	case r.If == SuccessOnly:
		when = "when it ends with exit code 0"
	case r.If == FailureOnly:
		when = "when it fails"
	}
	what := map[Action]string{NotifyChannel: "tell people", InjectContext: "tell this conversation, which answers", SpawnThread: "begin a new conversation",
		StopProcess: "stop the process", StopThread: "stop the run of this conversation"}[r.Do]
	if r.Message != "" {
		what += ": " + r.Message
	} else if r.Waits() {
		what = "tell this conversation, which answers when it is next asked"
	}
	var limits []string
	if n := r.most(); n > 1 {
		limits = append(limits, "at most "+strconv.Itoa(n)+" times")
	}
	if d := r.interval(); d > 0 && r.most() != 1 {
		limits = append(limits, "not more than once in "+d.String())
	}
	if len(limits) > 0 {
		what += " (" + strings.Join(limits, ", ") + ")"
	}
	return when + ", " + what
}

// Fire is one firing of a hook.
type Fire struct {
	Hook       int
	N          int // number of this firing, from 1
	Rule       Rule
	Line       string // the line that matched
	Suppressed int    // firings before this one that were too soon after another
}

// Key identifies the firing among all those of its process. Whatever is
// done twice with the same key takes effect once.
func (f Fire) Key() string {
	return fmt.Sprintf("%s/%d/%d", f.Rule.On, f.Hook, f.N)
}

// Look is what an observer sees of a process.
type Look struct {
	Now   time.Time
	Lines []string // printed since the last Look
}

// Step processes a Look and returns the hooks that fire. If the process
// is over, State, Exit and Ended are set before.
func (p *Process) Step(look Look) []Fire {
	var fires []Fire
	for i := range p.Hooks {
		h := &p.Hooks[i]
		if most := h.most(); most > 0 && h.Fires >= most {
			continue
		}
		if !h.due(p, look) {
			continue
		}
		line := h.Line
		h.Matched, h.Line = time.Time{}, ""
		if every := h.interval(); every > 0 && !h.LastAt.IsZero() && look.Now.Sub(h.LastAt) < every {
			h.Suppressed++
			continue
		}
		if p.fired() >= MaxFires {
			continue
		}
		h.Fires++
		h.LastAt = look.Now
		fires = append(fires, Fire{Hook: i, N: h.Fires, Rule: h.Rule, Line: line, Suppressed: h.Suppressed})
		h.Suppressed = 0
	}
	return fires
}

func (p *Process) fired() (n int) {
	for _, h := range p.Hooks {
		n += h.Fires
	}
	return n
}

func (h *Hook) due(p *Process, look Look) bool {
	switch h.On {
	case OnExit:
		success := p.State == Exited && p.Exit == 0
		return p.Over() && (h.If == AnyExit || success == (h.If == SuccessOnly))
	case OnTimeout:
		return !p.Over() && look.Now.Sub(p.Started) >= time.Duration(h.After)*time.Second
	}
	pattern, err := regexp.Compile(h.Pattern)
	if err != nil {
		return false // it was checked when it was created
	}
	for _, line := range look.Lines {
		if h.Matched.IsZero() && pattern.MatchString(line) {
			h.Matched, h.Line = look.Now, line[:min(len(line), maxLine)]
		}
	}
	return !h.Matched.IsZero() && (p.Over() || look.Now.Sub(h.Matched) >= h.delay())
}
