package permit

import (
	"testing"

	"chorus/internal/permit/permittest"
	"chorus/internal/theme"
)

func TestStrictestWins(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, Rules{
		Allow: []string{`tool:read:.*`, `tool:bash:ls.*`}, Ask: []string{`tool:write:.*`}, Deny: []string{`tool:write:secret`},
	})
	for _, c := range []struct {
		requests []Request
		want     Verdict
		list     string
	}{
		{nil, Deny, ListImplicit},
		{[]Request{{Tool: "read", Detail: "a"}}, Allow, ListAllow},
		{[]Request{{Tool: "read", Detail: "a"}, {Tool: "write", Detail: "b"}}, Ask, ListAsk},
		{[]Request{{Tool: "write", Detail: "secret"}, {Tool: "read", Detail: "a"}}, Deny, ListDeny},
		{[]Request{{Tool: "nothing", Detail: "x"}, {Tool: "write", Detail: "secret"}}, Deny, ListDeny},
		{[]Request{{Tool: "bash", Command: "ls"}, {Tool: "write", Detail: "b"}}, Ask, ListAsk},
		{[]Request{{Tool: "bash", Command: "ls > b"}}, Ask, ListAsk},
		{[]Request{{Tool: "bash", Command: "ls > secret"}}, Deny, ListDeny},
		{[]Request{{Tool: "bash", Detail: "ls; rm -rf /"}}, Deny, ListCatastrophic},
		{[]Request{{Tool: "bash", Command: ""}}, Deny, ListImplicit},
	} {
		j := p.Judge(c.requests, JudgeOptions{})
		if j.Verdict != c.want || j.Decision.List != c.list || j.Decision.Verdict != j.Verdict {
			t.Errorf("%v: %s by %s, want %s by %s", c.requests, j.Verdict, j.Decision.List, c.want, c.list)
		}
	}
}

func TestWorkspacePathsAreItsOwn(t *testing.T) {
	t.Parallel()
	opt := JudgeOptions{Workspace: "/work/ws", Home: "/home/u/.chorus", UserHome: "/home/u"}
	p := mustPreset(t, "standard")
	for path, want := range map[string]Verdict{
		"/work/ws/src/a.go": Allow, "/work/ws": Allow, "/work/ws-evil/a": Deny, "/work/ws/../x": Deny, "src/a.go": Allow,
	} {
		j := p.Judge([]Request{{Tool: "edit", Detail: path}}, opt)
		if j.Verdict != want {
			t.Errorf("%s: %s, want %s", path, j.Verdict, want)
		}
	}
}

func TestOwnHomeIsRefused(t *testing.T) {
	t.Parallel()
	p := mustPreset(t, "open")
	outside := JudgeOptions{Home: "/home/u/.chorus", Workspace: "/home/u/project", UserHome: "/home/u"}
	inside := JudgeOptions{Home: "/home/u/.chorus", Workspace: "/home/u/.chorus/agents/a/workspace"}
	for _, c := range []struct {
		command string
		opt     JudgeOptions
		refused bool
	}{
		{"rm -rf ~/.chorus", outside, true},
		{"rm -rf $HOME/.chorus", outside, true},
		{"rm -rf /home/u/.chorus/", outside, true},
		{"rm -rf ../.chorus", outside, true},
		{"rm -rf $CHORUS_HOME", outside, true},
		{"rm /home/u/.chorus/chorus.db", outside, true},
		{"cd ~ && ls", outside, false},
		{"cd /home/u && rm -r .chorus", outside, true},
		{"echo x > /home/u/.chorus/keys", outside, true},
		{"echo x | tee -a ~/.chorus/keys", outside, true},
		{"cp evil /home/u/.chorus/config/shared.yaml", outside, true},
		{"mv ~/.chorus /tmp", outside, true},
		{"mv /home/u /tmp", outside, true},
		{"truncate -s 0 ~/.chorus/chorus.db", outside, true},
		{"dd if=x of=/home/u/.chorus/chorus.db", outside, true},
		{"cat ~/.chorus/config/shared.yaml", outside, false},
		{"cp ~/.chorus/x .", outside, false},
		{"rm -rf build", outside, false},
		{"rm -rf /home/u/.chorus-old", outside, false},
		{"rm -rf build", inside, false},
		{"echo x > out", inside, false},
		{"rm -rf /home/u/.chorus/agents/a/workspace/build", inside, false},
		{"rm -rf ..", inside, true},
		{"rm -rf ../../b/workspace", inside, true},
		{"echo x > ../agent.json", inside, true},
	} {
		j := p.Judge([]Request{{Tool: "bash", Command: c.command}}, c.opt)
		if refused := j.Decision.List == ListCatastrophic; refused != c.refused {
			t.Errorf("%s: refused %v, want %v\n%s", c.command, refused, c.refused, drawTree("open", j, theme.Theme{}))
		}
	}
	for _, tool := range []string{"write", "edit", "apply_patch", "create_file"} {
		j := p.Judge([]Request{{Tool: tool, Detail: "/home/u/.chorus/chorus.db"}}, outside)
		if j.Decision.List != ListCatastrophic {
			t.Errorf("%s may write to the home", tool)
		}
	}
	if j := p.Judge([]Request{{Tool: "read", Detail: "/home/u/.chorus/chorus.db"}}, outside); j.Verdict != Allow {
		t.Errorf("reading is %s under open", j.Verdict)
	}
}

func TestOpaqueIsAskedUnlessAllIsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules Rules
		want  Verdict
	}{
		{Rules{Allow: []string{`.*`}}, Allow},
		{Rules{Allow: []string{`tool:.*`}}, Allow},
		{Rules{Allow: []string{`tool:bash:.*`}}, Allow},
		{Rules{Allow: []string{`tool:(bash|write):.*`}}, Allow},
		{Rules{Allow: []string{`tool:bash:bash .*`}}, Ask},
		{Rules{Allow: []string{`tool:bash:[a-z].*`}}, Ask},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:x`}}, Ask},
		{Rules{Ask: []string{`.*`}}, Ask},
		{Rules{}, Deny},
	} {
		if j := judged(mustCompile(t, c.rules), `bash -c "$X"`); j.Verdict != c.want {
			t.Errorf("%+v: %s, want %s", c.rules, j.Verdict, c.want)
		}
	}
}

func TestUnknownWordsAreAskedOnlyWhereADenyCouldHit(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:cat secrets/.*`, `tool:git:branch -D.*`, `tool:write:secrets/.*`}})
	for command, want := range map[string]Verdict{
		`cat $F`: Ask, `cat "$F"`: Ask, `cat secr*/x`: Ask, `cat src/$F`: Allow, `cat $D/x`: Ask, `ls $F`: Allow, `echo "$HOME"`: Allow,
		`git branch $X`: Ask, `git log $X`: Ask, `git status $X`: Allow, `cat *.go`: Ask, `ls *.go`: Allow, `cat src/*.go`: Allow,
		`echo x > "$F"`: Ask, `ls | xargs cat`: Ask, `ls | xargs wc`: Allow, `cat secrets/a`: Deny,
	} {
		if j := judged(p, command); j.Verdict != want {
			t.Errorf("%s: %s, want %s\n%s", command, j.Verdict, want, drawTree("", j, theme.Theme{}))
		}
	}
}

func TestToolDetail(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":{"d":[1,2],"c":"<x>"}}`:  `{"a":{"c":"<x>","d":[1,2]},"b":1}`,
		" { \"n\" : 12345678901234567890 } ": `{"n":12345678901234567890}`,
		`not json`:                           `not json`,
		`{}`:                                 `{}`,
		``:                                   ``,
		`{"a":1} x`:                          `{"a":1} x`,
	} {
		if got := ToolDetail([]byte(in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func benchmarkJudge(b *testing.B, profile, command string) {
	p := mustPreset(b, profile)
	opt := JudgeOptions{Home: "/home/u/.chorus", Workspace: "/home/u/project"}
	b.ReportAllocs()
	for b.Loop() {
		p.Judge([]Request{{Tool: "bash", Command: command}}, opt)
	}
}

// A decision on 200 characters should take less than 50 µs.
func BenchmarkJudge200(b *testing.B) {
	for _, name := range Presets() {
		b.Run(name, func(b *testing.B) { benchmarkJudge(b, name, permittest.Everyday) })
	}
}

// A decision on 10 KB of script should take less than 5 ms.
func BenchmarkJudge10K(b *testing.B) {
	for kind, script := range permittest.Scripts() {
		b.Run(kind, func(b *testing.B) { benchmarkJudge(b, "guarded", script) })
	}
}

func BenchmarkDecide(b *testing.B) {
	p := mustPreset(b, "standard")
	for b.Loop() {
		p.Decide("tool:write:internal/permit/judge_test.go")
	}
}
