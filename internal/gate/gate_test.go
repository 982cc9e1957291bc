package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/overrides"
	"chorus/internal/permit"
	"chorus/internal/settings"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// toucher is a tool that would touch what a test says.
type toucher []tool.Access

func (toucher) Spec() tool.Spec { return tool.Spec{Name: "toucher"} }

func (x toucher) Access([]byte) []tool.Access { return x }

func (toucher) Run(context.Context, []byte) (tool.Result, error) { return tool.Result{}, nil }

func question(senders []transcript.Sender, touches ...tool.Access) agent.ProposedCall {
	return agent.ProposedCall{Tool: toucher(touches), Args: []byte(`{}`), Touches: touches, Senders: senders}
}

var (
	ada   = chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
	boss  = chat.Principal{Kind: "discord", ID: "1", Roles: []string{"admin"}}
	guest = chat.Principal{Kind: "discord", ID: "2"}
	token = chat.Principal{Kind: chat.TokenHolder, ID: "ci"}
	robot = chat.Principal{Kind: chat.OtherAgent, ID: "helper"}
)

func onBehalf(who, of chat.Principal) chat.Principal {
	who.For = &of
	return who
}

func newGate(bot *config.Bot, canAsk bool) *Judge {
	row := journal.Thread{ID: "discord:1/2:3@helper", Place: "1/2", Agent: "helper"}
	return &Judge{Limits: newLimits(bot, row), Choice: withOverrides(overrides.Values{CanAsk: canAsk}), Work: engine.Work{Seq: 1},
		Place: permit.JudgeOptions{Who: permit.Who{Agent: row.Agent, Channel: row.Place}}}
}

func said(who chat.Principal, t chat.Terms) transcript.Sender {
	return transcript.Sender{Principal: who, Terms: t, Seq: 1}
}

func bashed(command string) tool.Access { return tool.Access{Tool: "bash", Command: command} }

