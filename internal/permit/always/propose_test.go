package always

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/permit"
	"chorus/internal/permit/permittest"
)

func TestPropose(t *testing.T) {
	t.Parallel()
	asks := permit.Rules{
		Ask:  []string{`.*`},
		Deny: []string{`tool:bash:rm( .*)?`, `tool:write:secrets/.*`},
	}
	for _, c := range []struct {
		request permit.Request
		want    []string // the rules of each proposal, joined by a space
	}{
		{permit.Request{Tool: "bash", Command: "go test ./..."}, []string{`tool:bash:go test \./\.\.\.`, `tool:bash:go test(?: .*)?`}},
		{permit.Request{Tool: "bash", Command: "npm run build --fast"}, []string{`tool:bash:npm run build --fast`, `tool:bash:npm run build(?: .*)?`}},
		{permit.Request{Tool: "bash", Command: "python3 x.py 1"}, []string{`tool:bash:python3 x\.py 1`, `tool:bash:python3 x\.py(?: .*)?`}},
		{permit.Request{Tool: "bash", Command: "./x.sh 1"}, []string{`tool:bash:\./x\.sh 1`, `tool:bash:\./x\.sh(?: .*)?`}},
		{permit.Request{Tool: "bash", Command: "curl https://example.com"}, []string{`tool:bash:curl https://example\.com`}},
		{permit.Request{Tool: "bash", Command: "sudo make"}, []string{`tool:bash:sudo make`}},
		{permit.Request{Tool: "bash", Command: "docker run --rm alpine ls"}, []string{`tool:bash:docker run --rm alpine ls`}},
		{permit.Request{Tool: "bash", Command: "npm publish"}, []string{`tool:bash:npm publish`}},
		{permit.Request{Tool: "bash", Command: "timeout 5 go vet ./..."}, []string{`tool:bash:go vet \./\.\.\.`, `tool:bash:go vet(?: .*)?`}},
		{permit.Request{Tool: "bash", Command: "X=1"}, []string{`tool:bash:X=1`}},
		{permit.Request{Tool: "bash", Command: "ls && go vet"}, []string{`tool:bash:ls tool:bash:go vet`, `tool:bash:ls(?: .*)? tool:bash:go vet(?: .*)?`}},
		{permit.Request{Tool: "bash", Command: "echo a > x/../b"}, []string{`tool:bash:echo a tool:write:b`, `tool:bash:echo(?: .*)? tool:write:` + permit.FirstNamePattern}},
		{permit.Request{Tool: "git", Detail: "fetch origin"}, []string{`tool:git:fetch origin`, `tool:git:fetch(?: .*)?`}},
		{permit.Request{Tool: "git", Detail: "push origin"}, []string{`tool:git:push origin`}},
		{permit.Request{Tool: "web_fetch", Detail: "https://example.com/a"}, []string{`tool:web_fetch:https://example\.com/a`, `tool:web_fetch:https://example\.com(?:[/?#].*)?`}},
		{permit.Request{Tool: "web_fetch", Detail: "https://a@example.com/"}, []string{`tool:web_fetch:https://a@example\.com/`}},
		{permit.Request{Tool: "mcp__a__b", Detail: `{"x":1}`}, []string{`tool:mcp__a__b:\{"x":1\}`, `tool:mcp__a__b:.*`}},
		{permit.Request{Tool: "self_edit", Detail: "permissions open"}, []string{`tool:self_edit:permissions open`}},
		{permit.Request{Tool: "write", Detail: ".git/hooks/x"}, []string{`tool:write:\.git/hooks/x`}},
		{permit.Request{Tool: "write", Detail: "/etc/x"}, []string{`tool:write:/etc/x`}},
		// No rule helps here.
		{permit.Request{Tool: "bash", Command: `eval "$X"`}, nil},
		{permit.Request{Tool: "bash", Command: `ls; $X`}, nil},
		{permit.Request{Tool: "bash", Command: `PATH=. ls`}, nil},
		{permit.Request{Tool: "bash", Command: "rm x"}, nil},
		{permit.Request{Tool: "bash", Command: "ls | xargs r?"}, nil},
		{permit.Request{Tool: "bash", Command: "mkfs.ext4 /dev/sda"}, nil},
		{permit.Request{Tool: "write", Detail: "secrets/x"}, nil},
		{permit.Request{Tool: "bash", Command: "make " + strings.Repeat("x", 5000)}, nil},
	} {
		j := mustCompile(t, asks).Judge([]permit.Request{c.request}, permit.JudgeOptions{})
		var got []string
		for _, p := range Propose(j) {
			got = append(got, strings.Join(p.Rules, " "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%.60v:\n got %q\nwant %q", c.request, got, c.want)
		}
	}
}

func TestNarrowUnderStandard(t *testing.T) {
	t.Parallel()
	history := []string{"go test ./a", "go vet", "go test ./b && rm x", "go test $X", "tool:write:a", "go test -exec ./x ./..."}
	j := judged(mustPreset(t, "standard"), "cd src && go test ./... > /tmp/out")
	got := Propose(j, history...)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	if exact := got[0]; len(exact.Also) != 0 || exact.Means != "exactly this" {
		t.Errorf("exactly: %+v", exact)
	}
	if all := got[1]; !slices.Equal(all.Also, []string{"go test ./a"}) || !strings.Contains(all.Means, "go test with any arguments") {
		t.Errorf("any arguments: %+v", all)
	}
	// A git command has two names, and both are asked for.
	got = Propose(judged(mustPreset(t, "standard"), "git fetch origin"), "git fetch", "git push")
	if len(got) != 2 || !slices.Equal(got[0].Rules, []string{`tool:bash:git fetch origin`, `tool:git:fetch origin`}) || !slices.Equal(got[1].Also, []string{"git fetch"}) {
		t.Errorf("git fetch: %+v", got)
	}
	if got := Propose(judged(mustPreset(t, "standard"), "git push")); len(got) != 1 {
		t.Errorf("git push: %+v", got)
	}
	if got := Propose(judged(mustPreset(t, "open"), "ls")); got != nil {
		t.Errorf("allowed already: %+v", got)
	}
	file := mustCompile(t, permit.Rules{Ask: []string{`.*`}}).Judge([]permit.Request{{Tool: "edit", Detail: "src/a.go"}}, permit.JudgeOptions{})
	got = Propose(file, "tool:edit:src/b.go", "tool:edit:src/c/d.go", "tool:edit:src/.git/config", "tool:write:src/a.go")
	if len(got) != 3 || len(got[0].Also) != 0 || !slices.Equal(got[1].Also, []string{"tool:edit:src/b.go"}) || !slices.Equal(got[2].Also, []string{"tool:edit:src/b.go", "tool:edit:src/c/d.go"}) {
		t.Errorf("edit: %+v", got)
	}
}

// Each proposal allows what was asked and what the one before it allows, and none allows
// anything that is denied, opaque or catastrophic.
func TestNarrowKeepsItsPromises(t *testing.T) {
	t.Parallel()
	var requests []permit.Request
	cases, err := permittest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		requests = append(requests, permit.Request{Tool: "bash", Command: c.Command})
	}
	for _, s := range []string{"read", "write", "edit", "git", "web_fetch", "mcp__a__b", "upload"} {
		for _, d := range []string{"a/x", "a/b/c", "x", "push origin", "status", "../x", "/x", "https://example.com/x", ".git/x", "@docs/a", "a/.git/x"} {
			requests = append(requests, permit.Request{Tool: s, Detail: d})
		}
	}
	others := slices.Clone(requests)
	rapid.Check(t, func(t *rapid.T) {
		r := someRules(t)
		r.Ask = append(slices.Clone(r.Ask), `.*`)
		p := mustCompile(t, r)
		asked := []permit.Request{rapid.SampledFrom(requests).Draw(t, "request")}
		j := p.Judge(asked, permit.JudgeOptions{})
		proposals := Propose(j)
		if len(proposals) > 0 && j.Verdict != permit.Ask {
			t.Fatalf("%v is %s, and yet %+v", asked, j.Verdict, proposals)
		}
		var steps []*permit.Profile
		for _, prop := range proposals {
			more := r
			more.Allow = slices.Concat(r.Allow, prop.Rules)
			steps = append(steps, mustCompile(t, more))
			if v := steps[len(steps)-1].Judge(asked, permit.JudgeOptions{}).Verdict; v != permit.Allow {
				t.Fatalf("%v is %s with %q", asked, v, prop.Rules)
			}
		}
		if len(steps) == 0 {
			return
		}
		for range 8 {
			other := []permit.Request{rapid.SampledFrom(others).Draw(t, "other")}
			before := p.Judge(other, permit.JudgeOptions{})
			allowed := before.Verdict == permit.Allow
			for i, s := range steps {
				after := s.Judge(other, permit.JudgeOptions{})
				if allowed && after.Verdict != permit.Allow {
					t.Fatalf("%v is allowed by less than %q, but not by that", other, proposals[i].Rules)
				}
				allowed = after.Verdict == permit.Allow
				if before.Verdict == permit.Deny && allowed {
					t.Fatalf("%v was denied and is allowed by %q", other, proposals[i].Rules)
				}
				if i == 0 && allowed && before.Verdict != permit.Allow && !onlyAsked(j, before) {
					t.Fatalf("%v is allowed by %q, which should only allow %v", other, proposals[i].Rules, asked)
				}
			}
		}
	})
}

// onlyAsked reports whether everything that is asked in one judgement was asked in the other.
func onlyAsked(asked, other permit.Judgement) bool {
	for _, d := range other.Decisions {
		if d.Verdict == permit.Ask && !slices.ContainsFunc(asked.Decisions, func(a permit.Decision) bool {
			return a.Verdict == permit.Ask && (a.Action == d.Action || a.Stricter != "" && a.Stricter == d.Stricter)
		}) {
			return false
		}
	}
	return true
}

func TestNarrowForSeveralProfiles(t *testing.T) {
	t.Parallel()
	some := []*permit.Profile{mustPreset(t, "standard"), mustPreset(t, "open"), mustCompile(t, permit.Rules{Ask: []string{`tool:bash:.*`}})}
	var all []permit.Judgement
	for _, p := range some {
		all = append(all, p.Judge([]permit.Request{{Tool: "bash", Command: "make"}}, permit.JudgeOptions{}))
	}
	j := permit.Strictest(all...)
	if got := Propose(j); len(got) == 0 || !slices.Equal(got[0].Rules, []string{`tool:bash:make`}) {
		t.Errorf("%+v", got)
	}
	j = permit.Strictest(append(all, mustPreset(t, "locked").Judge([]permit.Request{{Tool: "bash", Command: "make"}}, permit.JudgeOptions{}))...)
	if got := Propose(j); got != nil {
		t.Errorf("denied by one, and yet %+v", got)
	}
}
