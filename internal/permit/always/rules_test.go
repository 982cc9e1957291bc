package always

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/permit"
)

var ada = Grantee{By: "local:ada", Agent: "helper", Dir: "/repo"}

func kept(t interface{ Fatal(...any) }, whose Grantee, rules ...string) *Rules {
	k, err := New([]Entry{{By: whose.By, Agent: whose.Agent, Dir: whose.Dir, Channel: whose.Channel, Rules: rules}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeptHoldsForItsGiverAlone(t *testing.T) {
	t.Parallel()
	k := kept(t, ada, `tool:bash:make`)
	j := judged(mustPreset(t, "standard"), "make")
	if used, ok := k.Allow(j, ada); !ok || len(used) != 1 || used[0].Rules[0] != `tool:bash:make` {
		t.Errorf("%v %v", used, ok)
	}
	for _, other := range []Grantee{{}, {By: "local:eve", Agent: "helper", Dir: "/repo"}, {By: "local:ada", Agent: "other", Dir: "/repo"},
		{By: "local:ada", Agent: "helper", Dir: "/repo/sub"}, {By: "local:ada", Agent: "helper", Dir: "/repo", Channel: "ops"}} {
		if _, ok := k.Allow(j, other); ok {
			t.Errorf("holds for %+v", other)
		}
	}
}

// However wide a rule in the file is: what cannot be resolved is asked, and what is denied
// is denied.
func TestKeptCannotReachFurther(t *testing.T) {
	t.Parallel()
	k := kept(t, ada, `.*`, `tool:bash:.*`)
	asks := mustCompile(t, permit.Rules{Ask: []string{`tool:bash:.*`}, Deny: []string{`tool:bash:git push.*`}})
	for command, want := range map[string]bool{"make": true, "make && ls": true, `eval "$X"`: false, "$X": false, "git push": false, "rm -rf /": false,
		"bash -c \"$X\"": false, "make; git push": false} {
		if _, ok := k.Allow(judged(asks, command), ada); ok != want {
			t.Errorf("%s: %v", command, ok)
		}
	}
	asks = mustCompile(t, permit.Rules{Ask: []string{`tool:bash:.*`}})
	if _, ok := k.Allow(judged(asks, `eval "$X"`), ada); ok {
		t.Error("what is opaque was allowed where nothing is denied")
	}
	if _, ok := k.Allow(judged(mustPreset(t, "locked"), "make"), ada); ok {
		t.Error("what no rule allows was allowed")
	}
}

// A kept rule allows its command, nothing that the examples say is still asked, and nothing
// that is denied.
func TestKeptKeepsItsPromises(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"go", "git", "npm", "make", "./x.sh", "python3", "rm", "cp", "src/a.go", "build", "-v", "--all", "'a b'", "$X", "*.go",
		"fetch", "push", "test", "run", ";", "&&", "|", ">", "env", "timeout 5", "sudo", "../x", "bash -c 'ls'"})
	rapid.Check(t, func(t *rapid.T) {
		r := someRules(t)
		r.Ask = append(slices.Clone(r.Ask), `.*`)
		p := mustCompile(t, r)
		command := strings.Join(rapid.SliceOfN(words, 1, 6).Draw(t, "words"), " ")
		asked := []permit.Request{{Tool: "bash", Command: command}}
		if rapid.Bool().Draw(t, "other tool") {
			asked = someRequest(t)
		}
		j := p.Judge(asked, permit.JudgeOptions{})
		for _, prop := range Propose(j, Similar(j)...) {
			k := kept(t, ada, prop.Rules...)
			if _, ok := k.Allow(j, ada); !ok {
				t.Fatalf("%v is not allowed by %q", asked, prop.Rules)
			}
			for _, s := range prop.Still {
				if _, ok := k.Allow(p.Judge([]permit.Request{permit.RequestOf(s)}, permit.JudgeOptions{}), ada); ok {
					t.Fatalf("%s is allowed by %q, which was said to ask", s, prop.Rules)
				}
			}
			for _, s := range prop.Also {
				if _, ok := k.Allow(p.Judge([]permit.Request{permit.RequestOf(s)}, permit.JudgeOptions{}), ada); !ok {
					t.Fatalf("%s is not allowed by %q, which was said to", s, prop.Rules)
				}
			}
			deny := r
			deny.Deny = append(slices.Clone(r.Deny), `.*`)
			if _, ok := k.Allow(mustCompile(t, deny).Judge(asked, permit.JudgeOptions{}), ada); ok {
				t.Fatalf("%v is denied and yet allowed by %q", asked, prop.Rules)
			}
		}
	})
}

func TestKeptFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	k, err := New([]Entry{
		{By: "local:ada", Agent: "helper", Dir: "/a: b", At: at, Approval: "01x", Means: "exactly this", Rules: []string{`tool:bash:echo 'x' \{#y\n`, "tool:bash:a\nb"}},
		{By: "discord:1", Agent: "helper", Dir: "/r", Channel: "discord:g/c", At: at, Rules: []string{`tool:git:fetch(?: .*)?`}},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := k.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if !reflect.DeepEqual(again.List(), k.List()) {
		t.Errorf("%s\n%+v\n%+v", data, again.List(), k.List())
	}
	none, err := Parse(nil)
	if err != nil || len(none.List()) != 0 {
		t.Errorf("%v %v", none, err)
	}
	if data, err = none.Encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(data); err != nil {
		t.Errorf("the empty file: %v", err)
	}
	for text, want := range map[string]string{
		"- {by: a, agent: b, dir: /c, rules: ['tool:(?!x)']}": "entry 1 ",
		"- {by: a, agent: b, dir: /c}":                        "no rules",
		"- {agent: b, dir: /c, rules: [x]}":                   "by is missing",
		"- {by: a, agent: b, dir: /c, rule: [x]}":             "[1:",
		"- [": "[1:",
		`- {by: a, agent: b, dir: /c, rules: ['{"rule":"x","roles":["r"]}']}`:                "expected only a pattern",
		"- {by: a, agent: b, dir: /c, rules: [x]}\n- {by: a, agent: b, dir: /c, rules: [x]}": "another entry has this id",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("- {by: a, agent: b, dir: /c, rules: [x]}"))
	f.Add([]byte("- id: x\n  by: a\n  agent: b\n  dir: /c\n  rules:\n    - 'tool:bash:.*'\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err != nil {
			return
		}
		out, err := k.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out)
		if err != nil || len(again.List()) != len(k.List()) {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}