func TestWhoseRightsCount(t *testing.T) {
	t.Parallel()
	open := func(more ...config.Grant) *config.Bot {
		return &config.Bot{Permissions: "open", Access: more, Profiles: map[string]config.Profile{"mine": {Allow: []string{`tool:read:.*`}}}}
	}
	for _, c := range []struct {
		name    string
		bot     *config.Bot
		senders []transcript.Sender
		touch   tool.Access
		want    approval.Verdict
		why     string
	}{
		{"the terminal is not limited", open(), []transcript.Sender{said(ada, chat.Terms{})}, bashed("make"), approval.Allow, ""},
		{"others are standard", open(), []transcript.Sender{said(guest, chat.Terms{})}, bashed("make"), approval.Pending, "profile standard of discord wants it asked"},
		{"and so are tokens", open(), []transcript.Sender{said(token, chat.Terms{})}, bashed("make"), approval.Pending, "profile standard of token"},
		{"never more than the agent", &config.Bot{Permissions: "locked", Access: []config.Grant{{To: "discord", Profile: "open"}}},
			[]transcript.Sender{said(boss, chat.Terms{Profile: "open"})}, bashed("make"), approval.Deny, "no rule of profile locked allows"},
		{"the strictest of all senders", open(config.Grant{To: "discord:2", Profile: "locked"}),
			[]transcript.Sender{said(ada, chat.Terms{}), said(guest, chat.Terms{})}, bashed("make"), approval.Deny, "no rule of profile locked of discord:2 allows tool:bash:make"},
		{"the closest name", open(config.Grant{To: "anyone", Profile: "locked"}, config.Grant{To: "role:admin", Profile: "open"}),
			[]transcript.Sender{said(boss, chat.Terms{})}, bashed("make"), approval.Allow, ""},
		{"anyone is the terminal too", open(config.Grant{To: "anyone", Profile: "locked"}), []transcript.Sender{said(ada, chat.Terms{})}, bashed("make"), approval.Deny, "locked of anyone"},
		{"a role of one platform", open(config.Grant{To: "token/role:admin", Profile: "open"}), []transcript.Sender{said(boss, chat.Terms{})}, bashed("make"), approval.Pending, "standard of discord"},
		{"nobody", open(), []transcript.Sender{said(chat.Principal{}, chat.Terms{})}, bashed("true"), approval.Deny, "nobody in particular has no rights"},
		{"an agent by itself", open(), []transcript.Sender{said(robot, chat.Terms{})}, bashed("true"), approval.Deny, "agent:helper has no rights here"},
		{"an agent for somebody", open(), []transcript.Sender{said(onBehalf(robot, guest), chat.Terms{})}, bashed("make"), approval.Pending, "standard of discord"},
		{"an agent that may, for somebody who may not", open(config.Grant{To: "agent", Profile: "open"}, config.Grant{To: "discord", Profile: "locked"}),
			[]transcript.Sender{said(onBehalf(robot, guest), chat.Terms{})}, bashed("make"), approval.Deny, "locked of discord"},
		{"a narrower profile may be asked for", open(config.Grant{To: "discord", Profile: "open"}), []transcript.Sender{said(boss, chat.Terms{Profile: "locked"})}, bashed("make"), approval.Deny, "profile locked allows"},
		{"a file only by an editor", open(), []transcript.Sender{said(guest, chat.Terms{Profile: "/etc/passwd"})}, bashed("make"), approval.Deny, `discord:2 may not ask for profile "/etc/passwd"`},
		{"one that is there no more", open(), []transcript.Sender{said(ada, chat.Terms{Profile: "gone.yaml"})}, bashed("make"), approval.Deny, "gone.yaml"},
		{"one's own yes", open(), []transcript.Sender{said(guest, chat.Terms{Yes: true})}, bashed("make"), approval.Allow, ""},
		{"another's yes", open(), []transcript.Sender{said(ada, chat.Terms{Yes: true}), said(guest, chat.Terms{})}, bashed("make"), approval.Pending, ""},
		{"the same person's earlier yes", open(), []transcript.Sender{said(guest, chat.Terms{Yes: true}), said(guest, chat.Terms{})}, bashed("make"), approval.Allow, ""},
		{"the same person's later yes", open(), []transcript.Sender{said(guest, chat.Terms{}), said(guest, chat.Terms{Yes: true})}, bashed("make"), approval.Pending, ""},
		{"the yes of an agent", open(config.Grant{To: "agent", Profile: "standard"}), []transcript.Sender{said(robot, chat.Terms{Yes: true})}, bashed("make"), approval.Pending, ""},
	} {
		got := newGate(c.bot, true).Judge(question(c.senders, c.touch), chat.Principal{})
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.why) {
			t.Errorf("%s: %s %q, want %s %q", c.name, got.Verdict, got.Reason, c.want, c.why)
		}
	}
}

// A channel's profile holds for everybody in it, whoever they are and whatever they ask for.
func TestRightsOfAChannel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]approval.Verdict{"1/2": approval.Deny, "2": approval.Deny, "discord:1/*": approval.Deny, "1/*": approval.Deny, "1/3": approval.Allow, "discord:2/*": approval.Allow} {
		bot := &config.Bot{Permissions: "open", Channels: []config.Channel{{Name: name, Permissions: "locked"}}}
		got := newGate(bot, true).Judge(question([]transcript.Sender{said(ada, chat.Terms{Profile: "open", Yes: true})}, bashed("make")), ada)
		if got.Verdict != want || want == approval.Deny && !strings.Contains(got.Reason, "locked of channel "+name) {
			t.Errorf("%s: %s %s", name, got.Verdict, got.Reason)
		}
	}
}

