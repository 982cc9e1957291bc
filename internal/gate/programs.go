package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/permit"
	"chorus/internal/permit/canonical"
	"chorus/internal/sandbox"
	"chorus/internal/transcript"
)

// How programs that a command starts are judged.
const (
	ChildrenDeny  = "deny"  // by deny rules and the list of catastrophes only; nobody is asked
	ChildrenJudge = "judge" // by all rules
	ChildrenAsk   = "ask"   // a person is asked about each one
	ChildrenAllow = "allow" // not at all
)

// Ask asks people whether the command of a call may start a program. It returns once
// somebody has answered; a non-nil error refuses the program.
type Ask func(ctx context.Context, call string, program sandbox.Exec, why Asked) error

// Asked is a program that needs approval.
type Asked struct {
	permit.Decision
	Actions []string // what rules must allow for it to start unasked: one of its names may be asked for too
	Each    string   // why it is asked for each time, whatever the rules allow; "" if they decide
}

// Record writes to the audit log that a program was refused or that somebody
// allowed it. Only decision, rule and detail of the line are set.
type Record func(ctx context.Context, call string, program sandbox.Exec, line approval.Audit) error

// Programs returns the judge of the programs that a run's commands start, at any depth, or nil if they
// are not judged. The text of a command was judged before it ran; this covers programs that the text
// does not show. If ask is nil, programs that need approval are refused.
func (g *Judge) Programs(mode string, ask Ask, record Record) func(call string) sandbox.Judge {
	if mode == ChildrenAllow {
		return nil
	}
	p := &programJudge{gate: g, mode: mode, ask: ask, record: record, senders: g.meant(g.Work.Senders), known: map[string]permit.Decision{}, asked: map[string]*given{}, lines: map[string]int{}}
	p.checks, p.err = g.checks(p.senders)
	return func(call string) sandbox.Judge {
		return func(program sandbox.Exec) (func(context.Context) error, error) { return p.judge(call, program) }
	}
}

// programJudge judges the programs of one run.
type programJudge struct {
	gate    *Judge
	mode    string
	ask     Ask
	record  Record
	senders []transcript.Sender
	checks  []check
	err     error

	mu    sync.Mutex
	known map[string]permit.Decision // by text: a build starts the same program many times
	asked map[string]*given          // by call and text
	lines map[string]int             // number of audit log lines, by call
}

const (
	maxKnown = 4096 // entries cached per run
	maxLines = 50   // audit log lines for the programs of one call
)

func (p *programJudge) judge(call string, program sandbox.Exec) (ask func(context.Context) error, err error) {
	if p.err != nil {
		return nil, p.err
	}
	d := p.decide(program)
	if d.Verdict == permit.Allow {
		return nil, nil
	}
	return func(ctx context.Context) error { return p.answer(ctx, call, program, d) }, nil
}

// answer refuses a denied program and asks people about any other.
func (p *programJudge) answer(ctx context.Context, call string, program sandbox.Exec, d permit.Decision) error {
	return p.once(ctx, call, program, func() error {
		switch {
		case d.Verdict == permit.Deny:
			return p.written(ctx, call, program, approval.Audit{Decision: "deny", Rule: d.Rule}, errors.New(why(d)))
		case p.ask == nil:
			no := fmt.Errorf("it needs approval (profile %s); run it as a separate command, so that people can be asked", d.Profile)
			return p.written(ctx, call, program, approval.Audit{Decision: "deny", Rule: d.Rule, Detail: "nobody can be asked"}, no)
		}
		if no := p.ask(ctx, call, program, p.asks(program, d)); no != nil {
			return p.written(ctx, call, program, approval.Audit{Decision: "ask_denied", Rule: d.Rule, Detail: no.Error()}, no)
		}
		return p.written(ctx, call, program, approval.Audit{Decision: "ask_approved", Rule: d.Rule}, nil)
	})
}

// recordTime is far longer than writing one audit log line takes.
const recordTime = 5 * time.Second

