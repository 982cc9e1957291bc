package discordtest

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
	connect "chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/storetest"
	"chorus/internal/transcript"
)

// guildT is a guild with a bot of ours in it.
type guildT struct {
	*testing.T
	*discordsim.Sim
	home   string
	app    *app.App
	stop   func()
	tune   func(*connect.BotOptions)
	quiet  time.Duration // how long a minute lasts for those who wait for quiet
	warned chan string
	pause  modelPause
}

// inGuild opens a home whose bot lives in a simulated guild.
func inGuild(t *testing.T, o discordsim.Options, files map[string]string) *guildT {
	t.Helper()
	return inOldGuild(t, o, files, func(*guildT) {})
}

// inOldGuild is inGuild where something was said before the bot came.
func inOldGuild(t *testing.T, o discordsim.Options, files map[string]string, before func(*guildT)) *guildT {
	t.Helper()
	g := &guildT{T: t, home: storetest.FreshHome(t), warned: make(chan string, 16)}
	o.NoRateLimits = true
	if o.TimeScale == 0 {
		o.TimeScale = 0.1 // an order is to be answered within three seconds, which a busy machine may not keep
	}
	g.Sim = discordsim.StartT(t, o)
	if text := files["shared.yaml"]; !strings.Contains(text, "answer:") && !strings.Contains(text, "allow:") {
		files["shared.yaml"] += "answer: all\n" // most tests are about what is answered, not whether
	}
	files["shared.yaml"] += "continuationModel: demo/script\nsandbox: host\n"
	for name, text := range files {
		g.write(name, text)
	}
	if tune, ok := shortTimes[t.Name()]; ok {
		g.tune = tune
	}
	before(g)
	g.start()
	t.Cleanup(g.end)
	return g
}

// shortTimes are the times of tests that wait for them.
var shortTimes = map[string]func(*connect.BotOptions){
	"TestDiscordLiveStatusAndTyping":       func(o *connect.BotOptions) { o.Typing, o.Preview = 20*time.Millisecond, 20*time.Millisecond },
	"TestDiscordSignsEnd":                  func(o *connect.BotOptions) { o.Preview = 50 * time.Millisecond },
	"TestDiscordAnswersOnceAcrossRestarts": func(o *connect.BotOptions) { o.Preview = 50 * time.Millisecond },
	"TestDiscordUpload":                    func(o *connect.BotOptions) { o.Preview = time.Hour }, // the file is the first thing said
	"TestDiscordShards":                    func(o *connect.BotOptions) { o.FirstBackoff = 20 * time.Millisecond },
	"TestDiscordFilesHang":                 func(o *connect.BotOptions) { o.Fetch = time.Second },
	"TestDiscordFilesThatCannotBeHad":      func(o *connect.BotOptions) { o.FirstBackoff = 10 * time.Millisecond },
	"TestDiscordNoticesADeafConnection": func(o *connect.BotOptions) {
		o.Recheck, o.Grace = 200*time.Millisecond, time.Millisecond
	},
	"TestDiscordMissingItsNameReadsNothing": func(o *connect.BotOptions) {
		o.Recheck, o.Grace, o.FirstBackoff, o.BackoffMax = 20*time.Millisecond, time.Millisecond, 10*time.Millisecond, 50*time.Millisecond
	},
	"TestDiscordHearsPrivateWordsWithoutTheGuild": func(o *connect.BotOptions) {
		o.CallWait, o.Recheck, o.Grace = 500*time.Millisecond, time.Second, time.Millisecond // what takes longer than CallWait is found by the recheck
	},
	"TestDiscordDeletedThreadIsErasedAtOnce": func(o *connect.BotOptions) { o.Preview, o.Recheck = 20*time.Millisecond, 100*time.Millisecond },
	"TestDiscordMissingTheAnswerPostsOnce":   func(o *connect.BotOptions) { o.Nonce = time.Millisecond },
	"TestDiscordDownForTenMinutes": func(o *connect.BotOptions) {
		o.FirstBackoff, o.BackoffMax = 4*time.Millisecond, 128*time.Millisecond // 1 s and 32 s
	},
	"TestDiscordAnswersOnceInAStorm": func(o *connect.BotOptions) {
		o.Recheck, o.FirstBackoff, o.BackoffMax = 300*time.Millisecond, 20*time.Millisecond, 200*time.Millisecond
	},
}