// An agent's rights are changed only on the word of people who may change them.
func TestSelfEdit(t *testing.T) {
	t.Parallel()
	both := []transcript.Sender{said(ada, chat.Terms{}), said(boss, chat.Terms{})}
	for _, c := range []struct {
		detail  string
		senders []transcript.Sender
		want    approval.Verdict
	}{
		{"permissions open", both[:1], approval.Allow},
		{"permissions mine", both[:1], approval.Allow},
		{"permissions", both[:1], approval.Deny},
		{"permissions locked", both[1:], approval.Deny}, // no editor
		{"permissions locked", both, approval.Deny},
		{"access anyone open", both[1:], approval.Deny},
		{`{"permissions":"open"}`, both[1:], approval.Deny}, // whatever it means
		{"access anyone open", both[:1], approval.Allow},
		{"docs a.md", both[1:], approval.Allow},
		{"permissions locked", []transcript.Sender{said(onBehalf(robot, ada), chat.Terms{})}, approval.Allow},
		{"permissions locked", []transcript.Sender{said(onBehalf(robot, boss), chat.Terms{})}, approval.Deny},
	} {
		for _, touch := range []tool.Access{{Tool: "self_edit", Detail: c.detail}} {
			got := newGate(&config.Bot{Permissions: "open"}, true).Judge(question(c.senders, touch), ada)
			if got.Verdict != c.want {
				t.Errorf("%s by %d: %s %s", c.detail, len(c.senders), got.Verdict, got.Reason)
			}
		}
	}
	old := newGate(&config.Bot{Permissions: "open"}, true).Judge(question(both[1:], tool.Access{Tool: "self_edit_permissions", Detail: "open"}), boss)
	if old.Verdict != approval.Deny || !strings.Contains(old.Reason, "discord:1 may not change permissions") {
		t.Errorf("%+v", old)
	}
}

var wide = map[approval.Verdict]int{approval.Allow: 0, approval.Pending: 1, approval.End: 1, approval.Deny: 2}

func anyRequest() *rapid.Generator[tool.Access] {
	return rapid.SampledFrom([]tool.Access{bashed("make"), bashed("git push"), bashed("git status && rm -rf build"), bashed("cat $x"), bashed("rm -rf /"),
		{Tool: "write", Detail: "a.go"}, {Tool: "read", Detail: "a.go"}, {Tool: "read", Detail: "/etc/passwd"}, {Tool: "mcp__x__y", Detail: "{}"}, {Tool: "work_notes", Detail: "x"}})
}

var someProfiles = []string{"open", "standard", "guarded", "locked", "mine"}

func anyBot(t *rapid.T) *config.Bot {
	profile := rapid.SampledFrom(someProfiles)
	bot := &config.Bot{Permissions: profile.Draw(t, "agent"), Profiles: map[string]config.Profile{"mine": {
		Allow: []string{`tool:read:.*`, `{"rule":"tool:bash:make","roles":["admin"]}`}, Ask: []string{`tool:bash:.*`},
		Deny: []string{`{"rule":"tool:bash:git .*","roles":["owner"]}`}}}}
	for _, to := range []string{"local", "discord", "role:admin", "discord:2", "token", "agent", "anyone"} {
		if rapid.Bool().Draw(t, to) {
			bot.Access = append(bot.Access, config.Grant{To: to, Profile: profile.Draw(t, "profile of "+to)})
		}
	}
	if rapid.Bool().Draw(t, "a channel") {
		bot.Channels = []config.Channel{{Name: "1/*", Permissions: profile.Draw(t, "channel")}}
	}
	return bot
}

func anySender() *rapid.Generator[transcript.Sender] {
	who := []chat.Principal{ada, boss, guest, token, robot}
	return rapid.Custom(func(t *rapid.T) transcript.Sender {
		p := rapid.SampledFrom(who).Draw(t, "who")
		if rapid.IntRange(0, 4).Draw(t, "acts for somebody") == 0 {
			p = onBehalf(p, rapid.SampledFrom(who).Draw(t, "for"))
		}
		asked := rapid.SampledFrom(append([]string{"", "", ""}, someProfiles...)).Draw(t, "asked")
		return transcript.Sender{Principal: p, Terms: chat.Terms{Profile: asked, Yes: rapid.IntRange(0, 3).Draw(t, "yes") == 0}, Seq: 1}
	})
}

