package discordtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
)

func isCard(m discordsim.Message) bool { return strings.Contains(m.Text(), "May I ") }

// asks says something that needs somebody's yes, and gives the card.
func (g *guildT) asks(who, command string) (prompt discordsim.ID, card discordsim.Message) {
	g.Helper()
	prompt = g.say(who, "general", fmt.Sprintf("call bash {\"command\":%q}\nend\nsay it is done", command))
	return prompt, g.message("card", func(m discordsim.Message) bool { return answers(prompt)(m) && isCard(m) && len(m.CustomIDs()) > 0 })
}

// decided waits for words on a card without buttons that answer it.
func (g *guildT) decided(card discordsim.ID, words string) {
	g.Helper()
	g.message("decision "+words, func(m discordsim.Message) bool {
		return m.ID == card && !strings.Contains(fmt.Sprint(m.CustomIDs()), "c1:yes") && strings.Contains(m.Text(), words)
	})
}

func TestDiscordApprovalByReply(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	ada := "<@" + g.User("ada").String() + ">"

	asked, card := g.asks("ada", "echo one > one.txt")
	no := g.reply("bob", card.ID, "yes")
	g.message("word to somebody who may not", func(m discordsim.Message) bool {
		return answers(no)(m) && strings.Contains(m.Text(), "You cannot answer this. Ask "+ada)
	})
	yes := g.reply("ada", card.ID, "yes: go for it")
	g.hasReaction(yes, "✅")
	g.decided(card.ID, "**Allowed** by "+ada+": go for it")
	g.hasReaction(asked, "✅")
	late := g.reply("ada", card.ID, "no")
	g.message("word about the late reply", func(m discordsim.Message) bool { return answers(late)(m) && strings.Contains(m.Text(), "Too late") })

	// Words that are neither are a no that the agent can read; while nobody is there they wait.
	asked, card = g.asks("ada", "echo two > two.txt")
	g.end()
	words := g.reply("ada", card.ID, "use another file instead")
	g.start()
	g.hasReaction(words, "✅")
	g.decided(card.ID, "**Denied** by "+ada+": use another file instead")
	g.hasReaction(asked, "✅") // a person's no goes back to the model, which ends the turn
	if got := g.lines(g.thread(asked)); !strings.Contains(got, "it is done") {
		t.Errorf("the conversation is %q", got)
	}
	// What is said to a question that is over is said to the conversation.
	g.hasReaction(g.reply("ada", card.ID, "say heard"), "✅")
	g.message("answer to a reply to an old card", func(m discordsim.Message) bool { return m.Text() == "heard" })
}