func (g *guildT) start() {
	g.Helper()
	a, err := app.Open(g.Context(), app.Options{Home: g.home, Env: g.env,
		Warn: g.warn})
	if err != nil {
		g.Fatal(err)
	}
	g.app = a
	a.Host.Tune, a.Host.IdleMinute, a.Models.Through = g.tune, g.quiet, g.pause.through
	a.Service.Handler()
	if g.stop, err = a.Host.Connect(); err != nil {
		g.Fatal(err)
	}
	if strings.Contains(g.Name(), "Missing") {
		return
	}
	if err := g.WaitConnected(g.soon(), "chorus"); err != nil {
		g.Fatal(err)
	}
}

// warn keeps the first warnings; nobody waits for somebody to read them.
func (g *guildT) warn(text string) {
	select {
	case g.warned <- text:
	default:
	}
}

// env has the first bot's token, and each other's as TOKEN_ and its name.
func (g *guildT) env(name string) string {
	if bot, ok := strings.CutPrefix(name, "TOKEN_"); ok {
		return g.Token(strings.ToLower(bot))
	}
	return apptest.Env("DISCORD_API_URL", g.API(), "DISCORD_BOT_TOKEN", g.Token("chorus"), "USER", "tester")(name)
}

func (g *guildT) end() {
	if g.app == nil {
		return
	}
	g.stop()
	if err := g.app.Close(); err != nil {
		g.Error(err)
	}
	g.app = nil
}

