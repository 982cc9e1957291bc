package permit

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRulesForSome(t *testing.T) {
	t.Parallel()
	asJSON := `{"allow":["tool:bash:ls.*",{"rule":"tool:bash:.*","roles":["admin"]}],` +
		`"ask":[{"rule":"tool:web_fetch:.*","agents":["scout"],"channels":["ops","dev"]}],"deny":[{"rule":"tool:bash:git push.*","roles":["guest"]}]}`
	asYAML := `
allow:
  - tool:bash:ls.*
  - {rule: 'tool:bash:.*', roles: [admin]}
ask:
  - rule: tool:web_fetch:.*
    channels: [ops, dev]
    agents: [scout]
deny:
  - rule: tool:bash:git push.*
    roles: [guest]
`
	for name, text := range map[string]string{"json": asJSON, "yaml": asYAML} {
		r, err := ParseRules([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := mustCompile(t, r)
		for _, c := range []struct {
			who     Who
			request Request
			want    Verdict
			scope   string
		}{
			{Who{}, Request{Tool: "bash", Command: "ls"}, Allow, ""},
			{Who{}, Request{Tool: "bash", Command: "make"}, Deny, ""},
			{Who{Roles: []string{"dev"}}, Request{Tool: "bash", Command: "make"}, Deny, ""},
			{Who{Roles: []string{"dev", "admin"}}, Request{Tool: "bash", Command: "make"}, Allow, "roles admin"},
			{Who{Roles: []string{"guest", "admin"}}, Request{Tool: "bash", Command: "git push"}, Deny, "roles guest"},
			{Who{Roles: []string{"admin"}}, Request{Tool: "bash", Command: "git push"}, Allow, "roles admin"},
			{Who{Agent: "scout", Channel: "dev"}, Request{Tool: "web_fetch", Detail: "x"}, Ask, "agents scout; channels ops, dev"},
			{Who{Agent: "scout", Channel: "lobby"}, Request{Tool: "web_fetch", Detail: "x"}, Deny, ""},
			{Who{Agent: "other", Channel: "dev"}, Request{Tool: "web_fetch", Detail: "x"}, Deny, ""},
			{Who{Channel: "dev"}, Request{Tool: "web_fetch", Detail: "x"}, Deny, ""},
		} {
			j := p.Judge([]Request{c.request}, JudgeOptions{Who: c.who})
			if j.Verdict != c.want || j.Decision.Scope != c.scope {
				t.Errorf("%s: %+v %+v: %s (%s), want %s (%s)", name, c.who, c.request, j.Verdict, j.Decision.Scope, c.want, c.scope)
			}
		}
		back, err := json.Marshal(p)
		if err != nil || name == "json" && string(back) != asJSON {
			t.Errorf("%s came back as %s, %v", name, back, err)
		}
		again, err := ParseRules(back)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s: %+v became %+v, %v", name, r, again, err)
		}
		if !p.Possible("web_fetch") || p.For(Who{}).Possible("web_fetch") || !p.For(Who{Agent: "scout", Channel: "ops"}).Possible("web_fetch") {
			t.Errorf("%s: possible only for some, and that is not said", name)
		}
	}
}

// A restricted rule that allows opaque commands holds only for those it names.
func TestOpaqueForSome(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, Rules{Allow: []string{`tool:bash:ba.*`, `{"rule":".*","roles":["admin"]}`}})
	for role, want := range map[string]Verdict{"admin": Allow, "dev": Ask} {
		if j := p.Judge([]Request{{Tool: "bash", Command: `bash -c "$X"`}}, JudgeOptions{Who: Who{Roles: []string{role}}}); j.Verdict != want {
			t.Errorf("%s: %s, want %s", role, j.Verdict, want)
		}
	}
}

