package discordtest

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/npmtest"
	"chorus/internal/sim/discordsim"
)

// readCard is a message of components as a bot on discord.js read it.
type readCard struct {
	What, ID, Content, Words string
	Embeds                   int
	Kinds, Buttons           []string
}

// reads runs a bot on discord.js that reads what ours shows.
func (g *guildT) reads(bot string) <-chan readCard {
	g.Helper()
	dir := npmtest.Install(g.T, "discord.js@14.27.0")
	cmd := exec.CommandContext(g.soon(), "node", "testdata/reader.mjs")
	cmd.Env = append(os.Environ(), "MODULES="+dir, "API="+strings.TrimSuffix(g.API(), "/v10"), "TOKEN="+g.Token(bot))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		g.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	lines := make(chan readCard, 256)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var one readCard
			if json.Unmarshal(scan.Bytes(), &one) == nil {
				lines <- one
			}
		}
	}()
	g.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		_ = cmd.Wait()
	})
	return lines
}

// hears waits for a line that fits.
func (g *guildT) hears(lines <-chan readCard, what string, fits func(readCard) bool) readCard {
	g.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case one := <-lines:
			if one.What == "error" {
				g.Fatal(one.Words)
			}
			if fits(one) {
				return one
			}
		case <-late:
			g.Fatalf("discord.js never read %s", what)
		}
	}
}

// The cards of approvals, of the status and of tasks are what another library takes them for.
func TestDiscordJSReadsCards(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "reader"}}}, map[string]string{})
	lines := g.reads("reader")
	g.hears(lines, "the guild", func(c readCard) bool { return c.What == "ready" })
	asked := g.say("ada", "random", "call bash {\"command\":\"echo one > one.txt\"}\nend\nsay it is done")
	card := g.message("card", func(m discordsim.Message) bool { return answers(asked)(m) && isCard(m) && len(m.CustomIDs()) > 0 })
	read := g.hears(lines, "the card", func(c readCard) bool { return strings.Contains(c.Words, "May I ") })
	if read.What != "made" || read.Content != "" || read.Embeds != 0 || read.Kinds[0] != "Container" || !slices.Contains(read.Kinds, "Separator") || !slices.Contains(read.Kinds, "ActionRow") ||
		!slices.Equal(read.Buttons, []string{"Allow", "Always allow…", "Deny", "Deny with a reason…"}) || !strings.Contains(read.Words, "Rule: shell commands") || strings.Contains(read.Words, "tool:") {
		t.Errorf("%+v", read)
	}
	g.click("ada", card.ID, "c1:no:"+approvalOf(t, card))
	g.hears(lines, "the answered card", func(c readCard) bool {
		return c.What == "changed" && c.ID == card.ID.String() && len(c.Buttons) == 0 && strings.Contains(c.Words, "**Denied**")
	})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", begun...)
	made := g.hears(lines, "the card of the task", func(c readCard) bool { return strings.Contains(c.Words, task.ID) })
	g.moves(task.ID, "", done[len(begun):]...)
	g.hears(lines, "the card of the task as it moves", func(c readCard) bool {
		return c.ID == made.ID && slices.Contains(c.Buttons, "Approve") && slices.Contains(c.Buttons, "Reject…")
	})
}
