package connector

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
	"chorus/internal/room/threadname"
)

// places is where the messages of a conversation are: each prompt where it was said,
// each run where its first prompt wants the answer.
type places struct {
	platform string
	thread   chat.ThreadID
	asks     map[int64]ask
	runs     map[string][]int64 // what each run answers
	cards    map[string]string  // the run of each question
	notices  map[int64]string   // where what is told without a run goes
	run      string             // the one that is on; "": none
	// elsewhere is where a conversation of another transport is shown.
	elsewhere string
}

// ask is a message that waits for an answer.
type ask struct {
	message, channel, post, by string
	person                     string // by, if that is somebody of this platform
}

func newPlaces(platform string, thread chat.ThreadID) places {
	return places{platform: platform, thread: thread, asks: map[int64]ask{}, runs: map[string][]int64{}, cards: map[string]string{}, notices: map[int64]string{}}
}

func (p *places) learn(ev chat.Event) {
	switch e := ev.Body.(type) {
	case chat.Received:
		if !e.Prompt {
			if to := cmp.Or(e.Post, e.Channel); to != "" {
				p.notices[ev.Seq] = to
			}
			return
		}
		a := ask{channel: e.Channel, post: cmp.Or(e.Post, e.Channel), by: e.Principal.ID}
		if ev.Platform == p.platform {
			a.message = ev.PlatformID
		}
		if who := e.Principal.Person(); string(who.Kind) == p.platform {
			a.person = who.ID
		}
		p.asks[ev.Seq] = a
	case chat.Steered:
		p.asks[ev.Seq] = ask{by: e.Principal.ID}
	case chat.RunStarted:
		p.run = e.Run
	case chat.Took:
		p.runs[e.Run] = append(p.runs[e.Run], e.Seqs...)
	case chat.ApprovalAsked:
		p.cards[e.ID] = cmp.Or(ev.Run, p.run)
	case chat.RunEnded:
		p.run = ""
	}
}

// home is where the thread is when nobody says otherwise: its channel, or the private
// thread that it is in.
func (p *places) home() string {
	if p.elsewhere != "" {
		return p.elsewhere
	}
	_, _, channel := room.PlaceParts(p.thread.Place())
	return channel
}

// of is where a run is shown.
func (p *places) of(run string) string {
	for _, seq := range p.runs[run] {
		if a := p.asks[seq]; a.post != "" {
			return a.post
		}
	}
	return p.home()
}

func (p *places) now() string { return p.of(p.run) }

// placed reports whether it is known where the run that is on is shown: a run begins one event before
// it takes what it answers.
func (p *places) placed() bool {
	_, took := p.runs[p.run]
	return took || p.run == ""
}

// askers are the people whose run is on.
func (p *places) askers() []string {
	var out []string
	for _, seq := range p.runs[p.run] {
		out = append(out, p.asks[seq].by)
	}
	return out
}

// ofKey is where a message of ours is.
func (p *places) ofKey(key string) string {
	if told, ok := strings.CutPrefix(key, "notice-"); ok {
		told, _, _ = strings.Cut(told, "/")      // which of its messages
		seq, _ := strconv.ParseInt(told, 10, 64) // 0 is nobody's number
		return cmp.Or(p.notices[seq], p.home())
	}
	what, id, _ := strings.Cut(key, "/")
	switch what {
	case "ask":
		return p.of(p.cards[id])
	case "refused":
		if seq, err := strconv.ParseInt(id, 10, 64); err == nil && p.asks[seq].channel != "" {
			return p.asks[seq].channel
		}
		return p.home()
	default:
		return p.of(what)
	}
}

// askOf is the first message that a message of ours answers.
func (p *places) askOf(key string) ask {
	what, id, _ := strings.Cut(key, "/")
	switch what {
	case "ask":
		what = p.cards[id]
	case "refused":
		seq, _ := strconv.ParseInt(id, 10, 64) // 0 is nobody's number
		return p.asks[seq]
	}
	for _, seq := range p.runs[what] {
		if a := p.asks[seq]; a.message != "" {
			return a
		}
	}
	return ask{}
}

// ofMessage is where a message of somebody else is.
func (p *places) ofMessage(id string) string {
	for _, a := range p.asks {
		if a.message == id && a.channel != "" {
			return a.channel
		}
	}
	return p.home()
}

// forget drops what is over; only when nothing is on.
func (p *places) forget() {
	clear(p.asks)
	clear(p.runs)
	clear(p.cards)
	clear(p.notices)
}