func TestBrokenRestrictions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"allow":[{"rule":"x","roles":[]}]}`:             "roles is empty",
		`{"allow":[{"rule":"x","roles":[""]}]}`:           "empty name",
		`{"allow":[{"roles":["a"]}]}`:                     "without a pattern",
		`{"allow":[{"rule":"x","role":["a"]}]}`:           "role",
		`{"allow":[{"rule":"x","roles":"a"}]}`:            "roles",
		"allow:\n  - {rule: x, roles: []}\n":              "roles is empty",
		"allow:\n  - {rule: x, role: [a]}\n":              "role",
		"allow:\n  - [x]\n":                               "a rule is a pattern",
		`{"deny":["ok",{"rule":"a(?!b)","roles":["a"]}]}`: `deny pattern 2 "a(?!b)" at position 2: lookaround`,
		"deny:\n  - ok\n  - {rule: a(?!b), agents: [a]}":  `deny pattern 2 "a(?!b)" at position 2: lookaround`,
	} {
		r, err := ParseRules([]byte(text))
		if err == nil {
			_, err = Compile("mine", r)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
	for _, text := range []string{`{"rule":"x"} y`, `{`, `{"rule":"x","roles":[]}`} {
		if _, err := Compile("mine", Rules{Allow: []string{text}}); err == nil || !strings.Contains(err.Error(), "profile mine: invalid allow pattern 1") {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

var someNames = []string{"a", "b", "c"}

func someWho(t *rapid.T, label string) Who {
	return Who{
		Roles:   rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, 3, rapid.ID[string]).Draw(t, label+" roles"),
		Agent:   rapid.SampledFrom(append([]string{""}, someNames...)).Draw(t, label+" agent"),
		Channel: rapid.SampledFrom(append([]string{""}, someNames...)).Draw(t, label+" channel"),
	}
}

func restrictedRules(t *rapid.T) Rules {
	list := func(name string) []string {
		var out []string
		for range rapid.IntRange(0, 3).Draw(t, name) {
			r := Rule{Rule: rapid.SampledFrom(somePatterns).Draw(t, "pattern")}
			names := func(label string) []string {
				if !rapid.Bool().Draw(t, label) {
					return nil
				}
				return rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 1, 2, rapid.ID[string]).Draw(t, label+"s")
			}
			r.Roles, r.Agents, r.Channels = names("role"), names("agent"), names("channel")
			out = append(out, r.String())
		}
		return out
	}
	return Rules{Allow: list("allow"), Ask: list("ask"), Deny: list("deny")}
}

// judgeAll is what a call gets that several profiles must allow, as for a sender and an agent.
func judgeAll(profiles []*Profile, requests []Request, opt JudgeOptions) Judgement {
	var js []Judgement
	for _, p := range profiles {
		js = append(js, p.Judge(requests, opt))
	}
	return Strictest(js...)
}

func TestMoreProfilesNeverLoosen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var profiles []*Profile
		for range rapid.IntRange(1, 3).Draw(t, "profiles") {
			profiles = append(profiles, must(t, restrictedRules(t)))
		}
		req, opt := someRequest(t), JudgeOptions{Who: someWho(t, "who")}
		few := judgeAll(profiles, req, opt)
		more := judgeAll(append(slices.Clone(profiles), must(t, restrictedRules(t))), req, opt)
		if more.Verdict < few.Verdict {
			t.Fatalf("%v became %s from %s by one more profile", req, more.Verdict, few.Verdict)
		}
		strictest := Allow
		for _, p := range profiles {
			strictest = max(strictest, p.Judge(req, opt).Verdict)
		}
		if few.Verdict != strictest {
			t.Fatalf("%v is %s, and the strictest profile says %s", req, few.Verdict, strictest)
		}
		if got := judgeAll(rapid.Permutation(profiles).Draw(t, "order"), req, opt); got.Verdict != few.Verdict || rank(got.Decision) != rank(few.Decision) {
			t.Fatalf("%v is %s or %s, depending on the order", req, few.Verdict, got.Verdict)
		}
		for _, d := range few.Decisions {
			if d.Verdict > few.Verdict {
				t.Fatalf("%v is %s, and a part of it %s", req, few.Verdict, d.Verdict)
			}
		}
	})
	if j := judgeAll(nil, []Request{{Tool: "read", Detail: "a"}}, JudgeOptions{}); j.Verdict != Deny {
		t.Errorf("no profile at all says %s", j.Verdict)
	}
}

// A restricted allow or ask rule changes nothing for those it does not name, and a
// restricted deny neither.
func TestRestrictedRulesLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, req, who := restrictedRules(t), someRequest(t), someWho(t, "who")
		rule := Rule{Rule: rapid.SampledFrom(somePatterns).Draw(t, "more")}
		switch rapid.IntRange(0, 2).Draw(t, "restriction") {
		case 0:
			rule.Roles = []string{"nobody has it"}
		case 1:
			rule.Agents = []string{"another"}
		default:
			rule.Channels, rule.Roles = []string{"elsewhere"}, who.Roles
		}
		before := must(t, r).Judge(req, JudgeOptions{Who: who})
		l := rapid.SampledFrom([]*[]string{&r.Allow, &r.Ask, &r.Deny}).Draw(t, "list")
		*l = append(slices.Clone(*l), rule.String())
		if after := must(t, r).Judge(req, JudgeOptions{Who: who}); after.Verdict != before.Verdict {
			t.Fatalf("%v became %s from %s by %s", req, after.Verdict, before.Verdict, rule)
		}
	})
}

// For those it names, a restricted rule is like any other.
func TestRestrictedRulesHoldForThoseNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, req := someRules(t), someRequest(t)
		restrict := func(list []string) (out []string) {
			for _, s := range list {
				out = append(out, Rule{Rule: s, Roles: []string{"x", "y"}, Channels: []string{"c"}}.String())
			}
			return out
		}
		who := Who{Roles: []string{"z", "y"}, Channel: "c", Agent: "any"}
		plain := must(t, r).Judge(req, JudgeOptions{Who: who})
		for _, some := range []Rules{{restrict(r.Allow), r.Ask, r.Deny}, {r.Allow, restrict(r.Ask), restrict(r.Deny)}} {
			if got := must(t, some).Judge(req, JudgeOptions{Who: who}); got.Verdict != plain.Verdict {
				t.Fatalf("%v is %s plainly and %s with restrictions that name the asker", req, plain.Verdict, got.Verdict)
			}
		}
	})
}
