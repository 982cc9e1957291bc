package discordsim

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// discordJS is a directory with discord.js in it, installed once from npm into the user's cache.
func discordJS(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED: there is no %s here, so discord.js does NOT look at the simulator", name)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "chorus-test", "discord.js-14.27.0")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "discord.js", "package.json")); err == nil {
		return dir
	}
	ok(t, os.MkdirAll(dir, 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "discord.js@14.27.0")
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: npm cannot install discord.js (%v), so it does NOT look at the simulator:\n%s", err, out)
	}
	return dir
}

// heardJS is a line that the bot printed.
type heardJS struct {
	What, Name, Content, Author, Emoji, Text string
	Channels, Members, Count, Code, After    int
}

func TestDiscordJS(t *testing.T) {
	t.Parallel()
	dir := discordJS(t)
	s := StartT(t, Options{TimeScale: leisurely})
	cmd := exec.CommandContext(within(t), "node", "testdata/discordjs/client.mjs")
	cmd.Env = append(os.Environ(), "MODULES="+dir, "API="+s.URL()+"/api", "TOKEN="+s.Token("chorus"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	lines := make(chan heardJS, 64)
	ended := make(chan error, 1)
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var h heardJS
			if json.Unmarshal(scan.Bytes(), &h) == nil {
				lines <- h
			}
		}
		ended <- cmd.Wait()
	}()
	line := func(hope string) heardJS {
		t.Helper()
		h := next(t, lines, hope)
		if h.What == "error" {
			t.Fatal(h.Text)
		}
		return h
	}
	hear := func(what string) heardJS {
		t.Helper()
		for {
			if h := line(what); h.What == what {
				return h
			}
		}
	}
	find := func(fits func(Message) bool) Message {
		t.Helper()
		return must[Message](t)(s.WaitMessage(within(t), fits))
	}

	if r := hear("ready"); r.Name != "chorus" || r.Channels != 3 || r.Members != 3 {
		t.Fatalf("ready %+v", r)
	}
	first := must[ID](t)(s.Say("ada", "general", "hello"))
	if m := hear("message"); m.Content != "hello" || m.Author != "ada" {
		t.Fatalf("heard %+v", m)
	}
	answer := find(func(m Message) bool { return m.Content == "RE: hello" })
	if answer.Reference.MessageID != first || len(answer.Attachments) != 1 {
		t.Fatalf("answered %+v", answer)
	}
	find(func(m Message) bool { return m.Content == "in the thread" && m.ChannelID == answer.ID })
	if r := hear("refused"); r.Code != 50035 || r.After < 1 {
		t.Fatalf("refused %+v", r)
	}
	ok(t, s.React("bob", first, "✅"))
	if r := hear("reaction"); r.Emoji != "✅" || r.Count != 2 {
		t.Fatalf("reaction %+v", r)
	}
	must[Interaction](t)(s.Slash("bob", "general", "chorus", "ping", map[string]any{"word": "loud"}))
	find(func(m Message) bool { return m.Content == "pong loud" && m.ephemeral() })
	find(func(m Message) bool { return m.Content == "and for all" && !m.ephemeral() })
	click := must[Interaction](t)(s.Click("bob", answer.ID, "go"))
	must[Interaction](t)(s.WaitInteraction(within(t), click.ID))
	must[Interaction](t)(s.Submit("bob", "why", map[string]string{"reason": "I can"}))
	find(func(m Message) bool { return m.Content == "because I can" })

	must[int](t)(s.Inject(Fault{Kind: FaultDrop, Code: 4000}))
	must[ID](t)(s.Say("ada", "random", "missed me?"))
	find(func(m Message) bool { return strings.HasPrefix(m.Content, "RE: missed") })
	for resumed, answered := false, false; !resumed || !answered; { // whichever comes first; who is sent away while it answers cannot
		h := line("resumed and refused")
		resumed, answered = resumed || h.What == "resumed", answered || h.What == "refused"
	}
	must[ID](t)(s.Say("ada", "random", "bye"))
	if err := next(t, ended, "end"); err != nil {
		t.Fatal(err)
	}
}
