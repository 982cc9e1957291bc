package permit

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNarrow(t *testing.T) {
	t.Parallel()
	asks := Rules{
		Ask:  []string{`.*`},
		Deny: []string{`tool:bash:rm( .*)?`, `tool:write:secrets/.*`},
	}
	for _, c := range []struct {
		request Request
		want    []string // the rules of each proposal, joined by a space
	}{
		{Request{Tool: "bash", Command: "go test ./..."}, []string{`tool:bash:go test \./\.\.\.`, `tool:bash:go test(?: .*)?`}},
		{Request{Tool: "bash", Command: "npm run build --fast"}, []string{`tool:bash:npm run build --fast`, `tool:bash:npm run build(?: .*)?`}},
		{Request{Tool: "bash", Command: "python3 x.py 1"}, []string{`tool:bash:python3 x\.py 1`, `tool:bash:python3 x\.py(?: .*)?`}},
		{Request{Tool: "bash", Command: "./x.sh 1"}, []string{`tool:bash:\./x\.sh 1`, `tool:bash:\./x\.sh(?: .*)?`}},
		{Request{Tool: "bash", Command: "curl https://example.com"}, []string{`tool:bash:curl https://example\.com`}},
		{Request{Tool: "bash", Command: "sudo make"}, []string{`tool:bash:sudo make`}},
		{Request{Tool: "bash", Command: "docker run --rm alpine ls"}, []string{`tool:bash:docker run --rm alpine ls`}},
		{Request{Tool: "bash", Command: "npm publish"}, []string{`tool:bash:npm publish`}},
		{Request{Tool: "bash", Command: "timeout 5 go vet ./..."}, []string{`tool:bash:go vet \./\.\.\.`, `tool:bash:go vet(?: .*)?`}},
		{Request{Tool: "bash", Command: "X=1"}, []string{`tool:bash:X=1`}},
		{Request{Tool: "bash", Command: "ls && go vet"}, []string{`tool:bash:ls tool:bash:go vet`, `tool:bash:ls(?: .*)? tool:bash:go vet(?: .*)?`}},
		{Request{Tool: "git", Detail: "fetch origin"}, []string{`tool:git:fetch origin`, `tool:git:fetch(?: .*)?`}},
		{Request{Tool: "git", Detail: "push origin"}, []string{`tool:git:push origin`}},
		{Request{Tool: "web_fetch", Detail: "https://example.com/a"}, []string{`tool:web_fetch:https://example\.com/a`, `tool:web_fetch:https://example\.com(?:[/?#].*)?`}},
		{Request{Tool: "web_fetch", Detail: "https://a@example.com/"}, []string{`tool:web_fetch:https://a@example\.com/`}},
		{Request{Tool: "mcp__a__b", Detail: `{"x":1}`}, []string{`tool:mcp__a__b:\{"x":1\}`, `tool:mcp__a__b:.*`}},
		{Request{Tool: "self_edit", Detail: "permissions open"}, []string{`tool:self_edit:permissions open`}},
		{Request{Tool: "write", Detail: ".git/hooks/x"}, []string{`tool:write:\.git/hooks/x`}},
		{Request{Tool: "write", Detail: "/etc/x"}, []string{`tool:write:/etc/x`}},
		// Nothing helps against these.
		{Request{Tool: "bash", Command: `eval "$X"`}, nil},
		{Request{Tool: "bash", Command: `ls; $X`}, nil},
		{Request{Tool: "bash", Command: `PATH=. ls`}, nil},
		{Request{Tool: "bash", Command: "rm x"}, nil},
		{Request{Tool: "bash", Command: "ls | xargs r?"}, nil},
		{Request{Tool: "bash", Command: "mkfs.ext4 /dev/sda"}, nil},
		{Request{Tool: "write", Detail: "secrets/x"}, nil},
		{Request{Tool: "bash", Command: "make " + strings.Repeat("x", longestPattern)}, nil},
	} {
		j := mustCompile(t, asks).Judge([]Request{c.request}, JudgeOptions{})
		var got []string
		for _, p := range Narrow(j) {
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
	got := Narrow(j, history...)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	if exact := got[0]; len(exact.Also) != 0 || exact.Means != "exactly this" {
		t.Errorf("exactly: %+v", exact)
	}
	if all := got[1]; !slices.Equal(all.Also, []string{"go test ./a", "go test $X"}) || !strings.Contains(all.Means, "go test with any arguments") {
		t.Errorf("any arguments: %+v", all)
	}
	// A git command has two names, and both are asked for.
	got = Narrow(judged(mustPreset(t, "standard"), "git fetch origin"), "git fetch", "git push")
	if len(got) != 2 || !slices.Equal(got[0].Rules, []string{`tool:bash:git fetch origin`, `tool:git:fetch origin`}) || !slices.Equal(got[1].Also, []string{"git fetch"}) {
		t.Errorf("git fetch: %+v", got)
	}
	if got := Narrow(judged(mustPreset(t, "standard"), "git push")); len(got) != 1 {
		t.Errorf("git push: %+v", got)
	}
	if got := Narrow(judged(mustPreset(t, "open"), "ls")); got != nil {
		t.Errorf("allowed already: %+v", got)
	}
	file := mustCompile(t, Rules{Ask: []string{`.*`}}).Judge([]Request{{Tool: "edit", Detail: "src/a.go"}}, JudgeOptions{})
	got = Narrow(file, "tool:edit:src/b.go", "tool:edit:src/c/d.go", "tool:edit:src/.git/config", "tool:write:src/a.go")
	if len(got) != 3 || len(got[0].Also) != 0 || !slices.Equal(got[1].Also, []string{"tool:edit:src/b.go"}) || !slices.Equal(got[2].Also, []string{"tool:edit:src/b.go", "tool:edit:src/c/d.go"}) {
		t.Errorf("edit: %+v", got)
	}
}

// What is proposed allows what was asked, each step what the one before it does,
// and none anything that is denied, opaque or catastrophic.
func TestNarrowKeepsItsPromises(t *testing.T) {
	t.Parallel()
	var requests []Request
	corpus(t, func(_ *Profile, _ Verdict, command, _ string) {
		requests = append(requests, Request{Tool: "bash", Command: command})
	})
	for _, s := range []string{"read", "write", "edit", "git", "web_fetch", "mcp__a__b", "upload"} {
		for _, d := range []string{"a/x", "a/b/c", "x", "push origin", "status", "../x", "/x", "https://example.com/x", ".git/x", "@docs/a", "a/.git/x"} {
			requests = append(requests, Request{Tool: s, Detail: d})
		}
	}
	others := slices.Clone(requests)
	rapid.Check(t, func(t *rapid.T) {
		r := someRules(t)
		r.Ask = append(slices.Clone(r.Ask), `.*`)
		p := must(t, r)
		asked := []Request{rapid.SampledFrom(requests).Draw(t, "request")}
		j := p.Judge(asked, JudgeOptions{})
		proposals := Narrow(j)
		if len(proposals) > 0 && j.Verdict != Ask {
			t.Fatalf("%v is %s, and yet %+v", asked, j.Verdict, proposals)
		}
		var steps []*Profile
		for _, prop := range proposals {
			more := r
			more.Allow = slices.Concat(r.Allow, prop.Rules)
			steps = append(steps, must(t, more))
			if v := steps[len(steps)-1].Judge(asked, JudgeOptions{}).Verdict; v != Allow {
				t.Fatalf("%v is %s with %q", asked, v, prop.Rules)
			}
		}
		if len(steps) == 0 {
			return
		}
		for range 8 {
			other := []Request{rapid.SampledFrom(others).Draw(t, "other")}
			before := p.Judge(other, JudgeOptions{})
			allowed := before.Verdict == Allow
			for i, s := range steps {
				after := s.Judge(other, JudgeOptions{})
				if allowed && after.Verdict != Allow {
					t.Fatalf("%v is allowed by less than %q, but not by that", other, proposals[i].Rules)
				}
				allowed = after.Verdict == Allow
				if before.Verdict == Deny && allowed {
					t.Fatalf("%v was denied and is allowed by %q", other, proposals[i].Rules)
				}
				if i == 0 && allowed && before.Verdict != Allow && !onlyAsked(j, before) {
					t.Fatalf("%v is allowed by %q, which should only allow %v", other, proposals[i].Rules, asked)
				}
			}
		}
	})
}

// onlyAsked says whether everything that is asked in one judgement was in the other.
func onlyAsked(asked, other Judgement) bool {
	for _, d := range other.Decisions {
		if d.Verdict == Ask && !slices.ContainsFunc(asked.Decisions, func(a Decision) bool {
			return a.Verdict == Ask && (a.Action == d.Action || a.tight != "" && a.tight == d.tight)
		}) {
			return false
		}
	}
	return true
}

func TestNarrowForSeveralProfiles(t *testing.T) {
	t.Parallel()
	some := []*Profile{mustPreset(t, "standard"), mustPreset(t, "open"), mustCompile(t, Rules{Ask: []string{`tool:bash:.*`}})}
	j := JudgeAll(some, []Request{{Tool: "bash", Command: "make"}}, JudgeOptions{})
	if got := Narrow(j); len(got) == 0 || !slices.Equal(got[0].Rules, []string{`tool:bash:make`}) {
		t.Errorf("%+v", got)
	}
	j = JudgeAll(append(some, mustPreset(t, "locked")), []Request{{Tool: "bash", Command: "make"}}, JudgeOptions{})
	if got := Narrow(j); got != nil {
		t.Errorf("denied by one, and yet %+v", got)
	}
}
