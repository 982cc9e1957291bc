package discordtest

import (
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// What was said while nobody listened is before the model when it is asked the next time: each message once by its id,
// the same words twice where they were said twice, in the order of the channel, its own lines and the message that
// asks not doubled. What another bot says to nobody is a part of the room, and not answered.
func TestWhatWasMissedIsInTheNextRequest(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "echo"}}}, map[string]string{"bots/chorus.yaml": "routing: room\n"})
	mention := g.mention("chorus")
	g.hasReaction(g.say("ada", "general", mention+"\n!say here"), "✅")
	for round := range 2 { // the second restart reads nothing twice
		g.end()
		if round == 0 {
			for _, text := range []string{"the train is late", "ok", "ok"} {
				g.say("bob", "general", text)
			}
			g.say("echo", "general", "!say tempted by a bot")
			g.say("bob", "general", "now it is here")
		}
		g.start()
	}
	g.hasReaction(g.say("ada", "general", mention+"\n!say all read"), "✅")
	text := toldOf(g.asked(g.room("general", "chorus")))
	at := 0
	for _, want := range []string{"here", "the train is late", "ok", "ok", "now it is here", "say all read"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place:\n%s", want, text)
		}
		at += i + len(want)
	}
	for want, times := range map[string]int{"the train is late": 1, "now it is here": 1, "all read": 1, "ok\n": 2, "here\n": 3 /* asked for, said, and the train */} {
		if n := strings.Count(text, want); n != times {
			t.Errorf("%q is there %d times, not %d:\n%s", want, n, times, text)
		}
	}
	messages, err := g.Messages("general")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if m.Text() == "tempted by a bot" {
			t.Error("it answered a bot")
		}
	}
}