// written writes the answer to the audit log and returns it. If the
// log cannot be written, the program is refused.
func (p *programJudge) written(ctx context.Context, call string, program sandbox.Exec, line approval.Audit, answer error) error {
	p.mu.Lock()
	n := p.lines[call]
	p.lines[call]++
	p.mu.Unlock()
	switch {
	case n > maxLines:
		return answer
	case n == maxLines:
		line.Detail = "further programs that this call wants to start are not listed"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if err := p.record(ctx, call, program, line); err != nil {
		return errors.Join(answer, fmt.Errorf("the audit log could not be written: %w", err))
	}
	return answer
}

// once obtains only one answer for each program of a call: a refused shell tries the
// same program in other folders, and a loop starts it again.
func (p *programJudge) once(ctx context.Context, call string, program sandbox.Exec, answer func() error) error {
	key := call + " " + texts(program)[0].words
	p.mu.Lock()
	a := p.asked[key]
	first := a == nil
	if first {
		if len(p.asked) >= maxKnown {
			clear(p.asked)
		}
		a = &given{done: make(chan struct{})}
		p.asked[key] = a
	}
	p.mu.Unlock()
	if first {
		a.err = answer()
		close(a.done)
		return a.err
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// given is an answer, or the wait for one.
type given struct {
	done chan struct{}
	err  error // nil means yes
}

// decide returns the decision about a program in the current mode. A deny rule or an ask rule counts
// if it matches any of the program's names. An allow rule counts only for the given path and for the
// names of system programs, because only those are unambiguous.
func (p *programJudge) decide(program sandbox.Exec) permit.Decision {
	asks := p.mode == ChildrenJudge || p.mode == ChildrenAsk
	var asked, open permit.Decision
	allowed := false
	for _, text := range texts(program) {
		d := p.judged(text.words)
		switch {
		case d.Verdict == permit.Deny && (d.List == permit.ListDeny || d.List == permit.ListCatastrophic):
			return d
		case d.Verdict == permit.Ask && d.List == permit.ListAsk:
			asked = d
		case d.Verdict == permit.Allow && text.means:
			allowed = true
		case text.means:
			open = d
		}
	}
	switch {
	case !asks || program.Script:
		return permit.Decision{Verdict: permit.Allow}
	case asked.Verdict == permit.Ask:
		return asked
	case allowed && p.mode == ChildrenJudge:
		return permit.Decision{Verdict: permit.Allow}
	}
	if p.mode == ChildrenAsk || open.Verdict != permit.Deny {
		open.Verdict = permit.Ask
	}
	return open
}

// asks says what people are asked about a program.
func (p *programJudge) asks(program sandbox.Exec, d permit.Decision) Asked {
	out := Asked{Decision: d}
	if p.mode == ChildrenAsk {
		out.Each = "the profile has each program approved that a command starts"
	}
	first, means := "", false
	for _, text := range texts(program) {
		if text.means {
			first = cmp.Or(first, "tool:bash:"+text.words)
		}
		if d := p.judged(text.words); d.Verdict == permit.Ask && d.List == permit.ListAsk {
			out.Actions = append(out.Actions, "tool:bash:"+text.words)
			means = means || text.means
		}
	}
	if first = cmp.Or(first, "tool:bash:"+texts(program)[0].words); !means && !slices.Contains(out.Actions, first) {
		out.Actions = append([]string{first}, out.Actions...)
	}
	return out
}

// judged returns the strictest decision about a text. An action that was approved before counts as allowed.
func (p *programJudge) judged(text string) permit.Decision {
	p.mu.Lock()
	d, ok := p.known[text]
	p.mu.Unlock()
	if ok {
		return d
	}
	j := p.gate.judge(p.checks, []permit.Request{{Tool: "bash", Detail: text, Command: text}})
	d = j.Decision
	for _, one := range j.Decisions { // a deny rule tells more than the absence of an allow rule
		if one.Verdict == permit.Deny && (one.List == permit.ListDeny || one.List == permit.ListCatastrophic) {
			d = one
			break
		}
	}
	if d.Verdict == permit.Ask && (p.mode == ChildrenJudge || p.mode == ChildrenAsk) &&
		(p.gate.yes(p.senders) || p.gate.own(p.senders) && p.gate.remembered(j) || p.gate.keptBy(j, p.senders) != "") {
		d.Verdict, d.List = permit.Allow, permit.ListAllow
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[text] = d
	return d
}

// commandText is a program written as a command line.
type commandText struct {
	words string
	means bool // whether a rule that allows this text allows the program
}

// texts returns a program written as a command line, once for each of its names.
func texts(program sandbox.Exec) []commandText {
	var args []string
	if len(program.Argv) > 1 {
		args = program.Argv[1:]
	}
	var out []commandText
	add := func(means bool, words ...string) {
		var line strings.Builder
		for _, word := range append(words, args...) {
			if line.Len() > 0 {
				line.WriteByte(' ')
			}
			line.WriteString(canonical.Word(word))
		}
		out = append(out, commandText{line.String(), means})
	}
	if !program.System && program.Path != "" {
		add(true, program.Path)
	}
	for _, name := range program.Names {
		add(program.System, name)
		if sub, ok := strings.CutPrefix(name, "git-"); ok { // a git subcommand with its own executable
			add(program.System, "git", sub)
		}
	}
	if len(program.Argv) > 0 && slices.Contains(program.Names, "git") {
		if sub, ok := strings.CutPrefix(filepath.Base(program.Argv[0]), "git-"); ok {
			add(program.System, "git", sub)
		}
	}
	return out
}
