package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/split"
	"chorus/internal/text"
)

// Wanted returns what should be shown now.
func (v *View) Wanted(now time.Time) Wanted {
	var w Wanted
	for _, r := range v.runs {
		w.Messages = append(w.Messages, v.runMessages(r, now)...)
		for _, c := range v.cards {
			if c.run == r.id {
				w.Messages = append(w.Messages, v.cardMessage(c, r))
			}
		}
		if r.end == nil && !v.asks(r) {
			w.Typing = true
		}
		if r.end != nil && r.refused {
			w.Reactions = append(w.Reactions, v.refusal(r)...)
		}
	}
	w.Messages = append(w.Messages, v.notices...)
	w.Messages = append(w.Messages, v.refusals()...)
	for _, seq := range v.order {
		p := v.prompts[seq]
		if text, failed := v.failure(p); failed {
			w.Messages = append(w.Messages, Message{Key: fmt.Sprintf("failed/%d", seq), ReplyTo: p.target(), Text: text, Final: true})
		}
		if sign := v.sign(p); v.o.Reactions && p.target() != "" {
			w.Reactions = append(w.Reactions, Reaction{On: p.id, Emoji: sign})
		}
	}
	return w
}

// refusals tell people that messages were not taken. Several messages that arrived
// while the queue was full get one message, which counts them.
func (v *View) refusals() (out []Message) {
	full, count := -1, 1
	for _, seq := range v.order {
		p := v.prompts[seq]
		switch {
		case p.refused == "":
			continue
		case full >= 0 && isFull(p.refused):
			count++
			continue
		case isFull(p.refused):
			full = len(out)
		}
		out = append(out, Message{Key: fmt.Sprintf("refused/%d", seq), ReplyTo: p.target(), Text: "Not taken: " + strings.TrimRight(p.refused, ".") + ".", Final: true})
	}
	if full >= 0 {
		if count > 1 {
			out[full].Text = strings.TrimSuffix(out[full].Text, ".") + fmt.Sprintf("; %d messages were not taken.", count)
		}
		out[full].Final = v.Idle() // until then the count may grow
	}
	return out
}

// isFull reports whether a message was refused because too many wait.
func isFull(why string) bool { return strings.HasPrefix(why, "queue full") }

// failure returns what to tell the author of a prompt whose run failed while replying
// to another prompt, since a run may take several prompts but replies to only one.
// Whoever stops a run knows, so an abort is not reported.
func (v *View) failure(p *prompt) (text string, failed bool) {
	r := v.run(p.run)
	if r == nil || r.end == nil || p.target() == "" || p.target() == v.replyTo(r) {
		return "", false
	}
	switch r.end.Reason {
	case chat.EndFailed, chat.EndBudget, chat.EndDenied:
		return notice(*r.end), true
	}
	return "", false
}

// target returns the prompt's message on the platform, unless it was deleted.
func (p *prompt) target() string {
	if p.gone {
		return ""
	}
	return p.id
}

func (v *View) sign(p *prompt) string {
	r := v.run(p.run)
	switch {
	case p.refused != "":
		return SignNot
	case p.run == "":
		return SignAccepted
	case r == nil || r.end == nil:
		return SignWorking
	case r.end.Reason == chat.EndDone:
		return SignDone
	default:
		return SignNot
	}
}

// replyTo returns the first of a run's prompts that still exists, or else the last one.
func (v *View) replyTo(r *run) string {
	found := ""
	for _, seq := range r.prompts {
		if p := v.prompts[seq]; p != nil && p.target() != "" {
			if found = p.id; !v.o.Newest {
				return found
			}
		}
	}
	return found
}

// CardKey is the key of the message that asks for an approval.
func CardKey(approval string) string { return "ask/" + approval }

// refusal puts the sign on every message of the answer, or on the prompt.
func (v *View) refusal(r *run) (out []Reaction) {
	for _, m := range v.finals(r) {
		if !m.Absent() {
			out = append(out, Reaction{Key: m.Key, Emoji: SignRefused})
		}
	}
	if id := v.replyTo(r); len(out) == 0 && id != "" {
		out = append(out, Reaction{On: id, Emoji: SignRefused})
	}
	return out
}

func (v *View) asks(r *run) bool {
	return slices.ContainsFunc(v.cards, func(c *card) bool { return c.run == r.id && c.Open })
}