// alone is what one profile says of a request by somebody, asked without the gate.
func alone(t *rapid.T, bot *config.Bot, g *Judge, name string, who chat.Principal, touch tool.Access) int {
	p, err := settings.Profile(bot, name)
	if err != nil {
		t.Fatal(err)
	}
	place := g.Place
	place.Who.Roles = who.Roles
	return int(p.Judge([]permit.Request{{Tool: touch.Tool, Detail: touch.Detail, Command: touch.Command}}, place).Verdict)
}

// least is the verdict below which nothing of a sender can be: their own, that of
// everybody they act for, the channel's, and the agent's, or the one they asked for.
func least(t *rapid.T, bot *config.Bot, g *Judge, s transcript.Sender, touch tool.Access) int {
	worst := 0
	for at := &s.Principal; at != nil; at = at.For {
		granted := ""
		for _, to := range []string{at.String(), "role:admin", string(at.Kind), "anyone"} {
			i := slices.IndexFunc(bot.Access, func(x config.Grant) bool { return x.To == to })
			if i >= 0 && granted == "" && (to != "role:admin" || slices.Contains(at.Roles, "admin")) {
				granted = bot.Access[i].Profile
			}
		}
		if granted == "" {
			granted = map[chat.PrincipalKind]string{chat.LocalUser: "open", "discord": "standard", chat.TokenHolder: "standard"}[at.Kind]
		}
		switch {
		case granted != "":
			worst = max(worst, alone(t, bot, g, granted, *at, touch))
		case at.For == nil:
			worst = 2
		default:
			continue // counts as whoever it acts for
		}
		for _, c := range bot.Channels {
			worst = max(worst, alone(t, bot, g, c.Permissions, *at, touch))
		}
		if s.Terms.Profile != "" {
			worst = max(worst, alone(t, bot, g, s.Terms.Profile, *at, touch))
		}
		editor := at.Kind == chat.LocalUser // nobody else is by default
		if s.Terms.Profile == "" || !editor {
			worst = max(worst, alone(t, bot, g, bot.Permissions, *at, touch))
		}
	}
	return worst
}

// Whoever the senders are, whatever they ask for and wherever it is: a call is never
// judged more widely than any one of them, the channel and the agent allow; another
// sender never widens; and it is the same after a restart.
func TestGateNeverWidens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bot := anyBot(t)
		g := newGate(bot, rapid.Bool().Draw(t, "can ask"))
		touch := anyRequest().Draw(t, "request")
		senders := rapid.SliceOfN(anySender(), 1, 4).Draw(t, "senders")
		before := 0
		for n := 1; n <= len(senders); n++ {
			some := folded(t, senders[:n], rapid.Bool().Draw(t, "restart"))
			got := g.Judge(question(some, touch), chat.Principal{})
			if wide[got.Verdict] < before {
				t.Fatalf("%+v widened it to %s", senders[n-1], got.Verdict)
			}
			before = wide[got.Verdict]
			for _, s := range senders[:n] {
				worst := least(t, bot, g, s, touch)
				yes := slices.ContainsFunc(senders[:n], func(x transcript.Sender) bool { return x.Terms.Yes && x.Principal.Same(s.Principal) })
				if worst == 1 && yes {
					worst = 0 // their own answer
				}
				// What they said without a profile of their own may be on the terms of what they said before.
				inherits := s.Terms.Profile == "" && slices.ContainsFunc(senders[:n], func(x transcript.Sender) bool { return x.Terms.Profile != "" && x.Principal.Same(s.Principal) })
				if before < worst && !inherits {
					t.Fatalf("%s, though %+v may at best have %d: %s", got.Verdict, s, worst, got.Reason)
				}
			}
			if again := g.Judge(question(folded(t, senders[:n], true), touch), chat.Principal{}); again.Verdict != got.Verdict || again.Reason != got.Reason {
				t.Fatalf("after a restart %+v, before %+v", again, got)
			}
		}
	})
}

