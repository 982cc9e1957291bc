package publish

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/markdown"
	"chorus/internal/platform"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// message is the row for a message.
func (c *conversation) message(m render.Message, seq int64) journal.Desired {
	channel := c.where.ofKey(m.Key)
	d := journal.Desired{Lane: c.lane(channel), Key: m.Key, Thread: c.thread, Seq: seq, Final: m.Final, Gone: m.Absent()}
	if run, n, ok := strings.Cut(m.Key, "/"); ok && run != "refused" && !strings.HasPrefix(run, "notice-") { // the first is the number of an event, the second answers nobody
		if i, err := strconv.Atoi(n); err == nil {
			d.Part, d.Group = i, run
		}
	}
	p := platform.Post{Text: m.Text, Stop: m.Stop}
	if a := c.where.askOf(m.Key); a.message != "" {
		p.Asker, p.Ask, p.AskIn = a.by, a.message, a.channel
		if a.channel != channel {
			p.Home = a.channel
		}
	}
	if m.ReplyTo != "" && c.where.ofMessage(m.ReplyTo) == channel {
		p.ReplyTo = m.ReplyTo // across channels there are no replies
	}
	if m.Aside {
		p.Aside, p.Name = true, c.Backend.Display(c.thread).Name
	}
	if m.File != nil {
		p.File, p.Content = m.File.Name, m.File.Text
	}
	if m.Card != nil {
		var clipped bool
		p.Text, clipped = c.cards.Text(*m.Card, c.where.askOf(m.Key).person)
		p.Panel = c.cards.Panel(*m.Card)
		if m.Card.Open {
			p.Card, p.Reason, p.Always = m.Card.Approval, c.caps.Forms, c.caps.MaxPanel > 0
			if approval.IsQuestion(m.Card.Actions) {
				p.Question, p.Reason, p.Always, p.Words = true, false, false, c.caps.Forms && len(m.Card.Fields) > 0
				p.Fields = c.formFields(m.Card.Fields)
			}
		}
		if clipped {
			p.Details = m.Card.Approval
		}
	}
	if m.Status && c.caps.MaxPanel > 0 {
		p.Panel = platform.PanelWork
	}
	p.Text, p.Content = c.Backend.Redact(p.Text), c.Backend.Redact(p.Content)
	if m.Card == nil && !m.Aside && !m.Status {
		guild, _, _ := strings.Cut(c.thread.Place(), "/")
		p.Notify = c.Notifies(guild, p.Text, c.Backend.Display(c.thread).NotifyPeople)
	}
	d.Body = p.Body()
	return d
}

// reaction is the row for a reaction, on or off.
func (c *conversation) reaction(r render.Reaction, seq int64, on bool) journal.Desired {
	d := journal.Desired{Key: "sign/" + cmp.Or(r.On, r.Key) + "/" + r.Emoji, Thread: c.thread, Seq: seq, Thing: journal.Reaction,
		Target: r.On, TargetKey: r.Key, Body: platform.Post{Emoji: r.Emoji}.Body(), Final: true, Gone: !on}
	if r.On != "" {
		d.Lane, d.TargetKey = c.lane(c.where.ofMessage(r.On)), ""
	} else {
		d.Lane = c.lane(c.where.ofKey(r.Key))
	}
	return d
}

// formFields are the fields of a question for a form; none: they do not fit, and the
// answer is written as text.
func (p *Publisher) formFields(fields []chat.Field) (out []platform.FormField) {
	if len(fields) > platform.MaxFields || slices.ContainsFunc(fields, func(f chat.Field) bool { return f.Name == "" || split.Length(f.Name) > platform.MaxFieldName }) {
		return nil
	}
	for _, f := range fields {
		field := platform.FormField{Name: f.Name, Label: p.Backend.Redact(f.Label), Hint: p.Backend.Redact(approval.Hint(f)), Several: f.Several, Optional: f.Optional, Values: f.Values}
		choices := f.Choices
		if len(choices) > platform.MaxFormChoices || slices.ContainsFunc(choices, func(c chat.Choice) bool { return c.Value == "" || split.Length(c.Value) > platform.MaxChoice }) {
			choices, field.Several = nil, false // what fits is said below the question
			field.Values = nil
			if len(f.Values) > 0 {
				field.Values = []string{strings.Join(f.Values, ", ")}
			}
		}
		for _, c := range choices {
			field.Choices = append(field.Choices, platform.Choice{Label: p.Backend.Redact(c.Label), Value: c.Value})
		}
		out = append(out, field)
	}
	return out
}

// showOptions is how the conversations of a thread are shown.
func (p *Publisher) showOptions(thread chat.ThreadID) render.Options {
	guild, _, _ := strings.Cut(thread.Place(), "/")
	o := render.Options{
		Platform: p.transport, Split: split.Options{Hard: p.caps.MaxText, Target: p.caps.MaxText * 9 / 10}, Status: p.caps.Edits, Apart: p.caps.MaxPanel > 0, Reactions: p.caps.Reactions, Name: thread.Agent(),
		Words: func(s string) string {
			return mention.Write(markdown.ForChats(mention.WithoutReply(s)), p.Directory(guild))
		},
		Call: CallLabel,
	}
	p.display(&o, thread)
	return o
}

// display applies the settings of a conversation's agent. In a room a status is only shown
// as a panel, which other agents do not take for a message.
func (p *Publisher) display(o *render.Options, thread chat.ThreadID) {
	d := p.Backend.Display(thread)
	o.Status, o.Newest = o.Status && (!d.Room || o.Apart), d.Room
	o.ToolOutput, o.Thinking, o.Name = d.ToolOutput, d.Thinking, cmp.Or(d.Name, o.Name)
	o.Footer, o.Brief, o.Price = d.Footer != "" && d.Footer != "off", d.Footer == "short", d.Price
}

// CallLabel describes a call in one line.
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
