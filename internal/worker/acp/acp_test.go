package acp_test

import (
	"os"
	"testing"

	"chorus/internal/sandbox/host"
	"chorus/internal/worker"
	"chorus/internal/worker/acp"
	"chorus/internal/worker/workertest"
)

func TestACP(t *testing.T) {
	t.Parallel()
	workertest.Run(t, workertest.Protocol{
		New: func(p worker.Program, command string) worker.Worker {
			return &acp.ACP{Program: p, Command: []string{command}}
		},
		Greeting: `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1"}}'
read -r l`,
		Said:    `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}'`,
		Result:  `echo '{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}'`,
		Failed:  `echo '{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"it broke"}}'`,
		Limited: `echo '{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"429 rate limit"}}'`,
	}, host.New(os.Environ()))
}

// FuzzLine: whatever is printed, nothing panics, and no call is told of twice.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"result":null}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t","kind":"execute","rawInput":{"command":"ls"},"status":"completed"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","method":"session/request_permission","params":{"toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","kind":"allow_once"}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h := &workertest.Host{}
		r := acp.NewReader(h, worker.Job{Dir: "/work"})
		_, _ = r.Line([]byte(`{"id":3,"result":null}`)) // the prompt is given
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
