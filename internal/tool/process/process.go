// Package process has the tools for commands that run while the agent does something else. run_background
// leaves one running, run_concurrent runs several at once, and the others manage what was left running.
//
// It promises that a command is judged like one of the bash tool, by its canonical
// text; that hooks are shown as sentences before anything runs; and that an agent
// reaches only what it left running itself, in the same place.
package process

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/background"
	"chorus/internal/permit/canonical"
	"chorus/internal/sandbox"
	"chorus/internal/tool"
)

//go:embed run_background.md
var runBackgroundProse string

//go:embed run_concurrent.md
var runConcurrentProse string

//go:embed process_list.md
var listProse string

//go:embed process_logs.md
var logsProse string

//go:embed process_kill.md
var killProse string

//go:embed add_process_hooks.md
var hooksProse string

// Processes are the processes of one agent in one place.
type Processes interface {
	// Start starts a process. p contains its command, folder, time limit and hooks.
	Start(ctx context.Context, p background.Process, b sandbox.Background) (background.Process, error)
	// List returns the running processes and the most recently ended
	// ones in their current state, newest first.
	List(ctx context.Context) ([]background.Process, error)
	// NewID returns an id for the next process.
	NewID() string
	Tail(id string, bytes, lines int) (string, error)
	Stop(p background.Process) (bool, error)
	AddHooks(ctx context.Context, p background.Process, rules []background.Rule) (background.Process, error)
	// Understand makes a model read instructions that the grammar does not understand. People see the
	// result before it takes effect. The error says why there are no such hooks.
	Understand(ctx context.Context, instructions string) ([]background.Rule, error)
}

// Executor runs commands, and can leave them running.
type Executor interface {
	sandbox.Executor
	sandbox.Backgrounder
}

// Options say where and how commands run, as for the bash tool.
type Options struct {
	Dir   string
	Env   []string
	Keep  tool.Keep
	Roots []sandbox.Root
}

type tools struct {
	run  Executor
	kept Processes
	opts Options
}

const (
	defaultLife = 24 * time.Hour // a forgotten process ends eventually
	maxLife     = 30 * 24 * time.Hour
)

// New returns the tools on an executor.
func New(run Executor, kept Processes, opts Options) []tool.Tool {
	t := &tools{run, kept, opts}
	return []tool.Tool{
		tool.New(tool.Func[backgroundInput]{Name: "run_background", Description: runBackgroundProse, Risk: tool.High,
			Access: func(in backgroundInput) []tool.Access { return shellAccess("run_background", in.text()) },
			Label:  func(in backgroundInput) string { return cmp.Or(in.Description, "leave running: "+label(in.text())) },
			Preview: func(_ context.Context, in backgroundInput) string {
				rules, err := in.rules()
				return preview(rules, err)
			}, Run: t.start}),
		tool.New(tool.Func[concurrentInput]{Name: "run_concurrent", Description: runConcurrentProse, Rare: true, Risk: tool.High,
			Access: func(in concurrentInput) (all []tool.Access) {
				for _, command := range in.Commands {
					all = append(all, shellAccess("run_concurrent", canonicalOf(command))...)
				}
				return all
			},
			Label: func(in concurrentInput) string { return fmt.Sprintf("run %d commands at once", len(in.Commands)) }, Run: t.concurrent}),
		tool.New(tool.Func[struct{}]{Name: "process_list", Description: listProse, Rare: true, ReadOnly: true, Run: t.list}),
		tool.New(tool.Func[logsInput]{Name: "process_logs", Description: logsProse, Rare: true, ReadOnly: true, Run: t.logs}),
		tool.New(tool.Func[idInput]{Name: "process_kill", Description: killProse, Rare: true, Risk: tool.Medium, Run: t.kill}),
		tool.New(tool.Func[hooksInput]{Name: "add_process_hooks", Description: hooksProse, Rare: true, Risk: tool.Medium, Run: t.addHooks,
			Preview: func(_ context.Context, in hooksInput) string {
				rules, err := compile(in.Instructions, in.Hooks)
				return preview(rules, err)
			}}),
	}
}

// preview returns what people are shown of hooks before a call.
func preview(rules []background.Rule, err error) string {
	switch {
	case errors.Is(err, background.ErrNotUnderstood):
		return "hooks: a model reads the instructions; its result is shown before it takes effect"
	case err != nil:
		return ""
	}
	return "hooks:\n" + sentences(rules)
}

