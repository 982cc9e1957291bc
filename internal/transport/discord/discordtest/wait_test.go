package discordtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/mirror/conversation"
	"chorus/internal/polltest"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

// soon is more time than anything here needs, also on a busy machine.
func (g *guildT) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	g.Cleanup(cancel)
	return ctx
}

// past is a time that is over: nothing is waited for.
func (g *guildT) past() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// minute ends when the nth of them is over.
func (g *guildT) minute(began time.Time, n int) context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(time.Duration(n)*250*time.Millisecond))
	g.Cleanup(cancel)
	return ctx
}

// until looks again until something is so. Only for what nobody reports: rows and files that others write.
func (g *guildT) until(what string, is func() bool) {
	g.Helper()
	if !polltest.Soon(is) {
		g.Fatalf("never: %s\n%s", what, g.transcript())
	}
}

// when looks whenever something is written to a conversation, until something is so.
func (g *guildT) when(thread chat.ThreadID, what string, is func() bool) {
	g.Helper()
	after := int64(0)
	if list := g.events(thread); len(list) > 0 {
		after = list[len(list)-1].Seq
	}
	if is() {
		return
	}
	for item, err := range g.app.Running().Watch(g.soon(), thread, after) {
		if err != nil {
			g.Fatalf("%s: %v", what, err)
		}
		if item.Event != nil && is() {
			return
		}
	}
	g.Fatalf("never: %s\n%s", what, g.transcript())
}

// has waits until a conversation has so many events of one kind.
func (g *guildT) has(thread chat.ThreadID, kind chat.Kind, n int) {
	g.Helper()
	g.when(thread, fmt.Sprintf("%d events %s", n, kind), func() bool {
		found := 0
		for _, ev := range g.events(thread) {
			if ev.Body.Kind() == kind {
				found++
			}
		}
		return found >= n
	})
}

// message waits for one of the bot's that fits.
func (g *guildT) message(what string, fits func(discordsim.Message) bool) discordsim.Message {
	g.Helper()
	m, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool { return m.Author.Bot && fits(m) })
	if err != nil {
		g.Fatalf("no %s: %v\n%s", what, err, g.transcript())
	}
	return m
}

// answers finds what replies to a message, works how the work on it goes.
func answers(id discordsim.ID) func(discordsim.Message) bool {
	return func(m discordsim.Message) bool {
		return m.Reference != nil && m.Reference.MessageID == id && !isStatus(m)
	}
}

func works(id discordsim.ID) func(discordsim.Message) bool {
	return func(m discordsim.Message) bool {
		return m.Reference != nil && m.Reference.MessageID == id && isStatus(m)
	}
}

func isStatus(m discordsim.Message) bool {
	return slices.ContainsFunc(m.CustomIDs(), func(id string) bool { return strings.HasPrefix(id, "c1:stop:") })
}

// hasReaction waits until a message has a sign.
func (g *guildT) hasReaction(id discordsim.ID, emoji string) {
	g.Helper()
	_, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool {
		return m.ID == id && len(m.Reactions) == 1 && m.Reactions[0].Emoji.Name == emoji
	})
	if err != nil {
		g.Fatalf("message %s never had %s alone: %v\n%s", id, emoji, err, g.transcript())
	}
}

// bears waits until a message has a sign, whatever else stands under it.
func (g *guildT) bears(id discordsim.ID, emoji string) {
	g.Helper()
	_, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool {
		return m.ID == id && slices.ContainsFunc(m.Reactions, func(r discordsim.Reaction) bool { return r.Emoji.Name == emoji })
	})
	if err != nil {
		g.Fatalf("message %s never had %s: %v\n%s", id, emoji, err, g.transcript())
	}
}

// settledRows waits until nothing in the outbox is open.
func (g *guildT) settledRows() {
	g.Helper()
	g.until("no lane is open", func() bool {
		lanes, err := g.app.DB.OpenLanes(g.Context(), "discord", chat.DefaultAgent)
		if err != nil {
			g.Fatal(err)
		}
		return len(lanes) == 0
	})
}

