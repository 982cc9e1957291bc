package process

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/tool"
)

const (
	maxCommands = 10
	maxAtOnce   = 4 // each may be a whole build
)

type concurrentInput struct {
	Commands []string `json:"commands" jsonschema:"the commands, at most 10; four run at a time"`
	Timeout  float64  `json:"timeout,omitempty" jsonschema:"seconds for each, default 120, at most 600"`
}

func (t *tools) concurrent(ctx context.Context, in concurrentInput) (tool.Result, error) {
	if len(in.Commands) == 0 || len(in.Commands) > maxCommands {
		return tool.Fail(fmt.Sprintf("Give 1 to %d commands.", maxCommands)), nil
	}
	timeout := sandbox.DefaultTimeout
	if in.Timeout > 0 && !math.IsNaN(in.Timeout) {
		timeout = min(max(time.Duration(min(in.Timeout, sandbox.MaxTimeout.Seconds())*float64(time.Second)), time.Millisecond), sandbox.MaxTimeout)
	}
	call := tool.CallFrom(ctx)
	texts := make([]string, len(in.Commands))
	slots := make(chan struct{}, maxAtOnce)
	var work sync.WaitGroup
	var show sync.Mutex
	for i, command := range in.Commands {
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			res, err := t.run.Run(ctx, sandbox.Command{Shell: canonicalOf(command), Dir: t.opts.Dir, Roots: t.opts.Roots, Env: t.opts.Env, Timeout: timeout, Call: call.Key, Merge: true})
			ended := how(res, err, timeout)
			show.Lock()
			call.Progress(fmt.Sprintf("%s: %s\n", label(command), ended))
			show.Unlock()
			texts[i] = fmt.Sprintf("## %d. %s\n[%s]\n%s", i+1, label(canonicalOf(command)), ended, body(res.Output, len(in.Commands)))
		})
	}
	work.Wait()
	out := tool.From("output of commands", tool.Clip(context.WithoutCancel(ctx), strings.Join(texts, "\n"), tool.Head, t.opts.Keep))
	out.Failed = ctx.Err() != nil
	return out, nil
}

// how says how a command ended.
func how(res sandbox.Result, err error, timeout time.Duration) string {
	switch {
	case err != nil:
		return "could not be started: " + err.Error()
	case res.Aborted:
		return "aborted"
	case res.TimedOut:
		return "timed out after " + timeout.String()
	}
	return fmt.Sprintf("exit code %d, %s", res.ExitCode, res.Took.Round(10*time.Millisecond))
}

// shared is how much output all commands show together. Of longer output, the end is shown.
const shared = 40_000

func body(output string, commands int) string {
	output = strings.TrimSuffix(output, "\n")
	if output == "" {
		return "(no output)"
	}
	if most := shared / commands; len(output) > most {
		cut := output[len(output)-most:]
		if _, rest, ok := strings.Cut(cut, "\n"); ok {
			cut = rest
		}
		return fmt.Sprintf("[the first %d bytes are left out]\n%s", len(output)-len(cut), strings.ToValidUTF8(cut, "\uFFFD"))
	}
	return output
}
