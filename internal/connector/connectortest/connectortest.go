// Package connectortest is the suite in which an agent talks over a chat platform: the whole
// program with its offline model, against the platform's own server. A new platform passes
// platformtest first, then this.
//
// It promises to use the platform as people do, and to count what they see: an answer appears
// once, whatever happens on the way.
package connectortest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/connector/host"
	"chorus/internal/platform"
	"chorus/internal/platform/platformtest"
	"chorus/internal/polltest"
)

// config lets the offline model play people's messages as scripts.
const config = "continuationModel: demo/script\nanswer: all\nsandbox: host\n"

// stopTime limits how long the program may take to end.
const stopTime = 20 * time.Second

// Run runs the suite. start makes a server for one case, and home an empty home.
func Run(t *testing.T, home func(testing.TB) string, start func(t *testing.T) *platformtest.Server) {
	t.Helper()
	for name, run := range map[string]func(*program){
		"an agent answers once":               answers,
		"a broken connection":                 cut,
		"what was said meanwhile is answered": meanwhile,
		"posts that go wrong":                 failing,
		"a long answer is split":              long,
		"an approval":                         approves,
		"a command":                           commands,
		"the program ends while a run is on":  ends,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &program{T: t, Server: start(t), home: home(t)}
			p.write("shared.yaml", config)
			p.begin()
			t.Cleanup(p.end)
			run(p)
		})
	}
}

// program is a running program with one bot on a platform.
type program struct {
	*testing.T
	*platformtest.Server
	home string
	caps platform.Caps
	app  *app.App
	stop func()
}