// write puts a file into the home's configuration.
func (g *guildT) write(name, text string) {
	g.Helper()
	path := filepath.Join(g.home, "config", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		g.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// room is the conversation of an agent that is a whole channel.
func (g *guildT) room(channel, agent string) chat.ThreadID {
	return chat.ThreadID(fmt.Sprintf("discord:%s/%s:%s@%s", g.Guild(), g.Channel(channel), g.Channel(channel), agent))
}

// threadOf is the thread that a message began.
func (g *guildT) threadOf(channel string, message discordsim.ID) chat.ThreadID {
	return chat.ThreadID(fmt.Sprintf("discord:%s/%s:%s@%s", g.Guild(), g.Channel(channel), message, chat.DefaultAgent))
}

// row finds the thread that a message of somebody's opened.
func (g *guildT) thread(id discordsim.ID) chat.ThreadID {
	g.Helper()
	row, err := g.app.Service.FindThread(g.Context(), id.String())
	if err != nil {
		g.Fatal(err)
	}
	return row.ID
}

func (g *guildT) mention(bot string) string { return "<@" + g.User(bot).String() + ">" }

func (g *guildT) say(who, channel, text string) discordsim.ID {
	g.Helper()
	id, err := g.Say(who, channel, text)
	if err != nil {
		g.Fatal(err)
	}
	return id
}

func (g *guildT) reply(who string, to discordsim.ID, text string) discordsim.ID {
	g.Helper()
	id, err := g.Reply(who, to, text)
	if err != nil {
		g.Fatal(err)
	}
	return id
}

// post says something with files.
func (g *guildT) post(who, channel string, what discordsim.Said) discordsim.ID {
	g.Helper()
	id, err := g.Post(who, channel, what)
	if err != nil {
		g.Fatal(err)
	}
	return id
}

// command gives a command and waits for what is shown for it.
func (g *guildT) command(person, channel, command string, options map[string]any) discordsim.Message {
	g.Helper()
	name, _, _ := strings.Cut(command, " ")
	if err := g.WaitCommand(g.soon(), "chorus", name); err != nil {
		g.Fatal(err)
	}
	i, err := g.Slash(person, channel, "chorus", command, options)
	if err != nil {
		g.Fatal(err)
	}
	return g.shown("/"+command, i)
}

// commandShows gives a command and looks for words in what is shown.
func (g *guildT) commandShows(person, command string, options map[string]any, want ...string) string {
	g.Helper()
	text := g.command(person, "general", command, options).Text()
	for _, w := range want {
		if !strings.Contains(text, w) {
			g.Errorf("/%s by %s shows %q without %q", command, person, text, w)
		}
	}
	if strings.Contains(text, "{") && strings.Contains(text, ":{") {
		g.Errorf("/%s shows the inside of the program: %q", command, text)
	}
	return text
}

func (g *guildT) click(who string, message discordsim.ID, button string) {
	g.Helper()
	i, err := g.Click(who, message, button)
	if err != nil {
		g.Fatal(err)
	}
	g.answered("the click", i)
}

// answered waits until Discord knows that a click or a command was heard.
func (g *guildT) answered(what string, i discordsim.Interaction) discordsim.Interaction {
	g.Helper()
	got, err := g.WaitInteraction(g.soon(), i.ID)
	if err != nil || got.Failed {
		g.Fatalf("%s was not acknowledged: %+v, %v", what, got, err)
	}
	return got
}

// transcript is what stands in the channel, for people who read failures.
func (g *guildT) transcript() string {
	var b strings.Builder
	list, _ := g.Messages("general")
	for _, m := range list {
		fmt.Fprintf(&b, "%s %s: %q", m.ID, m.Author.Username, m.Text())
		for _, r := range m.Reactions {
			fmt.Fprintf(&b, " %s", r.Emoji.Name)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// countOwn counts the bot's messages in a channel.
func (g *guildT) countOwn(channel string) int {
	g.Helper()
	list, err := g.Messages(channel)
	if err != nil {
		g.Fatal(err)
	}
	n := 0
	for _, m := range list {
		if m.Author.Bot {
			n++
		}
	}
	return n
}

func (g *guildT) events(thread chat.ThreadID) []chat.Event {
	g.Helper()
	list, err := g.app.DB.Events(g.Context(), thread, 0, 1000)
	if err != nil {
		g.Fatal(err)
	}
	return list
}

// modelSees is what a model would be shown of a conversation.
func (g *guildT) modelSees(thread chat.ThreadID) []string {
	g.Helper()
	log := transcript.New(func(hash string) ([]byte, error) { return g.app.DB.Blob(g.Context(), hash) })
	for _, ev := range g.events(thread) {
		if err := log.Apply(ev); err != nil {
			g.Fatal(err)
		}
	}
	lines, err := log.Lines()
	if err != nil {
		g.Fatal(err)
	}
	var out []string
	for _, l := range lines {
		name := l.From.Name
		if l.Role == "assistant" {
			name = "(own)"
		}
		out = append(out, name+": "+l.Blocks.Text())
	}
	return out
}

// lines are the words in a thread's window.
func (g *guildT) lines(thread chat.ThreadID) string {
	g.Helper()
	row, err := g.app.DB.Thread(g.Context(), thread)
	if err != nil {
		g.Fatal(err)
	}
	lines, err := g.app.Service.LinesUpTo(g.Context(), thread, row.Next-1)
	if err != nil {
		g.Fatal(err)
	}
	var out []string
	for _, l := range lines {
		out = append(out, l.Blocks.Text())
	}
	return strings.Join(out, "|")
}

func (g *guildT) expect(thread chat.ThreadID, want ...string) {
	g.Helper()
	if got := g.modelSees(thread); !slices.Equal(got, want) {
		g.Errorf("the model sees\n  %s\nnot\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// workspace is where a thread's tools work.
func (g *guildT) workspace(thread chat.ThreadID) string {
	g.Helper()
	row, err := g.app.DB.Thread(g.Context(), thread)
	if err != nil {
		g.Fatal(err)
	}
	return row.Dir
}
