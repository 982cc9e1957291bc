package discordsim

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"chorus/internal/npmtest"
	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/jsonobject"
)

// heardJS is a line that the bot printed.
type heardJS struct {
	What, Name, Content, Author, Emoji, Text string
	Channels, Members, Count, Code, After    int
}

// playedJS is a bot on discord.js that runs.
type playedJS struct {
	t     *testing.T
	lines chan heardJS
	ended chan error
}

// playJS runs a script of testdata/discordjs as the bot.
func playJS(t *testing.T, s *Sim, script string) playedJS {
	t.Helper()
	dir := npmtest.Install(t, "discord.js@14.27.0")
	cmd := exec.CommandContext(within(t), "node", "testdata/discordjs/"+script)
	cmd.Env = append(os.Environ(), "MODULES="+dir, "API="+s.URL()+"/api", "TOKEN="+s.Token("chorus"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	js := playedJS{t, make(chan heardJS, 64), make(chan error, 1)}
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var h heardJS
			if json.Unmarshal(scan.Bytes(), &h) == nil {
				js.lines <- h
			}
		}
		js.ended <- cmd.Wait()
	}()
	return js
}

// line is the next one, whatever it says.
func (js playedJS) line(what string) heardJS {
	js.t.Helper()
	h := next(js.t, js.lines, what)
	if h.What == "error" {
		js.t.Fatal(h.Text)
	}
	return h
}

// hear is the next line about something.
func (js playedJS) hear(what string) heardJS {
	js.t.Helper()
	for {
		if h := js.line(what); h.What == what {
			return h
		}
	}
}

// What discord.js could not do here: to archive and lock threads without waiting for ten minutes, to search
// for members and messages, to forward, to end a poll, and to have emojis of its own.
func TestDiscordJSFeatures(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime})
	js := playJS(t, s, "features.mjs")
	want := func(what string, fits func(heardJS) bool) heardJS {
		t.Helper()
		h := js.hear(what)
		if !fits(h) {
			t.Errorf("%s: %+v", what, h)
		}
		return h
	}
	want("thread", func(h heardJS) bool { return h.Count == 1 })
	want("members", func(h heardJS) bool { return h.Count == 1 && h.Members == 3 && h.Name == "bob" && h.After == 1 })
	want("forward", func(h heardJS) bool { return h.Content == "the words of before" && h.Count == forward })
	poll := want("poll", func(h heardJS) bool { return h.Content == "Tea or coffee?" && h.Count == 2 })
	ok(t, s.Vote("ada", must[guild.ID](t)(guild.ParseID(poll.Text)), 2))
	want("ended", func(h heardJS) bool { return h.Content == "Coffee" && h.Count == 1 && h.After == 1 })
	result := must[guild.Message](t)(s.WaitMessage(within(t), func(m guild.Message) bool { return m.Type == pollResult }))
	if fields := jsonobject.List(result.Embeds[0], "fields"); len(fields) != 5 || fields[4]["value"] != "Coffee" {
		t.Errorf("the result is %+v", result.Embeds)
	}
	want("search", func(h heardJS) bool { return h.Count == 1 && h.Content == "the words of before" })
	want("emojis", func(h heardJS) bool { return h.Name == "wave2" && h.Count == 1 && h.After == 0 })
	want("limited", func(h heardJS) bool { return h.Count == 1 })
	ok(t, next(t, js.ended, "end"))
}

