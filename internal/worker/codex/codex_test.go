package codex_test

import (
	"os"
	"testing"

	"chorus/internal/sandbox/host"
	"chorus/internal/worker"
	"chorus/internal/worker/codex"
	"chorus/internal/worker/workertest"
)

func TestCodex(t *testing.T) {
	t.Parallel()
	workertest.Run(t, workertest.Protocol{
		New: func(p worker.Program, command string) worker.Worker {
			return &codex.Codex{Program: p, Command: []string{command}}
		},
		Greeting: `cat >/dev/null; echo '{"type":"thread.started","thread_id":"s-1"}'; echo '{"type":"turn.started"}'`,
		Said:     `echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}'`,
		Result:   `echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}}'`,
		Failed:   `echo '{"type":"turn.failed","error":{"message":"it broke"}}'`,
		Limited:  `echo '{"type":"turn.failed","error":{"message":"You have hit your usage limit. Try again later."}}'`,
	}, host.New(os.Environ()))
}

// FuzzLine: whatever is printed, nothing panics, and no call is told of twice.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"type":"item.started","item":{"id":"i","type":"command_execution","command":"ls"}}`))
	f.Add([]byte(`{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"a","kind":"add"}]}}`))
	f.Add([]byte(`{"type":"turn.failed","error":{"message":"no rollout found"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h := &workertest.Host{}
		r := codex.NewReader(h)
		for range 2 {
			_, _ = r.Line(line) // an error is an answer
		}
		seen := map[string]bool{}
		for _, c := range h.Calls {
			if seen[c.ID] {
				t.Errorf("call %q began twice", c.ID)
			}
			seen[c.ID] = true
		}
	})
}