func (p *program) write(name, text string) {
	p.Helper()
	file := filepath.Join(p.home, "config", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// begin starts the program.
func (p *program) begin() {
	p.Helper()
	client := p.Open()
	p.caps = client.Caps()
	var err error
	if p.app, err = app.Open(p.Context(), app.Options{Home: p.home, Env: apptest.Env("USER", "tester")}); err != nil {
		p.Fatal(err)
	}
	p.app.Host.Tune = func(o *host.BotOptions) { o.FirstBackoff, o.Preview = 10*time.Millisecond, 50*time.Millisecond }
	p.app.Host.Platforms = []host.Platform{{Name: client.Name(), Label: p.caps.Label, Accounts: func() ([]host.Account, error) {
		return []host.Account{{Name: chat.DefaultAgent, Open: func(host.BotOptions) (platform.Platform, error) { return client, nil }}}, nil
	}}}
	p.app.Service.Handler()
	if p.stop, err = p.app.Host.Connect(); err != nil {
		p.Fatal(err)
	}
	// Messages from before the bot came are not answered.
	polltest.Until(p.T, "the bot reads the channel", func() bool {
		read, err := p.app.DB.Cursors(p.Context(), client.Name(), chat.DefaultAgent)
		return err == nil && read[p.Channel] != ""
	})
}

// end ends the program as its own process would.
func (p *program) end() {
	if p.app == nil {
		return
	}
	began := time.Now()
	p.stop()
	if err := p.app.Close(); err != nil {
		p.Error(err)
	}
	if d := time.Since(began); d > stopTime {
		p.Errorf("the program took %v to end", d)
	}
	p.app = nil
}

// say sends a message as the person.
func (p *program) say(text string) string {
	p.Helper()
	return p.Say(p.Channel, platformtest.Post{Text: text})
}

// own returns the bot's messages.
func (p *program) own() []platformtest.Shown {
	return slices.DeleteFunc(slices.Clone(p.Shows(p.Channel)), func(m platformtest.Shown) bool { return !m.Own })
}

// shown waits for a matching message of the bot.
func (p *program) shown(what string, fits func(platformtest.Shown) bool) platformtest.Shown {
	p.Helper()
	var found platformtest.Shown
	if !polltest.Soon(func() bool {
		i := slices.IndexFunc(p.own(), fits)
		if i >= 0 {
			found = p.own()[i]
		}
		return i >= 0
	}) {
		p.Fatalf("not shown: %s; there is\n%+v", what, p.Shows(p.Channel))
	}
	return found
}

// answered waits for a text of the bot.
func (p *program) answered(text string) platformtest.Shown {
	p.Helper()
	return p.shown(text, func(m platformtest.Shown) bool { return m.Text == text })
}

// counted checks the number of the bot's messages after one more answer: anything still on its way
// arrives before that.
func (p *program) counted(want int) {
	p.Helper()
	p.say("say that was all")
	p.answered("that was all")
	if list := p.own(); len(list) != want+1 {
		p.Errorf("the bot has said %d things, not %d: %+v", len(list)-1, want, list)
	}
}

func answers(p *program) {
	asked := p.say("say first answer")
	first := p.answered("first answer")
	if first.ReplyTo != asked {
		p.Errorf("the answer replies to %q, not to %q", first.ReplyTo, asked)
	}
	p.Say(p.Channel, platformtest.Post{Text: "say second answer", ReplyTo: first.ID})
	p.answered("second answer")
	hostile := fmt.Sprintf("@everyone <@%s> look", p.Person)
	p.say("say " + hostile)
	if m := p.shown("hostile words", func(m platformtest.Shown) bool { return strings.HasSuffix(m.Text, "look") }); len(m.Notified) > 0 {
		p.Errorf("%q notifies %v", m.Text, m.Notified)
	}
	p.counted(3)
}

func cut(p *program) {
	if p.Cut == nil {
		p.Skip("this platform has no connection that breaks")
	}
	p.say("say before")
	p.answered("before")
	for i := range 3 {
		p.Cut()
		p.say(fmt.Sprint("say after cut ", i))
	}
	for i := range 3 {
		p.answered(fmt.Sprint("after cut ", i))
	}
	p.counted(4)
}

func meanwhile(p *program) {
	p.say("say before")
	p.answered("before")
	p.end()
	for i := range 5 {
		p.say(fmt.Sprint("say meanwhile ", i))
	}
	p.begin()
	for i := range 5 {
		p.answered(fmt.Sprint("meanwhile ", i))
	}
	p.end()
	p.begin()
	p.counted(6)
}

func failing(p *program) {
	if p.Fail == nil {
		p.Skip("this platform cannot fail on purpose")
	}
	p.say("say before")
	p.answered("before")
	list := []platformtest.Failure{platformtest.Lost, platformtest.Refused, platformtest.Limited}
	for _, f := range list {
		p.Fail(f)
		p.say(fmt.Sprint("say in spite of ", f))
		p.answered(fmt.Sprint("in spite of ", f))
	}
	p.counted(1 + len(list))
}

func long(p *program) {
	var words []string
	for i := range p.caps.MaxText / 2 {
		words = append(words, fmt.Sprint("word", i))
	}
	p.say("say short")
	p.answered("short")
	p.Say(p.Channel, platformtest.Post{Text: "play this", File: "script.txt", Data: []byte("!say " + strings.Join(words, " "))})
	// While the answer is being written, messages are previews of it: only the end counts.
	shown := func() (got []string, filed bool) {
		for _, m := range p.own()[1:] {
			if n := len([]rune(m.Text)); n > p.caps.MaxText {
				p.Errorf("a message of %d characters", n)
			}
			got, filed = append(got, strings.Fields(m.Text)...), filed || len(m.Files) > 0
		}
		return got, filed
	}
	if !polltest.Soon(func() bool { got, filed := shown(); return filed || slices.Equal(got, words) }) {
		got, _ := shown()
		p.Errorf("%d words are shown, not %d", len(got), len(words))
	}
}

func approves(p *program) {
	for i, yes := range []bool{true, false} {
		p.say(fmt.Sprintf("call bash {\"command\":\"echo one > proof%d.txt\"}\nend\nsay it is over %d", i, i))
		card := p.shown("a card", func(m platformtest.Shown) bool {
			return strings.Contains(m.Text, "May I ") && strings.Contains(m.Text, fmt.Sprintf("proof%d", i))
		})
		word, button := map[bool]string{true: "yes", false: "no"}[yes], platform.PressNo
		if yes {
			button = platform.PressYes
		}
		at := slices.IndexFunc(card.Buttons, func(v string) bool { action, _, _ := platform.ReadButton(v); return action == button })
		if p.caps.Buttons && at < 0 {
			p.Fatalf("the card has no button for %s: %+v", word, card)
		}
		// The first by a button if there is one, the second by a reply.
		if at >= 0 && i == 0 {
			p.Press(card.ID, card.Buttons[at])
		} else {
			p.Say(p.Channel, platformtest.Post{Text: word, ReplyTo: card.ID})
		}
		p.answered(fmt.Sprintf("it is over %d", i))
	}
}

func commands(p *program) {
	p.say("say hello")
	p.answered("hello")
	if _, native := p.Open().(platform.Commander); native {
		p.Invoke(p.Channel, "status", nil)
		polltest.Until(p.T, "the person is shown the status", func() bool {
			return slices.ContainsFunc(p.Private(), func(text string) bool { return strings.Contains(text, "**"+chat.DefaultAgent+"** answers here") })
		})
		return
	}
	p.say("/status")
	p.shown("the answer to /status", func(m platformtest.Shown) bool { return strings.Contains(m.Text, chat.DefaultAgent) })
	p.say("/steer")
	p.shown("what /steer needs", func(m platformtest.Shown) bool { return strings.Contains(m.Text, "/steer needs message") })
	p.say("/steer message=faster please")
	p.shown("the answer to /steer", func(m platformtest.Shown) bool { return strings.Contains(m.Text, "Nothing is running here") })
	p.say("/help")
	p.shown("the list of commands", func(m platformtest.Shown) bool {
		return strings.Contains(m.Text, "`/access`") && !strings.Contains(m.Text, "/settings")
	})
	p.say("/help topic=look")
	p.shown("what they do", func(m platformtest.Shown) bool { return strings.Contains(m.Text, "`/cost since=7d`") })
	p.counted(6)
}

func ends(p *program) {
	p.say("say before")
	p.answered("before")
	p.say("say begun\nwait")
	p.end() // which must not take long
	if list := p.own(); len(list) > 2 {
		p.Errorf("the bot has said %+v", list)
	}
}
