package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/sim/discordsim"
	"chorus/internal/store/pgtest"
)

// TestClusterChannelIsTold kills the node that has a conversation of a channel for good, with its disk. The other one takes over the bot and
// says in the channel what becomes of the conversation: it waits until its node is back; or,
// where it had a folder of its own alone, it goes on with an empty one. Nothing that was said meanwhile is lost, and each is told once.
func TestClusterChannelIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	t.Run("wait", func(t *testing.T) {
		t.Parallel()
		c := loseTheNodeOf(t, "wait", "helper")
		c.sees("waits for node node-1")
		c.says("and one more")
		if err := os.Rename(c.gone, c.lost.home); err != nil { // the machine is back, with its disk
			t.Fatal(err)
		}
		c.lost.start()
		c.sees("answer to meanwhile")
		c.sees("answer to and one more")
		c.once("waits for node node-1")
	})
	t.Run("move", func(t *testing.T) {
		t.Parallel()
		c := loseTheNodeOf(t, "move", "general") // where no agent is that has a workspace
		c.sees("continues on node node-2, with an empty folder")
		c.sees("answer to meanwhile")
		c.once("continues on node node-2")
	})
}

// lostChannel is a channel whose conversation was on a node that is gone.
type lostChannel struct {
	*testing.T
	*discordsim.Sim
	ctx   context.Context
	bot   discordsim.ID
	lost  *served // the node that had the conversation
	other *served
	gone  string        // where the home of the lost one is meanwhile
	last  discordsim.ID // the answer that everything is a reply to; 0: there is none yet
	name  string        // of the channel
}

func loseTheNodeOf(t *testing.T, onLost, channel string) *lostChannel {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	c := &lostChannel{T: t, ctx: ctx, name: channel, Sim: discordsim.StartT(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}},
		People: []discordsim.PersonSpec{{Name: "ada", Owner: true}}, Channels: []discordsim.ChannelSpec{{Name: channel}}})}
	c.bot = c.User("chorus")
	database := pgtest.New(t).Database(t)
	start := func(name string) *served {
		n := newServed(t, "")
		for path, text := range map[string]string{"agents/helper/agent.json": `{"name":"helper","model":"demo/script","routing":"room"}`,
			"config/shared.yaml": "continuationModel: demo/script\nanswer: all\npermissions: open\nsandbox: host\n"} {
			path = filepath.Join(n.home, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n.env = []string{"CHORUS_DATABASE_URL=" + database, "CHORUS_NODE=" + name, "CHORUS_ON_NODE_LOST=" + onLost, "CHORUS_NODE_LOST_SECONDS=3",
			"DISCORD_API_URL=" + c.API(), "DISCORD_BOT_TOKEN=" + c.Token("chorus")}
		n.start()
		return n
	}
	c.lost = start("node-1")
	if err := c.WaitConnected(ctx, "chorus"); err != nil {
		t.Fatalf("%v\n%s", err, c.lost.log)
	}
	c.says("hello")
	c.sees("answer to hello")
	c.other = start("node-2")
	c.lost.kill()
	c.gone = filepath.Join(t.TempDir(), "gone")
	if err := os.Rename(c.lost.home, c.gone); err != nil {
		t.Fatal(err)
	}
	c.says("meanwhile")
	return c
}

func (c *lostChannel) says(what string) {
	c.Helper()
	// A reply goes on with a conversation.
	if _, err := c.Post("ada", c.name, discordsim.Said{Text: "<@" + c.bot.String() + ">\n!say answer to " + what, Reply: c.last}); err != nil {
		c.Fatal(err)
	}
}

func (c *lostChannel) shown(m discordsim.Message, text string) bool {
	return m.Author.ID == c.bot && strings.Contains(m.Content, text)
}

func (c *lostChannel) sees(text string) {
	c.Helper()
	m, err := c.WaitMessage(c.ctx, func(m discordsim.Message) bool { return c.shown(m, text) })
	if err != nil {
		said := "" // by the node that is left
		if c.other != nil {
			said = c.other.log.String()
		}
		c.Fatalf("the channel never shows %q: %v\n%s", text, err, said)
	}
	if c.last == 0 {
		c.last = m.ID
	}
}

func (c *lostChannel) once(text string) {
	c.Helper()
	all, err := c.Messages(c.name)
	if err != nil {
		c.Fatal(err)
	}
	n := 0
	for _, m := range all {
		if c.shown(m, text) {
			n++
		}
	}
	if n != 1 {
		c.Errorf("%q is told %d times", text, n)
	}
}
