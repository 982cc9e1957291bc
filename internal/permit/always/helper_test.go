package always

import (
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/permit"
)

func mustPreset(t testing.TB, name string) *permit.Profile {
	t.Helper()
	p, err := permit.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustCompile(t interface{ Fatal(...any) }, r permit.Rules) *permit.Profile {
	p, err := permit.Compile("test", r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func judged(p *permit.Profile, command string) permit.Judgement {
	return p.Judge([]permit.Request{{Tool: "bash", Command: command}}, permit.JudgeOptions{})
}

// someRules draws rules of which many match what someRequest draws.
func someRules(t *rapid.T) permit.Rules {
	patterns := []string{
		`.*`, `tool:.*`, `tool:bash:.*`, `tool:bash:ls.*`, `tool:bash:git .*`, `tool:bash:git push.*`, `tool:git:push.*`, `tool:git:.*`,
		`tool:write:.*`, `tool:write:a/.*`, `tool:file:.*`, `tool:view:.*`, `tool:read:.*`, `tool:remote:.*`, `tool:bash:(ls|cat).*`,
		`tool:run_command:.*`, `tool:bash:.*x.*`, `tool:bash:sudo .*`, `x`,
	}
	list := func(name string) []string { return rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 4).Draw(t, name) }
	return permit.Rules{Allow: list("allow"), Ask: list("ask"), Deny: list("deny")}
}

func someRequest(t *rapid.T) []permit.Request {
	return []permit.Request{{
		Tool:   rapid.SampledFrom([]string{"read", "write", "edit", "git", "view", "file", "other"}).Draw(t, "tool"),
		Detail: rapid.SampledFrom([]string{"a/x", "view.txt", "push origin", "status", "../x", "/x", "view a/x", "x"}).Draw(t, "detail"),
	}}
}
