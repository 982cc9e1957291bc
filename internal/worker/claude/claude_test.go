package claude_test

import (
	"os"
	"testing"

	"chorus/internal/sandbox/host"
	"chorus/internal/worker"
	"chorus/internal/worker/claude"
	"chorus/internal/worker/workertest"
)

func TestClaude(t *testing.T) {
	t.Parallel()
	workertest.Run(t, workertest.Protocol{
		New: func(p worker.Program, command string) worker.Worker {
			return &claude.Claude{Program: p, Command: []string{command}}
		},
		Greeting: `read -r prompt; echo '{"type":"system","subtype":"init","session_id":"s-1"}'`,
		Said:     `echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":1,"output_tokens":2}},"parent_tool_use_id":null}'`,
		Result:   `echo '{"type":"result","subtype":"success","is_error":false,"result":"hello","total_cost_usd":0.5,"usage":{"input_tokens":3,"output_tokens":4}}'`,
		Failed:   `echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it broke"]}'`,
		Limited:  `echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour"}}'; echo '{"type":"result","subtype":"success","is_error":true,"result":"You have hit your limit"}'`,
		Reset:    true,
	}, host.New(os.Environ()))
}

// FuzzLine: whatever is printed, nothing panics, and no call is told of twice.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}`))
	f.Add([]byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Edit","input":{"file_path":"/x"}}}`))
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`))
	f.Add([]byte(`{"type":"result","is_error":true,"result":"Claude AI usage limit reached|1749924000"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h := &workertest.Host{}
		r := claude.NewReader(h, "/work")
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
