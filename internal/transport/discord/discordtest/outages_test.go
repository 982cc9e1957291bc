package discordtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	connect "chorus/internal/connector/host"
	"chorus/internal/operation"
	"chorus/internal/sim/discordsim"
)

// Where the bot may not write, whoever asked is told by a sign and in private, once.
func TestDiscordMayNotWriteHere(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{
		{Name: "general", Deny: map[string][]string{"chorus": {"send_messages"}}}, {Name: "random"},
	}}, map[string]string{})
	asked := g.say("bob", "general", "say into the void")
	told := g.message("private word", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "I may not write in") })
	if !strings.Contains(told.Text(), "into the void") || told.GuildID != 0 {
		t.Errorf("bob is told %q in guild %v", told.Text(), told.GuildID)
	}
	g.bears(asked, "🔇")
	g.settledRows() // and it is not tried for ever
	fine := g.say("bob", "random", "say but here")
	g.message("answer elsewhere", answers(fine))
	g.hasReaction(fine, "✅")
}

// A channel that is deleted while its question is answered costs nobody else anything, and not the answer either,
// whether something of it was shown already or not.
func TestDiscordChannelDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, preview := range map[string]time.Duration{"nothing shown": time.Hour, "a status shown": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) {
				g.tune = func(o *connect.BotOptions) { o.Preview = preview }
			})
			goOn := g.pauseModel(0)
			asked := g.say("bob", "random", "say nobody home")
			g.hasReaction(asked, "⚙️")
			if preview < time.Minute {
				g.message("status", works(asked))
			}
			if err := g.DeleteChannel("random"); err != nil {
				t.Fatal(err)
			}
			goOn()
			g.message("private word", func(m discordsim.Message) bool {
				return strings.Contains(m.Text(), "no longer exists") && strings.Contains(m.Text(), "nobody home")
			})
			g.settledRows()
			fine := g.say("bob", "general", "say still here")
			g.message("answer elsewhere", answers(fine))
			g.end()
			g.start() // its cursor points nowhere
			g.hasReaction(g.say("bob", "general", "say after all"), "✅")
		})
	}
}

// The answer for a thread that is deleted stands in its channel, also where something of it was shown in the thread.
func TestDiscordThreadDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n"}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) { o.Preview = 20 * time.Millisecond }
	})
	goOn := g.pauseModel(0)
	asked := g.say("bob", "general", "say for the channel then")
	g.message("status", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() != "" })
	if err := g.DeleteChannel(asked.String()); err != nil {
		t.Fatal(err)
	}
	goOn()
	general := g.Channel("general")
	g.message("answer in the channel", func(m discordsim.Message) bool {
		return m.ChannelID == general && m.Text() == "for the channel then"
	})
	g.settledRows()
}

// Whoever keeps the server and takes away what an agent shows of its work does not take the answer away from who asked.
func TestDiscordStatusDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, withSecrets(), map[string]string{}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) { o.Preview = 20 * time.Millisecond }
	})
	goOn := g.pauseModel(0)
	asked := g.say("bob", "general", "say said all the same")
	status := g.message("status", works(asked))
	if err := g.Delete("own", status.ID); err != nil {
		t.Fatal(err)
	}
	goOn()
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "said all the same" })
	g.hasReaction(asked, "✅")
	g.settledRows()
	// An answer that stood there and is taken away is not said again.
	g.tune = func(o *connect.BotOptions) { o.Preview = time.Hour }
	g.end()
	g.start()
	again := g.say("bob", "general", "say for a moment")
	g.hasReaction(again, "✅")
	if err := g.Delete("own", g.message("answer", answers(again)).ID); err != nil {
		t.Fatal(err)
	}
	g.end()
	g.start()
	g.hasReaction(g.say("bob", "general", "say and on"), "✅")
	g.settledRows()
	list, err := g.Messages(g.private("bob", "chorus"))
	if err != nil || len(list) != 0 {
		t.Errorf("bob was told %v, %v", list, err)
	}
}

// A thread that was archived is opened again for the answer; a locked one that the bot may not open is not.
func TestDiscordArchivedThread(t *testing.T) {
	t.Parallel()
	perms := []string{"view_channel", "send_messages", "send_messages_in_threads", "create_public_threads", "add_reactions", "read_message_history"}
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus", Permissions: &perms}}}, map[string]string{"bots/chorus.yaml": "routing: thread\n"})
	goOn := g.pauseModel(0)
	asked := g.say("ada", "general", "say in here")
	g.hasReaction(asked, "⚙️")
	if err := g.Archive(asked, false); err != nil {
		t.Fatal(err)
	}
	goOn()
	g.message("answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "in here" })
	goOn = g.pauseModel(0)
	locked := g.say("ada", "general", "say behind a lock")
	g.hasReaction(locked, "⚙️")
	if err := g.Archive(locked, true); err != nil {
		t.Fatal(err)
	}
	goOn()
	g.message("private word", func(m discordsim.Message) bool {
		return m.GuildID == 0 && strings.Contains(m.Text(), "archived") && strings.Contains(m.Text(), "behind a lock")
	})
	g.settledRows()
}

// Where the message is gone on which a thread was to be opened, the answer stands in the channel.
func TestDiscordThreadCannotBeOpened(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n"}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) {
			o.HTTP = &http.Client{Transport: &vanishing{g: g}, Timeout: 30 * time.Second}
		}
	})
	g.fault(discordsim.Fault{Kind: discordsim.FaultLose, Event: "MESSAGE_DELETE"})
	g.say("ada", "general", "say "+strings.Repeat("long words ", 170)+"\nsay and the end")
	general := g.Channel("general")
	g.message("first part in the channel", func(m discordsim.Message) bool {
		return m.ChannelID == general && strings.HasPrefix(m.Text(), "long words")
	})
	g.message("last part in the channel", func(m discordsim.Message) bool {
		return m.ChannelID == general && strings.HasSuffix(m.Text(), "and the end")
	})
	g.settledRows()
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("two parts, not %d:\n%s", n, g.transcript())
	}
}