// message is the row for a message.
func (t *publisher) message(m render.Message, seq int64) journal.Desired {
	channel := t.where.ofKey(m.Key)
	d := journal.Desired{Lane: t.bot.Lane(channel), Key: m.Key, Thread: t.thread, Seq: seq, Final: m.Final, Gone: m.Absent()}
	if run, n, ok := strings.Cut(m.Key, "/"); ok && run != "refused" && !strings.HasPrefix(run, "notice-") { // the first is the number of an event, the second answers nobody
		if i, err := strconv.Atoi(n); err == nil {
			d.Part, d.Group = i, run
		}
	}
	p := platform.Post{Text: m.Text, Stop: m.Stop}
	if a := t.where.askOf(m.Key); a.message != "" {
		p.Asker, p.Ask, p.AskIn = a.by, a.message, a.channel
		if a.channel != channel {
			p.Home = a.channel
		}
	}
	if m.ReplyTo != "" && t.where.ofMessage(m.ReplyTo) == channel {
		p.ReplyTo = m.ReplyTo // across channels there are no replies
	}
	if m.Aside {
		p.Aside, p.Name = true, t.bot.Backend.Display(t.thread).Name
	}
	if m.File != nil {
		p.File, p.Content = m.File.Name, m.File.Text
	}
	if m.Card != nil {
		var clipped bool
		p.Text, clipped = t.bot.cards.Text(*m.Card, t.where.askOf(m.Key).person)
		p.Panel = t.bot.cards.Panel(*m.Card)
		if m.Card.Open {
			p.Card, p.Reason, p.Always = m.Card.Approval, t.bot.caps.Forms, t.bot.caps.MaxPanel > 0
			if approval.IsQuestion(m.Card.Actions) {
				p.Reason, p.Always, p.Words = false, false, t.bot.caps.Forms && len(m.Card.Fields) > 0
				p.Fields = t.bot.formFields(m.Card.Fields)
			}
		}
		if clipped {
			p.Details = m.Card.Approval
		}
	}
	if m.Status && t.bot.caps.MaxPanel > 0 {
		p.Panel = platform.PanelWork
	}
	p.Text, p.Content = t.bot.Backend.Redact(p.Text), t.bot.Backend.Redact(p.Content)
	if m.Card == nil && !m.Aside && !m.Status {
		guild, _, _ := strings.Cut(t.thread.Place(), "/")
		p.Notify = t.bot.notifies(guild, p.Text, t.bot.Backend.Display(t.thread).NotifyPeople)
	}
	d.Body = p.Body()
	return d
}

// reaction is the row for a reaction, on or off.
func (t *publisher) reaction(r render.Reaction, seq int64, on bool) journal.Desired {
	d := journal.Desired{Key: "sign/" + cmp.Or(r.On, r.Key) + "/" + r.Emoji, Thread: t.thread, Seq: seq, Thing: journal.Reaction,
		Target: r.On, TargetKey: r.Key, Body: platform.Post{Emoji: r.Emoji}.Body(), Final: true, Gone: !on}
	if r.On != "" {
		d.Lane, d.TargetKey = t.bot.Lane(t.where.ofMessage(r.On)), ""
	} else {
		d.Lane = t.bot.Lane(t.where.ofKey(r.Key))
	}
	return d
}

// showOptions is how the conversations of a thread are shown.
func (b *Bot) showOptions(thread chat.ThreadID) render.Options {
	guild, _, _ := strings.Cut(thread.Place(), "/")
	o := render.Options{
		Platform: b.transport, Split: split.Options{Hard: b.caps.MaxText, Target: b.caps.MaxText * 9 / 10}, Status: b.caps.Edits, Apart: b.caps.MaxPanel > 0, Reactions: b.caps.Reactions, Name: thread.Agent(),
		Words: func(s string) string { return mention.Write(mention.WithoutReply(s), b.directory(guild)) },
		Call:  CallLabel,
	}
	b.display(&o, thread)
	return o
}

// CallLabel is a call in a line.
func CallLabel(name string, raw []byte) string {
	var args map[string]any
	_ = json.Unmarshal(raw, &args) // what is no object has no detail
	for _, key := range []string{"command", "path", "pattern", "query", "url", "name"} {
		if s, ok := args[key].(string); ok && s != "" {
			line, _, _ := strings.Cut(s, "\n")
			return name + " " + line
		}
	}
	return name
}

// open opens the platform's thread that an answer goes into. It is there already when
// this is not the first time.
func (t *publisher) open(ctx context.Context, ev *chat.Event) error {
	e, ok := ev.Body.(chat.Received)
	if !ok || !e.Prompt || e.Post == "" || e.Post != ev.PlatformID {
		return nil
	}
	b := t.bot
	if _, known := b.Platform.Known(e.Post); known || b.can.threads == nil {
		return nil
	}
	name := threadname.Of(b.Backend.Redact(e.Blocks.Text()))
	_, err := callWithin(ctx, b, b.CallWait, "open thread", func(ctx context.Context) (room.Channel, error) {
		return b.can.threads.OpenOn(ctx, e.Channel, e.Post, name)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		b.Log.Warn("could not open a thread", "event", "thread_not_opened", "message", ev.PlatformID, "error", err)
	}
	return nil
}
