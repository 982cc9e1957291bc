package gate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/transcript"
)

// A tool hook that wants a call asked for has a person asked for what the rules allow; it never makes a no a question.
func TestAHooksQuestion(t *testing.T) {
	t.Parallel()
	bot := &config.Bot{Permissions: "open", Access: []config.Grant{{To: "discord:1", Profile: "open"}, {To: "discord:2", Profile: "locked"}}}
	for _, c := range []struct {
		name   string
		sender transcript.Sender
		canAsk bool
		want   approval.Verdict
		why    string
	}{
		{"what is allowed is asked for", said(ada, chat.Terms{}), true, approval.Pending, "it is Friday"},
		{"what would be asked for says both", said(token, chat.Terms{}), true, approval.Pending, "it is Friday; profile standard"},
		{"what is denied stays so", said(guest, chat.Terms{}), true, approval.Deny, "locked"},
		{"whoever said yes to everything is not asked", said(ada, chat.Terms{Yes: true}), true, approval.Allow, ""},
		{"where nobody can be asked it ends", said(ada, chat.Terms{}), false, approval.End, "it is Friday, and there is no terminal"},
	} {
		q := question([]transcript.Sender{c.sender}, bashed("make"))
		q.Ask = "it is Friday"
		got := newGate(bot, c.canAsk).Judge(q, chat.Principal{})
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.why) {
			t.Errorf("%s: %s %q, want %s %q", c.name, got.Verdict, got.Reason, c.want, c.why)
		}
	}
}

// Whatever the rules are, a hook's question never widens what would be ruled without it.
func TestAHooksQuestionNeverWidens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := newGate(anyBot(t), rapid.Bool().Draw(t, "can ask"))
		q := question(rapid.SliceOfN(anySender(), 1, 3).Draw(t, "senders"), anyRequest().Draw(t, "request"))
		without := g.Judge(q, chat.Principal{})
		q.Ask = "look at it"
		if with := g.Judge(q, chat.Principal{}); wide[with.Verdict] < wide[without.Verdict] {
			t.Fatalf("%+v became %+v", without, with)
		}
	})
}
