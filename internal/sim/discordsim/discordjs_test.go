package discordsim

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"chorus/internal/npmtest"
)

// heardJS is a line that the bot printed.
type heardJS struct {
	What, Name, Content, Author, Emoji, Text string
	Channels, Members, Count, Code, After    int
}

func TestDiscordJS(t *testing.T) {
	t.Parallel()
	dir := npmtest.Install(t, "discord.js@14.27.0")
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
