package discordtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	connect "chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
)

// talkative shows what it does.
func talkative() map[string]string {
	files := roomFiles()
	files["bots/chorus.yaml"] += "toolOutputVisible: true\ndebugThinking: true\n"
	return files
}

const looksAround = "\n!think a list would help\n!call list_files {\"path\":\".\"}\n!end\n!say looked around"

func TestRoomPostsToolOutputThroughAWebhook(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, talkative())
	asked := g.say("ada", "general", g.mention("chorus")+looksAround)
	answer := g.message("answer", func(m discordsim.Message) bool { return m.Text() == "looked around" })
	g.hasReaction(asked, "✅")
	list, err := g.Messages("general")
	if err != nil {
		t.Fatal(err)
	}
	var asides []string
	for _, m := range list {
		if m.WebhookID != 0 {
			asides = append(asides, m.Text())
			if m.Author.Username != "Cora" || m.ID > answer.ID {
				t.Errorf("%q comes from %s, after the answer: %v", m.Text(), m.Author.Username, m.ID > answer.ID)
			}
		}
	}
	if len(asides) != 2 || asides[0] != ".💭 a list would help" || !strings.HasPrefix(asides[1], ".Cora>[list_files]: {") || !strings.Contains(asides[1], "\n.Cora<[list_files]: ") {
		t.Errorf("beside the conversation stands %q", asides)
	}
	// None of it comes back, and not after a restart either; the webhook is made once.
	g.ask("ada", "general", "chorus", "still well")
	g.end()
	g.start()
	g.hasReaction(g.say("ada", "general", g.mention("chorus")+looksAround), "✅")
	for _, ev := range g.events(g.room("general", "chorus")) {
		if said, ok := ev.Body.(chat.Received); ok && strings.HasPrefix(said.Blocks.Text(), ".") {
			t.Errorf("heard as words: %q", said.Blocks.Text())
		}
	}
	ids := map[discordsim.ID]bool{}
	list, _ = g.Messages("general")
	for _, m := range list {
		if m.WebhookID != 0 {
			ids[m.WebhookID] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("%d webhooks speak", len(ids))
	}
}

func TestToolOutputWithoutAWebhook(t *testing.T) {
	t.Parallel()
	may := []string{"view_channel", "send_messages", "read_message_history", "add_reactions", "send_messages_in_threads"}
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus", Permissions: &may}}}, talkative())
	g.hasReaction(g.say("ada", "general", g.mention("chorus")+looksAround), "✅")
	list, err := g.Messages("general")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range list {
		if m.Author.Bot && strings.HasPrefix(m.Text(), ".") {
			n++
		}
	}
	if n != 2 {
		t.Errorf("the bot says itself what it did:\n%s", g.transcript())
	}
	if got := g.modelSees(g.room("general", "chorus")); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, ": .") }) {
		t.Errorf("the model sees %q", got)
	}
}

func TestToolOutputInAThread(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\ntoolOutputVisible: true\n"})
	asked := g.say("ada", "general", "call list_files {\"path\":\".\"}\nend\nsay looked around")
	aside := g.message("tool output", func(m discordsim.Message) bool { return m.WebhookID != 0 })
	if aside.ChannelID != asked {
		t.Errorf("it stands in %s, the thread is %s", aside.ChannelID, asked)
	}
	g.hasReaction(asked, "✅")
}

// Where a status is shown the answer stands below what tools said meanwhile, and the status goes: one text is the answer,
// and answering either goes on with the conversation.
func TestDiscordAnswerStandsBelowToolOutput(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"in one life": false, "across a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inOldGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "toolOutputVisible: true\n"}, func(g *guildT) {
				g.tune = func(o *connect.BotOptions) { o.Preview = 20 * time.Millisecond }
			})
			look := g.pauseModel(0)
			asked := g.say("ada", "general", "say looking around\ncall list_files {\"path\":\".\"}\nend\nsay looked around")
			status := g.message("status", works(asked))
			tell := g.pauseModel(0)
			look()
			aside := g.message("tool output", func(m discordsim.Message) bool { return m.WebhookID != 0 })
			if restart {
				g.end()
				g.start()
			}
			tell()
			g.hasReaction(asked, "✅")
			g.settledRows()
			list, err := g.Messages("general")
			if err != nil {
				t.Fatal(err)
			}
			words := slices.DeleteFunc(list, func(m discordsim.Message) bool { return !m.Author.Bot || m.WebhookID != 0 })
			if len(words) != 1 || words[0].ID < aside.ID || !answers(asked)(words[0]) || !strings.HasPrefix(words[0].Text(), "looked around") {
				t.Fatalf("the answer is not one message below the tool output:\n%s", g.transcript())
			}
			for _, id := range []discordsim.ID{status.ID, words[0].ID} {
				places, err := g.app.DB.Places(t.Context(), "discord", id.String())
				if err != nil || len(places) != 1 || places[0].Thread != g.threadOf("general", asked) {
					t.Errorf("message %s belongs to %+v, %v", id, places, err)
				}
			}
			more := g.reply("ada", words[0].ID, "say and on")
			g.message("answer to the reply", answers(more))
			g.when(g.threadOf("general", asked), "the reply is heard in the conversation", func() bool {
				return slices.ContainsFunc(g.events(g.threadOf("general", asked)), func(ev chat.Event) bool { return ev.PlatformID == more.String() })
			})
		})
	}
}

func TestRefusalIsMarked(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	g.say("ada", "general", g.mention("chorus")+"\n!say no\n!stop refused")
	_, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool {
		return m.Author.Bot && len(m.Reactions) > 0 && m.Reactions[0].Emoji.Name == "🛑"
	})
	if err != nil {
		t.Fatalf("the refusal is not marked: %v\n%s", err, g.transcript())
	}
}