// folded are the senders as a thread's journal has them: the first begins a run, the
// others steer it.
func folded(t *rapid.T, senders []transcript.Sender, restart bool) []transcript.Sender {
	log := transcript.New(nil)
	tell := func(body chat.Body) int64 {
		seq := log.Seq() + 1
		if err := log.Apply(chat.Event{Thread: "discord:1/2:3", Seq: seq, Body: body}); err != nil {
			t.Fatal(err)
		}
		return seq
	}
	for i, s := range senders {
		var seq int64
		if i == 0 {
			seq = tell(chat.Received{Principal: s.Principal, Terms: s.Terms, Prompt: true, Blocks: chat.TextBlocks("x")})
			tell(chat.RunStarted{Run: "r", Principal: s.Principal, Terms: s.Terms})
		} else {
			seq = tell(chat.Steered{Principal: s.Principal, Terms: s.Terms, Blocks: chat.TextBlocks("x")})
		}
		tell(chat.Took{Run: "r", Seqs: []int64{seq}})
		if restart {
			state, err := log.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if log, err = transcript.Restore(state, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return log.Run().Senders
}

// withOverrides is a thread with overrides of its own.
func withOverrides(v overrides.Values) *overrides.Thread {
	t := &overrides.Thread{}
	t.Set(func(now *overrides.Values) { *now = v })
	return t
}

func newLimits(bot *config.Bot, row journal.Thread) *Limits {
	return LimitsOf(bot, row, func(name string) (*permit.Profile, error) { return settings.Profile(bot, name) })
}

type anyShell struct{}

func (anyShell) Spec() tool.Spec { return tool.Spec{Name: "bash"} }

func (anyShell) Access([]byte) []tool.Access { return []tool.Access{{Tool: "bash", Command: "make"}} }

func (anyShell) Run(context.Context, []byte) (tool.Result, error) { return tool.Result{}, nil }

// TestTermsTravelWithThePrompt: what one session was allowed is no use to another's prompt.
func TestTermsTravelWithThePrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		session overrides.Values
		work    engine.Work
		want    approval.Verdict
	}{
		{"its own prompt with --yes", overrides.Values{Terms: chat.Terms{By: "a", Yes: true}}, engine.Work{Terms: chat.Terms{By: "a", Yes: true}, Seq: 5}, approval.Allow},
		{"approve-all came later", overrides.Values{Terms: chat.Terms{By: "a", Yes: true}}, engine.Work{Terms: chat.Terms{By: "a"}, Seq: 5}, approval.Allow},
		{"another session's prompt", overrides.Values{Terms: chat.Terms{By: "a", Yes: true}, Start: 3}, engine.Work{Terms: chat.Terms{By: "b"}, Seq: 5}, approval.End},
		{"another session's prompt, with a terminal here", overrides.Values{Terms: chat.Terms{By: "a", Yes: true}, CanAsk: true}, engine.Work{Terms: chat.Terms{By: "b"}, Seq: 5}, approval.Pending},
		{"opened to go on with it", overrides.Values{Terms: chat.Terms{By: "a", Yes: true}, Start: 7}, engine.Work{Terms: chat.Terms{By: "b"}, Seq: 5}, approval.Allow},
		{"another session's --yes is its own affair", overrides.Values{Terms: chat.Terms{By: "a"}}, engine.Work{Terms: chat.Terms{By: "b", Yes: true}, Seq: 5}, approval.Allow},
		{"nobody to ask", overrides.Values{Terms: chat.Terms{By: "a"}}, engine.Work{Terms: chat.Terms{By: "a"}, Seq: 5}, approval.End},
	} {
		g := &Judge{Limits: newLimits(&config.Bot{Permissions: "standard"}, journal.Thread{}), Choice: withOverrides(c.session), Work: c.work}
		q := agent.ProposedCall{Tool: anyShell{}, Args: json.RawMessage(`{}`), Touches: anyShell{}.Access(nil)}
		if got := g.Judge(q, chat.Principal{Kind: chat.LocalUser, ID: "ada"}); got.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Verdict, c.want)
		}
	}
}