// Somebody answers a card in the moment in which it appears: Discord has not answered our call yet, nor shown us our own message.
func TestDiscordApprovalInTheVeryMoment(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	prompt := g.say("ada", "general", "call bash {\"command\":\"echo one > one.txt\"}\nend\ncall bash {\"command\":\"echo two > two.txt\"}\nend\nsay it is done")
	first := g.message("first card", func(m discordsim.Message) bool { return isCard(m) && strings.Contains(m.Text(), "one.txt") })
	g.settledRows()
	for _, f := range []discordsim.Fault{
		{Kind: discordsim.FaultLose, Event: "MESSAGE_CREATE", Count: 1},
		{Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/messages", Body: "two.txt", After: true, Count: 1},
	} {
		if _, err := g.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	g.click("ada", first.ID, "c1:yes:"+approvalOf(t, first))
	second := g.message("second card", func(m discordsim.Message) bool { return isCard(m) && strings.Contains(m.Text(), "two.txt") })
	yes := g.reply("ada", second.ID, "yes")
	g.hasReaction(yes, "✅")
	g.decided(second.ID, "**Allowed** by <@"+g.User("ada").String()+">")
	g.hasReaction(prompt, "✅")
}

func TestDiscordApprovalByReaction(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked, card := g.asks("ada", "echo one > one.txt")
	if err := g.React("bob", card.ID, "✅"); err != nil {
		t.Fatal(err)
	}
	if err := g.React("ada", card.ID, "❌"); err != nil {
		t.Fatal(err)
	}
	g.decided(card.ID, "**Denied** by <@"+g.User("ada").String()+">")
	g.hasReaction(asked, "✅")
	// On the question itself a cross ends everything.
	asked, card = g.asks("ada", "echo two > two.txt")
	if err := g.React("ada", asked, "❌"); err != nil {
		t.Fatal(err)
	}
	g.decided(card.ID, "No longer needed")
	g.message("word about the end", func(m discordsim.Message) bool { return answers(asked)(m) && strings.Contains(m.Text(), "topped") })
}

func TestDiscordApprovalByTwo(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "approvals: {by: two}\n"})
	asked, card := g.asks("ada", "echo two > two.txt")
	if !strings.Contains(card.Text(), "Two people must approve (0 of 2)") {
		t.Errorf("the card says %q", card.Text())
	}
	id := approvalOf(t, card)
	g.click("ada", card.ID, "c1:yes:"+id)
	g.click("ada", card.ID, "c1:yes:"+id)
	g.message("word about the second yes", func(m discordsim.Message) bool {
		return strings.Contains(m.Text(), "approved this already; another person must approve it too")
	})
	first := "Approved by <@" + g.User("ada").String() + "> (1 of 2)"
	g.message("first yes", func(m discordsim.Message) bool {
		return m.ID == card.ID && strings.Contains(m.Text(), first) && len(m.CustomIDs()) > 0
	})
	g.end()
	g.start()
	g.hasReaction(g.reply("bob", card.ID, "lgtm"), "✅")
	g.decided(card.ID, "**Allowed** by <@"+g.User("ada").String()+"> and <@"+g.User("bob").String()+">")
	g.hasReaction(asked, "✅")

	// Elsewhere both have the names that they had here.
	o, by := g.app.Service.Handler(), g.app.Service.LocalCaller()
	given, err := o.GetApproval(t.Context(), by, operations.ApprovalRef{ID: id})
	if err != nil || given.AnsweredByName != "ada (discord) and bob (discord)" {
		t.Errorf("answered by %q, %v", given.AnsweredByName, err)
	}
	list, err := o.Audit(t.Context(), by, operations.AuditQuery{Decision: "ask_approved"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Words != "by ada (discord) and bob (discord)" || !strings.Contains(list.Items[0].Detail, "discord:") {
		t.Errorf("the audit log says %+v, %v", list.Items, err)
	}
	if got := o.NameOf(t.Context(), "discord:"+g.User("bob").String()); got != "bob (discord)" { // who has only answered
		t.Errorf("bob is %q", got)
	}
}

// A question that is too long for a card can be read in full before it is answered, and after.
func TestDiscordApprovalDetails(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	long := "echo begin; " + strings.Repeat("echo and on; ", 120) + "echo the-very-end"
	_, card := g.asks("ada", long)
	if strings.Contains(card.Text(), "the-very-end") || !strings.Contains(fmt.Sprint(card.CustomIDs()), "c1:details:") {
		t.Fatalf("the card is %q with %v", card.Text(), card.Components)
	}
	id := approvalOf(t, card)
	g.click("bob", card.ID, "c1:details:"+id)
	file := g.message("details", func(m discordsim.Message) bool {
		return len(m.Attachments) == 1 && m.Flags&discordsim.FlagEphemeral != 0
	})
	res, err := http.Get(file.Attachments[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), long) || !strings.Contains(string(text), "who can answer: asker, local") {
		t.Errorf("the details are %s, %v", text, err)
	}
	g.click("ada", card.ID, "c1:no:"+id)
	g.decided(card.ID, "**Denied**")
	if _, err := g.Click("ada", card.ID, "c1:details:"+id); err != nil {
		t.Errorf("the details are gone with the answer: %v", err)
	}
}

// However a run ends, every sign ends too.
func TestDiscordSignsEnd(t *testing.T) {
	t.Parallel()
	files := map[string]string{"shared.yaml": "retry: {enabled: false}\nmaxToolDepth: 2\nmaxQueuedReplies: 1\n"}
	g := inGuild(t, discordsim.Options{}, files)
	for name, c := range map[string]struct{ text, sign string }{
		"answer":  {"say yes", "✅"},
		"nothing": {"stop end", "✅"},
		"refusal": {"say I will not\nstop refused", "❌"},
		"failure": {"fail auth", "❌"},
		"cut":     {"say half\ncut", "❌"},
		"limit":   {"call read {\"path\":\"x\"}\nend\ncall read {\"path\":\"y\"}\nend\ncall read {\"path\":\"z\"}", "❌"},
		"no tool": {"call nonsense {}\nend\nsay so be it", "✅"},
	} {
		id := g.say("ada", "general", c.text)
		_, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool {
			return m.ID == id && len(m.Reactions) >= 1 && m.Reactions[0].Emoji.Name == c.sign && !strings.Contains(fmt.Sprint(m.Reactions), "⚙️")
		})
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, g.transcript())
		}
	}
	// An abort, what waited behind it, what was too much, and what was taken back.
	running := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	status := g.message("status", works(running))
	waits := g.reply("bob", status.ID, "say next")
	g.hasReaction(waits, "👀")
	full := g.reply("bob", status.ID, "say one too many")
	g.hasReaction(full, "❌")
	g.message("refusal", func(m discordsim.Message) bool { return answers(full)(m) && strings.HasPrefix(m.Text(), "Not taken") })
	g.commandShows("ada", "stop", map[string]any{"all": true}, "Stopped 1")
	g.hasReaction(running, "❌")
	g.hasReaction(waits, "❌")

	goOn := g.pauseModel(0)
	gone := g.say("ada", "general", "say for nobody\nsay at all")
	g.has(g.threadOf("general", gone), chat.KindAsked, 1)
	if err := g.Delete("ada", gone); err != nil {
		t.Fatal(err)
	}
	goOn()
	g.message("answer to what is gone", func(m discordsim.Message) bool { return m.Text() == "for nobody\nat all" })
	g.hasReaction(g.say("ada", "general", "say after it"), "✅")

	// A process that dies in mid-run.
	goOn = g.pauseModel(2)
	again := g.say("ada", "general", "chunk 3\nsay this is said in full once somebody is there again to say it")
	g.hasReaction(again, "⚙️")
	g.end()
	goOn()
	g.start()
	g.hasReaction(again, "✅")

	// A question that nobody answers, ended by its deadline.
	g.end()
	g.write("shared.yaml", files["shared.yaml"]+"approvals: {deadline: 1s}\n")
	g.start()
	asked := g.say("ada", "general", "call bash {\"command\":\"echo one > one.txt\"}\nend\nsay it is done")
	g.message("decision", func(m discordsim.Message) bool {
		return answers(asked)(m) && strings.Contains(m.Text(), "**Denied**: nobody answered in time")
	})
	g.hasReaction(asked, "✅")
	if open, err := g.app.DB.Approvals(t.Context(), approval.Filter{State: approval.Open}); err != nil || len(open) != 0 {
		t.Errorf("open questions: %v, %v", open, err)
	}
}