// understood returns the rules of a call: as the grammar reads them,
// or else as a model does and people approve.
func (t *tools) understood(ctx context.Context, instructions string, spelled []background.Rule) ([]background.Rule, error) {
	rules, err := compile(instructions, spelled)
	if !errors.Is(err, background.ErrNotUnderstood) {
		return rules, err
	}
	read, err := t.kept.Understand(ctx, instructions)
	if err != nil {
		return nil, err
	}
	return background.Check(slices.Concat(spelled, read))
}

func shellAccess(name, command string) []tool.Access {
	return []tool.Access{{Tool: name, Detail: command, Command: command}}
}

// canonicalOf returns the text that is judged, shown and run.
func canonicalOf(command string) string {
	if text, err := canonical.Text(command); err == nil {
		return text
	}
	return command
}

func label(command string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(command), "\n")
	if runes := []rune(first); len(runes) > 60 {
		first = string(runes[:59]) + "…"
	} else if rest != "" {
		first += " …"
	}
	return first
}

type backgroundInput struct {
	Command      string           `json:"command" jsonschema:"the command"`
	Instructions string           `json:"instructions,omitempty" jsonschema:"hooks in plain language"`
	Hooks        []map[string]any `json:"hooks,omitempty" jsonschema:"hooks, spelled out as for add_process_hooks"`
	Timeout      float64          `json:"timeout,omitempty" jsonschema:"seconds after which it is ended, default a day"`
	Directory    string           `json:"working_directory,omitempty" jsonschema:"a folder of the workspace, default its top"`
	Description  string           `json:"description,omitempty" jsonschema:"what it does, in a few words, for people"`
}

// text returns the whole command, including where it runs, so that what is judged is what runs.
func (in backgroundInput) text() string {
	command := in.Command
	if in.Directory != "" && filepath.Clean(in.Directory) != "." {
		command = "cd " + canonical.Word(in.Directory) + " && {\n" + command + "\n}"
	}
	return canonicalOf(command)
}

func (in backgroundInput) rules() ([]background.Rule, error) {
	spelled, err := spell(in.Hooks)
	if err != nil {
		return nil, err
	}
	return compile(in.Instructions, spelled)
}

// spell parses hooks. The schema of run_background leaves their form open,
// because it is long and would be part of every prompt.
func spell(hooks []map[string]any) (rules []background.Rule, err error) {
	data, err := json.Marshal(hooks)
	if err != nil {
		return nil, err
	}
	read := json.NewDecoder(bytes.NewReader(data))
	read.DisallowUnknownFields()
	if err := read.Decode(&rules); err != nil {
		return nil, fmt.Errorf("hooks cannot be read: %w; find_tools shows the form that add_process_hooks takes", err)
	}
	return rules, nil
}

// compile turns instructions into rules and adds them to the explicit ones.
func compile(instructions string, spelled []background.Rule) ([]background.Rule, error) {
	rules, err := background.Compile(instructions)
	if err != nil {
		return nil, err
	}
	return background.Check(slices.Concat(spelled, rules))
}

func sentences(rules []background.Rule) string {
	var out strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&out, "- %s\n", r)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func (t *tools) start(ctx context.Context, in backgroundInput) (tool.Result, error) {
	if strings.TrimSpace(in.Command) == "" {
		return tool.Fail("The command is empty."), nil
	}
	if in.Directory != "" && !filepath.IsLocal(in.Directory) {
		return tool.Fail("working_directory must be a folder of the workspace."), nil
	}
	spelled, err := spell(in.Hooks)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	rules, err := t.understood(ctx, in.Instructions, spelled)
	if err != nil {
		return tool.Fail(err.Error()), ctx.Err()
	}
	life := defaultLife
	if in.Timeout > 0 && !math.IsNaN(in.Timeout) {
		life = min(time.Duration(min(in.Timeout, maxLife.Seconds())*float64(time.Second)), maxLife)
	}
	p := background.Process{ID: t.kept.NewID(), Command: in.text(), Dir: t.opts.Dir, Timeout: life, Call: tool.CallFrom(ctx).Key}
	for _, r := range rules {
		p.Hooks = append(p.Hooks, background.Hook{Rule: r})
	}
	b, err := t.run.Background(ctx, sandbox.Command{Shell: p.Command, Dir: t.opts.Dir, Roots: t.opts.Roots, Env: t.opts.Env, Timeout: life, Call: "process/" + p.ID})
	if err != nil {
		return tool.Fail("The command could not be started: " + err.Error()), nil
	}
	if p, err = t.kept.Start(ctx, p, b); err != nil {
		return tool.Fail("The command could not be started: " + err.Error()), nil
	}
	return tool.OK(fmt.Sprintf("Process %s runs. Its hooks:\n%s\nIt is ended after %s at the latest.", p.ID, sentences(rules), life)), nil
}