func (v *View) cardMessage(c *card, r *run) Message {
	shown := c.Card
	if r.end != nil {
		shown.Open = false // the run that asked is over
	}
	return Message{Key: CardKey(c.Approval), ReplyTo: v.replyTo(r), Card: &shown, Final: !shown.Open}
}

// StatusPart is the second part of the key of a status that does not become the answer.
const StatusPart = "status"

// part returns the key of a run's n-th message. The first is the status and
// then the answer, unless the answer is posted below it.
func part(r *run, n int) string { return fmt.Sprintf("%s/%d", r.id, n) }

func (v *View) runMessages(r *run, now time.Time) (out []Message) {
	out = v.asides(r)
	if r.end != nil {
		return append(out, v.finals(r)...)
	}
	if v.o.Status {
		// The status comes first: it was there before anything was thought or called.
		status := Message{Key: part(r, 0), ReplyTo: v.replyTo(r), Text: v.status(r, now), Stop: r.id}
		if v.o.Apart {
			status.Key, status.Status = r.id+"/"+StatusPart, true
		}
		out = append([]Message{status}, out...)
	}
	return out
}

// finals returns the authoritative answer of an ended run.
func (v *View) finals(r *run) (out []Message) {
	if r.told == nil {
		r.told = v.tell(r)
	}
	out = slices.Clone(r.told)
	if i := slices.IndexFunc(out, func(m Message) bool { return !m.Absent() }); i >= 0 {
		out[i].ReplyTo = v.replyTo(r) // its prompt may be deleted later
	}
	if v.o.Status && v.o.Apart {
		out = append(out, Message{Key: r.id + "/" + StatusPart, Status: true, Final: true}) // it is removed
	}
	return out
}

// tell splits the answer into messages.
func (v *View) tell(r *run) (out []Message) {
	answer := split.Fit(r.final(v.o), v.o.Split)
	texts := answer.Texts()
	if len(texts) == 0 {
		return []Message{{Key: part(r, 0), Final: true}} // an existing status is removed
	}
	if v.o.Footer && (r.end.Cost > 0 || !v.o.Brief) {
		texts = underneath(texts, v.footer(r), v.o.Split)
	}
	if v.o.Status && !v.o.Apart && len(v.asides(r)) > 0 {
		// What was said aside is below the status. The answer comes below that, and the status is removed.
		out = append(out, Message{Key: part(r, 0), Final: true})
	}
	first := len(out)
	for i, text := range texts {
		out = append(out, Message{Key: part(r, first+i), Text: text, Final: true})
	}
	out[first].File = answer.File
	return out
}

// underneath appends the footer to the last text, or adds it as a new one if it does not fit.
func underneath(texts []string, footer string, o split.Options) []string {
	hard := o.Hard
	if hard <= 0 {
		hard = split.DefaultHard
	}
	last := texts[len(texts)-1] + "\n" + footer
	if split.Length(last) > hard {
		return append(texts, split.Clip(footer, hard))
	}
	return append(texts[:len(texts)-1:len(texts)-1], last)
}

// footer returns the small print: *branch #3 · 2 steps · 1,234 (100 cached) in / 567 out · $0.042 · 12.5s*.
func (v *View) footer(r *run) string {
	var parts []string
	if v.o.Label != "" {
		parts = append(parts, v.o.Label)
	}
	if !v.o.Brief {
		parts = append(parts, text.Count(r.end.Steps, "step"), tokens(r.end.Usage))
	}
	if cost := money(r.end.Cost); cost != "" {
		parts = append(parts, cost)
	}
	if !r.began.IsZero() && !r.ended.IsZero() {
		parts = append(parts, fmt.Sprintf("%.1fs", r.ended.Sub(r.began).Seconds()))
	}
	return "*" + strings.Join(parts, " · ") + "*"
}

func tokens(u chat.Usage) string {
	in := text.Thousands(u.Input + u.CacheRead + u.CacheWrite)
	if u.CacheRead > 0 {
		in += fmt.Sprintf(" (%s cached)", text.Thousands(u.CacheRead))
	}
	return in + " in / " + text.Thousands(u.Output) + " out"
}

// money formats billionths of a dollar, or returns "" for nothing.
func money(nanos int64) string {
	if nanos <= 0 {
		return ""
	}
	return text.Dollars(float64(nanos) / 1e9)
}