// Fifty replies, one on the other, are one conversation.
func TestDiscordFiftyReplies(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	last := g.say("ada", "general", "say answer 0")
	for i := range 50 {
		answer := g.message("answer", answers(last))
		g.message("final answer", func(m discordsim.Message) bool { return m.ID == answer.ID && m.Text() == fmt.Sprintf("answer %d", i) })
		last = g.reply("ada", answer.ID, fmt.Sprintf("say answer %d", i+1))
	}
	g.message("last answer", func(m discordsim.Message) bool { return answers(last)(m) && m.Text() == "answer 50" })
	g.hasReaction(last, "✅")
	rows, _, err := g.app.DB.BehindSince(t.Context(), "discord/none", "discord", 0, nil)
	if err != nil || len(rows) != 1 {
		t.Fatalf("one conversation, not %d: %v", len(rows), err)
	}
	if n := g.countOwn("general"); n != 51 {
		t.Errorf("51 answers, not %d", n)
	}
}

// A thousand messages at once are all heard, and those that ask are answered or visibly refused.
func TestDiscordAThousandAtOnce(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: room\n"})
	mention := g.mention("chorus")
	var asked []discordsim.ID
	many := 1000
	if raced {
		many = 300
	}
	for i := range many {
		text := fmt.Sprintf("chatter %d", i)
		if i%50 == 0 {
			text = fmt.Sprintf("%s\n!say answer %d", mention, i)
		}
		id := g.say([]string{"ada", "bob"}[i%2], "general", text)
		if i%50 == 0 {
			asked = append(asked, id)
		}
	}
	done := 0
	for _, id := range asked {
		m, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool {
			return m.ID == id && len(m.Reactions) == 1 && (m.Reactions[0].Emoji.Name == "✅" || m.Reactions[0].Emoji.Name == "❌")
		})
		if err != nil {
			t.Fatalf("message %s is neither answered nor refused: %v", id, err)
		}
		if m.Reactions[0].Emoji.Name == "✅" {
			done++
		}
	}
	if done == 0 {
		t.Error("nobody was answered")
	}
	g.settledRows()
	if n := g.countOwn("general"); n == 0 || n > len(asked) { // those that waited together have one answer
		t.Errorf("%d words of ours for %d questions", n, len(asked))
	}
}

// Discord is down for ten minutes, of which each lasts a quarter of a second here: everything that was said meanwhile is answered.
func TestDiscordDownForTenMinutes(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{TimeScale: 100}, map[string]string{})
	goOn := g.pauseModel(0)
	running := g.say("ada", "general", "say begun before")
	g.hasReaction(running, "⚙️")
	for _, f := range []discordsim.Fault{
		{Kind: discordsim.FaultDeaf}, {Kind: discordsim.FaultHangup, Rate: 0.5, Seed: 1}, {Kind: discordsim.FaultError, Status: 503}, {Kind: discordsim.FaultDrop},
	} {
		g.fault(f)
	}
	goOn()
	began := time.Now()
	asked := []discordsim.ID{running}
	for i := range 10 {
		asked = append(asked, g.say("bob", []string{"general", "random"}[i%2], fmt.Sprintf("say minute %d", i)))
		<-g.minute(began, i+1).Done() // it is down for a time, whatever happens meanwhile
		if i == 5 {
			g.fault(discordsim.Fault{Kind: discordsim.FaultInvalidate})
		}
	}
	g.Clear(0)
	for _, id := range asked {
		g.hasReaction(id, "✅")
	}
	g.settledRows()
	if n := g.countOwn("general") + g.countOwn("random"); n != len(asked) {
		t.Errorf("%d answers to %d messages:\n%s", n, len(asked), g.transcript())
	}
}

// slowExecutor takes its time.
type slowExecutor struct {
	operation.Executor
	free chan struct{}
}

func (e slowExecutor) Execute(ctx context.Context, by operation.Caller, d *operation.Definition, in any) (any, error) {
	select {
	case <-e.free:
	case <-ctx.Done():
	}
	return e.Executor.Execute(ctx, by, d, in)
}

// A command that takes long is acknowledged before Discord gives up on it, and answered when it is done.
func TestDiscordDefersWhatTakesLong(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("ada", "general", "say first"), "✅") // what is said at first sight of a channel nobody answers
	g.end()
	free := make(chan struct{})
	g.tune = func(o *connect.BotOptions) { o.Backend.Executor = slowExecutor{o.Backend.Executor, free} }
	g.start()
	g.hasReaction(g.say("ada", "general", "say hello"), "✅")
	g.fault(discordsim.Fault{Kind: discordsim.FaultError, Route: "POST /interactions", Count: 1})
	if err := g.WaitCommand(g.soon(), "chorus", "cost"); err != nil {
		t.Fatal(err)
	}
	i, err := g.Slash("ada", "general", "chorus", "cost", nil)
	if err != nil {
		t.Fatal(err)
	}
	g.answered("/cost", i)
	close(free)
	if got := g.shown("/cost", i).Text(); !strings.Contains(got, "since") {
		t.Errorf("in the end it shows %q", got)
	}
}
