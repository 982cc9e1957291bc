// Package participants presents a conversation with many participants to a model that knows
// one user and one assistant: as a script that the model continues (prefill), or as turns
// (chat). It is the layer between the core, which only knows who said what, and a provider,
// and it parses the answer on its way back.
//
// It guarantees:
//
//   - As long as messages are only appended, the text of a request begins with the text of the
//     previous one, except for the closing label.
//   - Nobody but the bot speaks in an answer.
//   - No turn is empty, the first is the user's, and the last assistant text does not end in
//     white space.
//   - The same request gives the same bytes, and an answer gives the same blocks however it is
//     split into pieces.
package participants

import (
	"cmp"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// Mode says how a conversation is presented.
type Mode string

// The modes.
const (
	Prefill Mode = "prefill" // a script of everybody's lines, which the model continues
	Chat    Mode = "chat"    // user turns with names, the bot's own as assistant turns
	Untold  Mode = "untold"  // unchanged, for agents without a mode; only thinking in tags is removed from the answer
)

// The defaults of the script.
const (
	Separator = "\n\n"
	Opening   = "<cmd>cat untitled.txt</cmd>"
	// SystemLine makes a model that was trained to chat continue a text.
	SystemLine = "You are simulating a command line: answer each command of the user with the output that it would print, and with nothing else."
)

// Style says how one bot's conversations are presented. The zero value is a chat
// without extras. Empty fields have the document's default.
type Style struct {
	Mode    Mode
	Bot     string   // the bot's name in the conversation; "": Assistant
	Aliases []string // other names on its platform

	// For the script. Delimiter separates messages in place of Separator.
	// TurnEnd follows each message. Both also end an answer.
	Separator, Delimiter, TurnEnd string
	Opening                       string // the user turn that begins it
	SystemLine                    string // precedes the system prompt; "-" for none
	ContextPrefix                 string // precedes the first message and is cached
	PrefillThinking               bool   // the answer begins as thinking
	// Stable also splits the script wherever the bot begins or ends to speak, which is where
	// earlier requests ended, so that their blocks stay as a provider's cache knows them.
	Stable bool
	// Whole never splits at marks, for providers that have no marks and take each
	// piece for a turn. Providers known to do so always get it.
	Whole bool
	// Bare leaves out the opening and the system line, for base models, which
	// continue any text. Base models of the catalog always get it.
	Bare bool
	// NoCache sets no marks. The text is split as if there were marks.
	NoCache bool

	// For the chat.
	Persona        bool // the system prompt says who the bot is
	PersonaPrefill bool // the answer is begun with the bot's name if the model allows that
	OwnAsUser      bool // the bot's own words appear among the others', with its name

	RecentParticipants int      // how many participants get a stop sequence; at least 10
	Stop               []string // further stop sequences; "Name:" is a participant's
	StopLimit          int      // how many are sent; 0: as many as the provider accepts
}

// noStops is the limit of a model that accepts no stop sequences.
const noStops = -1

// Wrap puts the style in front of a model. The result is safe for concurrent use if
// inner is. It remembers a limited part of what it last presented.
func (s Style) Wrap(inner model.Model, entry catalog.Entry) model.Model {
	s.Mode = cmp.Or(s.Mode, Chat)
	s.Bot = clean(s.Bot)
	s.Bot = cmp.Or(s.Bot, "Assistant")
	s.Separator = cmp.Or(s.Separator, Separator)
	if s.Delimiter != "" {
		s.Separator = s.Delimiter
	}
	s.Opening = cmp.Or(s.Opening, Opening)
	switch s.SystemLine {
	case "":
		s.SystemLine = SystemLine
	case "-":
		s.SystemLine = ""
	}
	provider, _ := catalog.Find(entry.Provider)
	s.Whole = s.Whole || provider.JoinText
	s.Bare = s.Bare || provider.BaseModels
	if s.StopLimit == 0 {
		if s.StopLimit = catalog.MaxStops(entry.Provider, entry.Model); s.StopLimit == 0 {
			s.StopLimit = noStops
		} else if s.StopLimit < 0 {
			s.StopLimit = 0
		}
	}
	_, known := catalog.Lookup(entry.Provider, entry.Model)
	t := &styledModel{Style: s, inner: inner, entry: entry, known: known, own: map[string]bool{s.Bot: true}}
	t.ownNames = append(t.ownNames, s.Bot)
	for _, alias := range s.Aliases {
		if name := clean(alias); name != "" && !t.own[name] {
			t.own[name] = true
			t.ownNames = append(t.ownNames, name)
		}
	}
	return t
}

// styledModel rewrites conversations in a style before it asks the model.
type styledModel struct {
	Style
	inner    model.Model
	entry    catalog.Entry
	known    bool // the entry is from the catalog
	own      map[string]bool
	ownNames []string
	memory   memory
}

var _ model.Model = (*styledModel)(nil)

// Prepare turns the request into user and assistant turns and lets the inner model make its body.
func (t *styledModel) Prepare(r model.Request) (model.Prepared, error) {
	var told model.Request
	var read *reading
	var err error
	switch t.Mode {
	case Prefill:
		told, read, err = t.script(r)
	case Chat:
		told, read, err = t.turns(r)
	case Untold:
		told, read = r, &reading{}
	default:
		err = t.bad(r, "there is no mode %q; set mode: prefill or mode: chat", t.Mode)
	}
	if err != nil {
		return model.Prepared{}, err
	}
	prepared, err := t.inner.Prepare(told)
	if err != nil {
		return prepared, err
	}
	read.inner = prepared.Reading
	prepared.Reading = read
	return prepared, nil
}

// bad returns the error for a request that need not reach the inner model.
func (t *styledModel) bad(r model.Request, format string, args ...any) *model.Error {
	return &model.Error{Kind: model.BadRequest, Provider: t.entry.Provider, Model: r.Model, Message: fmt.Sprintf(format, args...)}
}

// refuses reports whether the catalog says that the model does not allow a prefilled answer.
func (t *styledModel) refuses() bool { return t.known && !t.entry.Prefill }

// reading is what Stream must know about the request to parse its answer.
type reading struct {
	inner any

	own    []string // the bot's names
	others []string // everybody else's names, each with its colon
	stops  []string // an answer ends where one of these begins
	script bool     // calls are part of the text
	tools  map[string]model.ToolSpec
	id     string // prefix of the ids of calls

	midline  bool // the answer continues in the middle of a line
	trim     bool // white space at its beginning belongs to the label before it
	thinking bool // the answer begins as thinking
}

// settings returns the request's settings with the stop sequences to send.
func (t *styledModel) settings(r model.Request, people speakers, all bool) (chat.Settings, *reading) {
	s := r.Settings
	wire, read := t.stops(r, people, all)
	s.Stop = wire
	return s, read
}
