package platform

import (
	"encoding/json"
	"slices"

	"chorus/internal/outbox"
)

// Post is the body of an outbox row: a message, or a reaction. Its JSON is
// stored, so field names must not change.
//
// Text is Markdown with marks for things with an id: see package mark. Platforms with
// other marks translate them when they post.
type Post struct {
	Text    string `json:"text,omitempty"`
	ReplyTo string `json:"replyTo,omitempty"`
	Card    string `json:"card,omitempty"`    // the approval that its buttons answer
	Details string `json:"details,omitempty"` // the approval that a button shows in full
	// Question marks a card that asks for an answer and not for permission: its buttons say Yes and No.
	Question bool `json:"question,omitempty"`
	Reason   bool `json:"reason,omitempty"` // one of the card's buttons asks for a reason
	Always   bool `json:"always,omitempty"` // one of them shows what could always be allowed
	Words    bool `json:"words,omitempty"`  // one of them asks for the answer as text
	// Fields are the fields of the form for the answer; none: it asks for text.
	Fields []FormField `json:"fields,omitempty"`
	Stop   string      `json:"stop,omitempty"`  // the run that its button stops
	Panel  Panel       `json:"panel,omitempty"` // shown as a panel if the platform has them
	// More are further buttons before the one that stops.
	More    []Button `json:"more,omitempty"`
	File    string   `json:"file,omitempty"`    // name
	Content string   `json:"content,omitempty"` // of the file
	Blob    string   `json:"blob,omitempty"`    // of the file, if its bytes are stored separately
	Emoji   string   `json:"emoji,omitempty"`   // of a reaction
	Aside   bool     `json:"aside,omitempty"`   // not part of the conversation: posted under another name if possible
	Name    string   `json:"name,omitempty"`    // that name
	// Notify are the users that a mention in the text notifies; others are not.
	Notify []string `json:"notify,omitempty"`
	// For a post that cannot be shown: who asked, with which message, and the channel
	// above the thread.
	Asker string `json:"asker,omitempty"`
	Ask   string `json:"ask,omitempty"`
	AskIn string `json:"askIn,omitempty"`
	Home  string `json:"home,omitempty"`
	// Entry describes the post on a board. Elsewhere it has no effect.
	Entry *Entry `json:"entry,omitempty"`
}

// Entry is a post on a board.
type Entry struct {
	Title string `json:"title"`
	Tag   string `json:"tag,omitempty"` // its current one of Tags; other tags do not change
	Tags  []Tag  `json:"tags,omitempty"`
	Over  bool   `json:"over,omitempty"` // closed: archived and read-only
}

// Tag is a label of a board's posts. The platform creates missing ones if it can.
type Tag struct {
	Name string `json:"name"` // at most MaxTag characters
	Sign string `json:"sign,omitempty"`
}

// MaxTag is the lowest limit of all platforms for a tag's name.
const MaxTag = 20

// Panel is the kind of a panel.
type Panel string

// The panels.
const (
	PanelAsk  Panel = "ask" // a pending approval
	PanelYes  Panel = "yes"
	PanelNo   Panel = "no"
	PanelOver Panel = "over" // nobody needs to answer
	PanelWork Panel = "work" // the status of a run
)

// Body is the post as the outbox stores it.
func (p Post) Body() json.RawMessage {
	data, _ := json.Marshal(p) // strings and booleans only
	return data
}

// ReadPost parses a body. A retry does not help against its errors.
func ReadPost(body json.RawMessage) (Post, error) {
	var p Post
	if err := json.Unmarshal(body, &p); err != nil {
		return p, &outbox.Trouble{Why: outbox.Invalid, Err: err}
	}
	return p, nil
}

// LacksValues reports whether something in the form must be filled in, so that a plain yes would be no answer. A form that only asks for
// yes or no is answered by it.
func (p Post) LacksValues() bool {
	return slices.ContainsFunc(p.Fields, func(f FormField) bool {
		return !f.Optional && len(f.Values) == 0 && (len(p.Fields) > 1 || len(f.Choices) != 2 || f.Choices[0].Value != PressYes)
	})
}

// Buttons are the buttons below the message. If there are none, an edit removes old ones.
func (p Post) Buttons() []Button {
	var out []Button
	if p.Card != "" {
		yes, no := "Allow", "Deny"
		if p.Question {
			yes, no = "Yes", "No"
		}
		out = append(out, Button{Label: yes, Value: ButtonValue(PressYes, p.Card), Style: Yes},
			Button{Label: no, Value: ButtonValue(PressNo, p.Card), Style: Danger})
	}
	if p.Card != "" && p.Always {
		out = slices.Insert(out, 1, Button{Label: "Always allow…", Value: ButtonValue(PressAlways, p.Card)})
	}
	if p.Card != "" && p.Words {
		if p.LacksValues() {
			out = out[1:]
		}
		out = slices.Insert(out, 0, Button{Label: "Answer…", Value: ButtonValue(PressWords, p.Card)})
	}
	if p.Card != "" && p.Reason {
		out = append(out, Button{Label: "Deny with a reason…", Value: ButtonValue(PressBecause, p.Card)})
	}
	if p.Details != "" {
		out = append(out, Button{Label: "Details", Value: ButtonValue(PressDetails, p.Details)})
	}
	out = append(out, p.More...)
	if p.Stop != "" {
		out = append(out, Button{Label: "Stop", Value: ButtonValue(PressStop, p.Stop)})
	}
	return out
}