// seen waits until a bot has seen the guild's channels: what was said before, nobody answers.
func (g *guildT) seen(bot string) {
	g.Helper()
	g.until(bot+" has seen a channel", func() bool {
		cursors, err := g.app.DB.Cursors(g.Context(), "discord", bot)
		if err != nil {
			g.Fatal(err)
		}
		_, ok := cursors[g.Channel("ideas").String()]
		return ok || len(cursors) > 1
	})
}

// nick waits until the bot is given a name.
func (g *guildT) nick(want string) {
	g.Helper()
	_, err := g.WaitEvent(g.soon(), func(h discordsim.Happening) bool {
		var member struct{ Nick string }
		return h.Name == "GUILD_MEMBER_UPDATE" && json.Unmarshal(h.Data, &member) == nil && member.Nick == want
	})
	if err != nil {
		g.Fatalf("the bot is called %q, not %q: %v", g.Nick("chorus"), want, err)
	}
}

// log waits until a thread's log.jsonl has its answer, and reads it.
func (g *guildT) log(thread chat.ThreadID) (out []conversation.LogEntry) {
	g.Helper()
	g.until("the answer stands in the log", func() bool {
		data, err := os.ReadFile(filepath.Join(g.app.Home.ThreadDir(thread), conversation.LogName))
		out = nil
		for line := range bytes.Lines(data) {
			var e conversation.LogEntry
			if json.Unmarshal(line, &e) == nil { // the last may be half written
				out = append(out, e)
			}
		}
		return err == nil && len(out) > 0 && out[len(out)-1].IsBot
	})
	return out
}

// shown waits for the whole answer to a click or a command.
func (g *guildT) shown(what string, i discordsim.Interaction) discordsim.Message {
	g.Helper()
	got := g.answered(what, i)
	const loading = 1 << 7
	m, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool { return m.ID == got.Message && m.Flags&loading == 0 })
	if err != nil {
		g.Fatalf("%s was not answered: %v", what, err)
	}
	return m
}

// ask mentions a bot and waits for what it says.
func (g *guildT) ask(who, channel, bot, words string) discordsim.Message {
	g.Helper()
	g.say(who, channel, g.mention(bot)+"\n!say "+words)
	in := g.Channel(channel)
	return g.message("answer "+words, func(m discordsim.Message) bool { return m.Text() == words && m.ChannelID == in })
}

// result waits for what a thread's call gave.
func (g *guildT) result(thread chat.ThreadID, tool string) chat.ToolRan {
	g.Helper()
	for item, err := range g.app.Running().Watch(g.soon(), thread, 0) {
		if err == nil && item.Event != nil {
			if ran, ok := item.Event.Body.(chat.ToolRan); ok && ran.Name == tool {
				return ran
			}
		}
	}
	g.Fatalf("%s gave nothing", tool)
	return chat.ToolRan{}
}

// changesIn waits until a conversation has the changes, and gives those after seq.
func (g *guildT) changesIn(thread chat.ThreadID, want int) []chat.Body {
	g.Helper()
	var got []chat.Body
	for item, err := range g.app.Running().Watch(g.soon(), thread, 0) {
		if err != nil {
			g.Fatalf("%d of %d changes: %v", len(got), want, err)
		}
		if item.Event == nil {
			continue
		}
		switch b := item.Event.Body.(type) {
		case chat.Edited, chat.Deleted:
			got = append(got, b)
		}
		if len(got) == want {
			return got
		}
	}
	g.Fatalf("%d of %d changes", len(got), want)
	return nil
}

// noted waits for a note of ours under a message.
func (g *guildT) noted(under discordsim.ID, words string) {
	g.Helper()
	m := g.message("note "+words, func(m discordsim.Message) bool {
		return answers(under)(m) && strings.HasPrefix(m.Text(), ".note: ") && strings.Contains(m.Text(), words)
	})
	if m.MentionEveryone || len(m.Mentions) > 1 {
		g.Errorf("a note notifies people: %+v", m)
	}
}

// threadsOf finds the conversations of an agent.
func threadsOf(agent string) store.ThreadFilter { return store.ThreadFilter{Agent: agent, Limit: 50} }