func TestDiscordLiveStatusAndTyping(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{},
		map[string]string{"shared.yaml": "retry: {enabled: false}\nprices: {demo/script: {input: 1000000, output: 1000000}}\nfooter: full\n"})
	typing := func(channel string, n int) {
		t.Helper()
		seen, id := 0, g.Channel(channel).String()
		_, err := g.WaitEvent(g.soon(), func(h discordsim.Happening) bool {
			if h.Name == "TYPING_START" && strings.Contains(string(h.Data), id) {
				seen++
			}
			return seen >= n
		})
		if err != nil {
			t.Fatalf("typing %d times in %s: %v", n, channel, err)
		}
	}
	asked := g.say("ada", "general", "usage in=3 out=2\ncall write {\"path\":\"a.txt\",\"content\":\"x\"}\nend\nsay nearly there\nwait")
	live := g.message("live status", func(m discordsim.Message) bool {
		return works(asked)(m) && strings.Contains(m.Text(), "nearly there") && strings.Contains(m.Text(), "`write a.txt` ok")
	})
	for _, want := range []string{"step 2", "3 in / 2 out", "$5"} {
		if !strings.Contains(live.Text(), want) {
			t.Errorf("the status is %q without %q", live.Text(), want)
		}
	}
	if !strings.Contains(fmt.Sprint(live.CustomIDs()), "c1:stop:") {
		t.Errorf("there is no button to stop it: %v", live.Components)
	}
	typing("general", 3)
	g.click("ada", live.ID, stopOf(t, live))
	ended := g.message("end", func(m discordsim.Message) bool {
		return answers(asked)(m) && strings.Contains(m.Text(), "topped") && len(m.CustomIDs()) == 0
	})
	if !strings.Contains(ended.Text(), "2 steps") && !strings.Contains(ended.Text(), "1 step") || !strings.Contains(ended.Text(), "$") {
		t.Errorf("the footer is missing: %q", ended.Text())
	}
	// A run that fails stops typing too: while another one types, nothing is typed here.
	failed := g.say("ada", "general", "slow 100ms\nsay some words first\nfail auth")
	g.hasReaction(failed, "❌")
	from := g.typed("general")
	g.say("ada", "random", "say begun\nwait")
	typing("random", 3)
	if now := g.typed("general"); now > from+1 { // one may have been on its way
		t.Errorf("typed %d times after the end", now-from)
	}
}

// typed counts how often somebody was shown typing in a channel.
func (g *guildT) typed(channel string) int {
	g.Helper()
	n, id := 0, g.Channel(channel).String()
	_, _ = g.WaitEvent(g.past(), func(h discordsim.Happening) bool {
		if h.Name == "TYPING_START" && strings.Contains(string(h.Data), id) {
			n++
		}
		return false
	})
	return n
}

func stopOf(t *testing.T, m discordsim.Message) string {
	t.Helper()
	_, rest, ok := strings.Cut(fmt.Sprint(m.CustomIDs()), "c1:stop:")
	if !ok {
		t.Fatalf("no button on %v", m.Components)
	}
	return "c1:stop:" + rest[:26]
}

// What a model thinks aloud in tags is not said before everybody, whether the agent has a mode or not.
func TestDiscordThinkingIsNotPosted(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no mode": "", "chat": "mode: chat\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": text})
			prompt := g.say("ada", "general", "say <thinking>she wants it short</thinking> Hello, Ada.")
			g.hasReaction(prompt, "✅")
			if m := g.message("answer", answers(prompt)); m.Text() != "Hello, Ada." {
				t.Errorf("it says %q", m.Text())
			}
		})
	}
}
