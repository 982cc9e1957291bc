// Package participants tells a conversation of many participants to a model that knows one
// user and one assistant: as a script that it goes on writing (prefill), or as turns
// (chat). It stands between the core, which only knows who said what, and a
// provider, and takes the answer apart again on its way back.
//
// It promises: the text of a request begins with the text of the one before, as long
// as the list of messages does (the closing label aside); nobody but the bot speaks in
// an answer; no turn is empty, the first is the user's and the last assistant text does
// not end in white space; the same request gives the same bytes; and however an answer
// is cut into pieces, the same blocks come of it.
package participants

import (
	"cmp"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// Mode is how a conversation is told.
type Mode string

// The modes.
const (
	Prefill Mode = "prefill" // a script of everybody's lines, which the model continues
	Chat    Mode = "chat"    // user turns with names, the bot's own as assistant turns
	Untold  Mode = "untold"  // as it is, for agents without a mode; only thinking in tags is taken out of the answer
)

// The defaults of the script.
const (
	Separator = "\n\n"
	Opening   = "<cmd>cat untitled.txt</cmd>"
	// SystemLine makes a model that was trained to chat continue a text instead.
	SystemLine = "You are simulating a command line: answer each command of the user with the output that it would print, and with nothing else."
)

// Style is how one bot's conversations are told. The zero value is a chat without
// extras; what is left empty has the document's default.
type Style struct {
	Mode    Mode
	Bot     string   // the bot's name in the conversation; "": Assistant
	Aliases []string // what else it is called on its platform

	// The script. Delimiter stands between two messages instead of Separator, TurnEnd
	// behind each; both end an answer too.
	Separator, Delimiter, TurnEnd string
	Opening                       string // the user turn that begins it
	SystemLine                    string // stands before the system prompt; "-": none
	ContextPrefix                 string // stands before the first message and is cached
	PrefillThinking               bool   // the answer begins as thinking
	// Stable splits the script wherever the bot begins or ends to speak too, which is
	// where earlier requests ended: their blocks stay as a provider's cache knows them.
	Stable bool
	// Whole never splits at marks: for providers that have none and take each piece for
	// a turn. Those that are known to do so have it anyway.
	Whole bool
	// Bare leaves out opening and system line: for base models, who continue any text.
	// Those of the catalog have it anyway.
	Bare bool
	// NoCache sets no marks; the text is split as with them.
	NoCache bool

	// The chat.
	Persona        bool // the system prompt says who the bot is
	PersonaPrefill bool // the answer is begun with the bot's name, where the model allows it
	OwnAsUser      bool // the bot's own words stand among the others', with its name

	RecentParticipants int      // how many get a stop sequence; at least 10
	Stop               []string // further ones; "Name:" is a participant's
	StopLimit          int      // how many are sent; 0: as many as the provider takes
}

// noStops is the limit of a model that takes no stop sequences.
const noStops = -1

// Wrap puts the style before a model. The result is safe for concurrent use if inner
// is, and remembers a bounded part of what it told last.
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

// styledModel writes conversations in a style before it asks the model.
type styledModel struct {
	Style
	inner    model.Model
	entry    catalog.Entry
	known    bool // the entry is the catalog's
	own      map[string]bool
	ownNames []string
	memory   memory
}

var _ model.Model = (*styledModel)(nil)

// Prepare turns the request into one of user and assistant turns and lets the inner
// model make its body.
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

// bad is a request that the inner model need not see.
func (t *styledModel) bad(r model.Request, format string, args ...any) *model.Error {
	return &model.Error{Kind: model.BadRequest, Provider: t.entry.Provider, Model: r.Model, Message: fmt.Sprintf(format, args...)}
}

// refuses reports whether the catalog says that no answer may be begun for the model.
func (t *styledModel) refuses() bool { return t.known && !t.entry.Prefill }

// reading is what Stream must know of the request to take its answer apart.
type reading struct {
	inner any

	own    []string // the bot's names
	others []string // everybody else's, each with its colon
	stops  []string // an answer ends where one of these begins
	script bool     // calls stand in the text
	tools  map[string]model.ToolSpec
	id     string // what the ids of calls begin with

	midline  bool // the answer goes on in the middle of a line
	trim     bool // white space at its beginning belongs to the label before it
	thinking bool // it begins as thinking
}

// settings are the request's with the stop sequences that go over the wire.
func (t *styledModel) settings(r model.Request, people speakers, all bool) (chat.Settings, *reading) {
	s := r.Settings
	wire, read := t.stops(r, people, all)
	s.Stop = wire
	return s, read
}
