package permit_test

import (
	"testing"

	"chorus/internal/permit"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		`.*`:                  "anything",
		`tool:bash:.*`:        "shell commands",
		`tool:bash:make test`: "running “make test”, exactly as it stands",
		`tool:bash:(ls|cat|grep|go (build|test|vet))( .*)?`: "running “ls”, “cat”, “grep”, “go build”, “go test” or “go vet”, alone or with any arguments",
		`tool:bash:go test(?: .*)?`:                         "running “go test”, alone or with any arguments",
		`tool:bash:npm run.*`:                               "running “npm run” and whatever follows",
		`tool:(write|edit|apply_patch):(src|docs)/.*`:       "changing files whose path begins with “src/” or “docs/”",
		`tool:(read|list_files|search_files):.*`:            "reading any file",
		`tool:read:\.env`:                                   "reading “.env”, exactly as it stands",
		`tool:web_fetch:https://go\.dev/.*`:                 "fetching “https://go.dev/” and whatever follows",
		`tool:git:.*`:                                       "git that reaches outside of the repository",
		`tool:git:fetch(?: .*)?`:                            "git “fetch”, alone or with any arguments",
		`tool:mcp__github__.*`:                              "tools whose name begins with “mcp__github__”",
		`tool:recall:.*`:                                    "the tool recall, whatever it is called with",
		`tool:(read|bash):.*`:                               "reading any file; any shell command",
		`tool:(read|write):(.*/)?\.env(\..*)?`:              "whatever fits this expression",
		`{"rule":"tool:bash:make deploy","roles":["ops"]}`:  "running “make deploy”, exactly as it stands, only for roles ops",
	} {
		if got, err := permit.Words(rule); err != nil || got != want {
			t.Errorf("%s\n  says %q, %v\n  want %q", rule, got, err, want)
		}
	}
	for _, rule := range []string{`tool:(bash`, `{"rule":""}`, `{"role":"x"}`} {
		if got, err := permit.Words(rule); err == nil {
			t.Errorf("%s says %q", rule, got)
		}
	}
}