func TestDiscordJS(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime})
	js := playJS(t, s, "client.mjs")
	hear, line := js.hear, js.line
	find := func(fits func(guild.Message) bool) guild.Message {
		t.Helper()
		return must[guild.Message](t)(s.WaitMessage(within(t), fits))
	}

	if r := hear("ready"); r.Name != "chorus" || r.Channels != 3 || r.Members != 3 {
		t.Fatalf("ready %+v", r)
	}
	first := must[guild.ID](t)(s.Say("ada", "general", "hello"))
	if m := hear("message"); m.Content != "hello" || m.Author != "ada" {
		t.Fatalf("heard %+v", m)
	}
	answer := find(func(m guild.Message) bool { return m.Content == "RE: hello" })
	if answer.Reference.MessageID != first || len(answer.Attachments) != 1 {
		t.Fatalf("answered %+v", answer)
	}
	find(func(m guild.Message) bool { return m.Content == "in the thread" && m.ChannelID == answer.ID })
	if r := hear("refused"); r.Code != 50035 || r.After < 1 {
		t.Fatalf("refused %+v", r)
	}
	ok(t, s.React("bob", first, "✅"))
	if r := hear("reaction"); r.Emoji != "✅" || r.Count != 2 {
		t.Fatalf("reaction %+v", r)
	}
	must[guild.Interaction](t)(s.Slash("bob", "general", "chorus", "ping", map[string]any{"word": "loud"}))
	find(func(m guild.Message) bool { return m.Content == "pong loud" && (m.Flags&guild.FlagEphemeral != 0) })
	find(func(m guild.Message) bool { return m.Content == "and for all" && !(m.Flags&guild.FlagEphemeral != 0) })
	click := must[guild.Interaction](t)(s.Click("bob", answer.ID, "go"))
	must[guild.Interaction](t)(s.WaitInteraction(within(t), click.ID))
	must[guild.Interaction](t)(s.Submit("bob", "why", map[string]string{"reason": "I can"}))
	find(func(m guild.Message) bool { return m.Content == "because I can" })

	must[int](t)(s.Inject(Fault{Kind: FaultDrop, Code: 4000}))
	must[guild.ID](t)(s.Say("ada", "random", "missed me?"))
	find(func(m guild.Message) bool { return strings.HasPrefix(m.Content, "RE: missed") })
	for resumed, answered := false, false; !resumed || !answered; { // whichever comes first; who is sent away while it answers cannot
		h := line("resumed and refused")
		resumed, answered = resumed || h.What == "resumed", answered || h.What == "refused"
	}
	must[guild.ID](t)(s.Say("ada", "random", "bye"))
	ok(t, next(t, js.ended, "end"))
}

// What is newest in Discord, done by discord.js: it reads everything that is said here, and everything that it builds is taken. A bot that is added to the
// server posts a card of components, edits it in place, has a form with a menu filled in, proposes what is typed, and hears of threads and channels that are deleted.
func TestDiscordJSNewest(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime, Bots: []BotSpec{{Name: "chorus", Away: true}}, Channels: []ChannelSpec{{Name: "general"}, {Name: "spare"}}})
	js := playJS(t, s, "newest.mjs")
	if h := js.hear("ready"); h.Count != 0 {
		t.Fatalf("a bot that is away sees %d servers", h.Count)
	}
	ok(t, s.Invite("chorus"))
	joined := js.hear("joined")
	if joined.Name == "" || joined.Content != "step 2" || joined.Count != 3 {
		t.Fatalf("%+v", joined)
	}
	card := must[guild.ID](t)(guild.ParseID(joined.Text))
	typed := must[guild.Interaction](t)(s.Complete("bob", "general", "chorus", "find", map[string]any{"what": "pe"}, "what"))
	typed = must[guild.Interaction](t)(s.WaitInteraction(within(t), typed.ID))
	if h := js.hear("typing"); h.Content != "pe" || string(typed.Choices) != `[{"name":"PEAR","value":"pear"}]` {
		t.Errorf("%+v, proposed %s", h, typed.Choices)
	}
	click := must[guild.Interaction](t)(s.Click("bob", card, "order"))
	click = must[guild.Interaction](t)(s.WaitInteraction(within(t), click.ID))
	if modal := string(click.Modal); !strings.Contains(modal, `"max_values":2`) || !strings.Contains(modal, `"label":"Size"`) {
		t.Errorf("the form is %s", modal)
	}
	must[guild.Interaction](t)(s.Submit("bob", "form", map[string]string{"size": "s\nl", "name": "Bob"}))
	if h := js.hear("filled"); h.Content != "s+l" || h.Name != "Bob" {
		t.Errorf("%+v", h)
	}
	must[guild.Message](t)(s.WaitMessage(within(t), func(m guild.Message) bool { return m.ID == card && strings.Contains(m.Text(), "ordered") }))
	said := must[guild.ID](t)(s.Say("ada", "general", "here"))
	thread := must[guild.ID](t)(s.OpenThread("ada", said, "a talk"))
	ok(t, s.DeleteChannel(thread.String()))
	if h := js.hear("thread gone"); h.Name != "a talk" || h.Text != s.Channel("general").String() {
		t.Errorf("%+v", h)
	}
	ok(t, s.DeleteChannel("spare"))
	if h := js.hear("channel gone"); h.Name != "spare" {
		t.Errorf("%+v", h)
	}
}