func (t *tools) list(ctx context.Context, _ struct{}) (tool.Result, error) {
	all, err := t.kept.List(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if len(all) == 0 {
		return tool.OK("Nothing was left running."), nil
	}
	var out strings.Builder
	for _, p := range all {
		fmt.Fprintf(&out, "%s: %s\n  %s\n", p.ID, Describe(p, time.Now()), label(p.Command))
		for _, h := range p.Hooks {
			fmt.Fprintf(&out, "  - %s", h.Rule)
			if h.Fires > 0 {
				fmt.Fprintf(&out, " (happened %d times)", h.Fires)
			}
			out.WriteByte('\n')
		}
	}
	return tool.From("processes", strings.TrimSuffix(out.String(), "\n")), nil
}

// Describe says what state a process is in: "running for 3m0s", "exited with code 1 after 20s".
func Describe(p background.Process, now time.Time) string {
	if !p.Over() {
		return string(p.State) + " for " + now.Sub(p.Started).Round(time.Second).String()
	}
	text := string(p.State)
	if p.State == background.Exited {
		text += fmt.Sprintf(" with code %d", p.Exit)
	}
	text += " after " + p.Ended.Sub(p.Started).Round(time.Second).String()
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

type idInput struct {
	ID string `json:"id" jsonschema:"the process, as process_list names it"`
}

type logsInput struct {
	ID    string `json:"id" jsonschema:"the process, as process_list names it"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many, default 50, at most 500"`
}

// find returns the agent's own process of this id, or a text for the model if there is none.
func (t *tools) find(ctx context.Context, id string) (background.Process, string, error) {
	all, err := t.kept.List(ctx)
	if err != nil {
		return background.Process{}, "", err
	}
	for _, p := range all {
		if p.ID == id {
			return p, "", nil
		}
	}
	return background.Process{}, fmt.Sprintf("There is no process %.40q of yours; process_list names them.", id), nil
}

func (t *tools) logs(ctx context.Context, in logsInput) (tool.Result, error) {
	p, missing, err := t.find(ctx, in.ID)
	if err != nil || missing != "" {
		return tool.Fail(missing), err
	}
	lines := in.Lines
	if lines <= 0 {
		lines = 50
	}
	text, err := t.kept.Tail(p.ID, 200<<10, min(lines, 500))
	if err != nil {
		return tool.Result{}, err
	}
	head := "[" + Describe(p, time.Now()) + "]"
	if text == "" {
		return tool.OK(head + "\n(no output)"), nil
	}
	return tool.From("output of process "+p.ID, head+"\n"+tool.Clip(ctx, text, tool.Tail, t.opts.Keep)), nil
}

func (t *tools) kill(ctx context.Context, in idInput) (tool.Result, error) {
	p, missing, err := t.find(ctx, in.ID)
	if err != nil || missing != "" {
		return tool.Fail(missing), err
	}
	there, err := t.kept.Stop(p)
	if err != nil {
		return tool.Result{}, err
	}
	if !there {
		return tool.OK("It has already ended: " + Describe(p, time.Now()) + "."), nil
	}
	return tool.OK("It was asked to end, and is killed if it does not within 5 seconds."), nil
}

type hooksInput struct {
	ID           string            `json:"id" jsonschema:"the process, as process_list names it"`
	Instructions string            `json:"instructions,omitempty" jsonschema:"hooks in plain language"`
	Hooks        []background.Rule `json:"hooks,omitempty" jsonschema:"hooks, spelled out"`
}

func (t *tools) addHooks(ctx context.Context, in hooksInput) (tool.Result, error) {
	if strings.TrimSpace(in.Instructions) == "" && len(in.Hooks) == 0 {
		return tool.Fail("Say in instructions or hooks what should happen."), nil
	}
	p, missing, err := t.find(ctx, in.ID)
	if err != nil || missing != "" {
		return tool.Fail(missing), err
	}
	if p.Over() {
		return tool.Fail("It has ended: " + Describe(p, time.Now()) + "."), nil
	}
	rules, err := t.understood(ctx, in.Instructions, in.Hooks)
	if err != nil {
		return tool.Fail(err.Error()), ctx.Err()
	}
	if _, err = t.kept.AddHooks(ctx, p, rules); err != nil {
		return tool.Fail(err.Error()), nil
	}
	return tool.OK("Added:\n" + sentences(rules)), nil
}
