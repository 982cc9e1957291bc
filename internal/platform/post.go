package platform

import (
	"encoding/json"
	"slices"

	"chorus/internal/outbox"
)

// Post is the body of what is in the outbox: a message, or a reaction. Its JSON is
// stored, so names of fields stay.
//
// Text is Markdown with marks for what has an id: see package mark. A platform that spells
// them differently translates them when it posts.
type Post struct {
	Text    string `json:"text,omitempty"`
	ReplyTo string `json:"replyTo,omitempty"`
	Card    string `json:"card,omitempty"`    // the approval that its buttons answer
	Details string `json:"details,omitempty"` // the approval that a button shows in full
	// Question marks a card that asks for an answer and not for permission: its buttons say Yes and No.
	Question bool `json:"question,omitempty"`
	Reason   bool `json:"reason,omitempty"` // one of the card's buttons asks for a reason
	Always   bool `json:"always,omitempty"` // one of them shows how far a yes could hold
	Words    bool `json:"words,omitempty"`  // one of them asks for the answer in words
	// Fields are those of the form that asks for the answer; none: it asks for words.
	Fields []FormField `json:"fields,omitempty"`
	Stop   string      `json:"stop,omitempty"`  // the run that its button stops
	Panel  Panel       `json:"panel,omitempty"` // it is a panel, where the platform has them
	// More are further buttons, in front of the one that stops.
	More    []Button `json:"more,omitempty"`
	File    string   `json:"file,omitempty"`    // name
	Content string   `json:"content,omitempty"` // of the file
	Blob    string   `json:"blob,omitempty"`    // of the file, where its bytes are stored apart
	Emoji   string   `json:"emoji,omitempty"`   // of a reaction
	Aside   bool     `json:"aside,omitempty"`   // not part of the conversation: under another name where the platform can
	Name    string   `json:"name,omitempty"`    // that name
	// Notify are the users who notice that the text mentions them; others do not.
	Notify []string `json:"notify,omitempty"`
	// For the case that it cannot be shown: who asked, by which message, and the channel
	// that the thread hangs under.
	Asker string `json:"asker,omitempty"`
	Ask   string `json:"ask,omitempty"`
	AskIn string `json:"askIn,omitempty"`
	Home  string `json:"home,omitempty"`
	// Entry is what it is on a board, beside its message. Elsewhere it means nothing.
	Entry *Entry `json:"entry,omitempty"`
}

// Entry is a post on a board.
type Entry struct {
	Title string `json:"title"`
	Tag   string `json:"tag,omitempty"` // the one of Tags that it has now; other tags are left as they are
	Tags  []Tag  `json:"tags,omitempty"`
	Over  bool   `json:"over,omitempty"` // it is closed: put away, and nobody writes in it
}

// Tag is a label of a board's posts. The platform makes those that a board lacks, as far as it can.
type Tag struct {
	Name string `json:"name"` // at most MaxTag characters
	Sign string `json:"sign,omitempty"`
}

// MaxTag is how long the shortest of the platforms lets the name of a tag be.
const MaxTag = 20

// Panel is what a panel is about.
type Panel string

// The panels.
const (
	PanelAsk  Panel = "ask" // an approval that is pending
	PanelYes  Panel = "yes"
	PanelNo   Panel = "no"
	PanelOver Panel = "over" // nobody needs to answer any more
	PanelWork Panel = "work" // the status of a run
)

// Body is the post as the outbox stores it.
func (p Post) Body() json.RawMessage {
	data, _ := json.Marshal(p) // strings and booleans only
	return data
}

// ReadPost reads a body. What cannot be read is an error that no second try helps against.
func ReadPost(body json.RawMessage) (Post, error) {
	var p Post
	if err := json.Unmarshal(body, &p); err != nil {
		return p, &outbox.Trouble{Why: outbox.Invalid, Err: err}
	}
	return p, nil
}

// LacksValues reports a form of which something must be filled in: a yes alone would be no answer. One that asks for a yes or no alone is
// answered by it.
func (p Post) LacksValues() bool {
	return slices.ContainsFunc(p.Fields, func(f FormField) bool {
		return !f.Optional && len(f.Values) == 0 && (len(p.Fields) > 1 || len(f.Choices) != 2 || f.Choices[0].Value != PressYes)
	})
}

// Buttons are those below the message; none: it has none, also after an edit.
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
