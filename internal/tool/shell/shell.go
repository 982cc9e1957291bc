// Package shell is the bash tool. It runs one command through a sandbox executor, shows its output as it
// comes, and returns it within limits. A command that ends by itself has a result with its output and exit
// code, whatever the code is. An error means that the command could not run to its end.
package shell

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"chorus/internal/permit/canonical"
	"chorus/internal/sandbox"
	"chorus/internal/tool"
)

//go:embed bash.md
var prose string

// Name is the tool's name for models.
const Name = "bash"

// Options say where and how commands run.
type Options struct {
	Dir  string    // the working directory; must exist
	Env  []string  // added to every command, NAME=value
	Keep tool.Keep // stores output that is too long; may be nil
	// Roots are what a command sees if the executor isolates it; if empty, only Dir.
	Roots []sandbox.Root
}

type input struct {
	Command     string  `json:"command" jsonschema:"the command"`
	Timeout     float64 `json:"timeout,omitempty" jsonschema:"seconds, default 120, at most 600"`
	Description string  `json:"description,omitempty" jsonschema:"what it does, in a few words, for people"`
}

type bash struct {
	run  sandbox.Executor
	opts Options
	last atomic.Pointer[written]
}

// written is a command as it came, and its canonical text.
type written struct{ command, text string }

// New returns the bash tool on an executor.
func New(run sandbox.Executor, opts Options) tool.Tool {
	b := &bash{run: run, opts: opts}
	return tool.New(tool.Func[input]{
		Name: Name, Description: prose, Risk: tool.High,
		Aliases: b.aliases(),
		Access: func(in input) []tool.Access {
			command := b.canonical(in.Command)
			return []tool.Access{{Tool: "bash", Detail: command, Command: command}}
		},
		Label: b.label,
		Run:   b.call,
	})
}

// canonical returns the text that is judged, shown and run. A command without a canonical text stays
// as it was written, and whoever judges it finds it opaque. The last result is cached, because a
// call needs it several times and a long script takes milliseconds.
func (b *bash) canonical(command string) string {
	if last := b.last.Load(); last != nil && last.command == command {
		return last.text
	}
	text, err := canonical.Text(command)
	if err != nil {
		text = command
	}
	b.last.Store(&written{command, text})
	return text
}

// label returns the description or the command's first line. If more lines follow, it says so.
func (b *bash) label(in input) string {
	what := strings.TrimSpace(in.Description)
	if what == "" {
		first, rest, _ := strings.Cut(strings.TrimSpace(b.canonical(in.Command)), "\n")
		if what = "$ " + first; rest != "" {
			what += " …"
		}
	}
	if runes := []rune(what); len(runes) > 80 {
		what = string(runes[:79]) + "…"
	}
	return what
}

func (b *bash) call(ctx context.Context, in input) (tool.Result, error) {
	if strings.TrimSpace(in.Command) == "" {
		return tool.Fail("The command is empty."), nil
	}
	timeout := seconds(in.Timeout)
	call := tool.CallFrom(ctx)
	watch := &progress{send: call.Progress}
	res, err := b.run.Run(ctx, sandbox.Command{
		Shell: b.canonical(in.Command), Dir: b.opts.Dir, Roots: b.opts.Roots, Env: b.opts.Env, Timeout: timeout,
		Call: call.Key, Merge: call.Streams == nil, OnOutput: watch.add,
	})
	if err != nil {
		return tool.Fail("The command could not be started: " + err.Error()), nil
	}
	if call.Streams != nil {
		call.Streams(res.Stdout, res.Stderr)
	}
	text, failed := render(res, timeout)
	body := tool.Clip(context.WithoutCancel(ctx), res.Output, tool.Tail, b.opts.Keep)
	body = strings.TrimSuffix(body, "\n")
	switch {
	case body == "" && text == "":
		text = tool.NoOutput
	case body != "" && text != "":
		text = body + "\n" + text
	case text == "":
		text = body
	}
	out := tool.OK(text)
	if out.Failed = failed; !failed {
		out.Exit = res.ExitCode
	}
	if body != "" {
		out.UntrustedFrom = "output of a command"
	}
	return out, nil
}

// seconds returns the requested timeout, within its limits.
func seconds(asked float64) time.Duration {
	if asked <= 0 || math.IsNaN(asked) {
		return sandbox.DefaultTimeout
	}
	if asked >= sandbox.MaxTimeout.Seconds() {
		return sandbox.MaxTimeout
	}
	return max(time.Duration(asked*float64(time.Second)), time.Millisecond)
}

// render says how the command ended, unless it simply succeeded.
func render(res sandbox.Result, timeout time.Duration) (text string, failed bool) {
	var notes []string
	if res.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("[%d bytes of output beyond the limit were dropped]", res.Dropped))
	}
	switch {
	case res.Aborted:
		notes, failed = append(notes, "[aborted; the command and its children were ended]"), true
	case res.TimedOut:
		secs := strconv.FormatFloat(timeout.Seconds(), 'g', -1, 64)
		notes, failed = append(notes, "[timed out after "+secs+"s; the command and its children were ended, a longer timeout may be given]"), true
	case res.ExitCode != 0:
		// The command ran, and its code is an answer: a search without a hit, a test that fails.
		notes = append(notes, fmt.Sprintf("[exit code %d]", res.ExitCode))
	}
	if res.Left > 0 {
		ended := "1 background process was"
		if res.Left > 1 {
			ended = fmt.Sprintf("%d background processes were", res.Left)
		}
		notes = append(notes, "["+ended+" ended with the command]")
	}
	return strings.Join(notes, "\n"), failed
}
