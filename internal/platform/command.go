package platform

import (
	"errors"
	"strings"
	"time"

	"chorus/internal/room"
)

// Command is one entry of a platform's list of commands. One with subcommands cannot be
// given by itself.
type Command struct {
	Name        string
	Description string
	Topic       string // under which help lists it; "": under its own name
	Example     string // its options as somebody would type them
	Menu        bool   // an entry in the menu of a message, whose Name is its label
	GuildOnly   bool   // not in direct messages
	Anywhere    bool   // it makes sense where the bot is not: people can take it along
	Speaks      bool   // it becomes a message: see Sink.Speaks
	Private     bool   // its answer must be seen by whoever gave it alone
	Needs       Right
	Options     []Option
	Sub         []Command
	// Names and Descriptions in other languages, by their codes.
	Names, Descriptions map[string]string
}

// The topics of commands that are no group of their own.
const (
	TopicTalk = "talk"
	TopicLook = "look"
)

// Right is what the platform should ask for before it offers a command. Whoever may use it
// in the end is decided by our own rights.
type Right string

// The rights.
const (
	Everyone       Right = ""
	ManageChannels Right = "manage channels"
	ManageGuild    Right = "manage guild"
)

// Kind is the sort of value that an option takes.
type Kind string

// The kinds.
const (
	Text   Kind = ""
	Flag   Kind = "flag"
	Person Kind = "person"
	Number Kind = "number"
	Upload Kind = "file"
)

// Option is a value that goes with a command.
type Option struct {
	Name        string
	Description string
	Kind        Kind
	Required    bool
	MaxLength   int  // characters of a text; 0: as the platform has it
	Completes   bool // values are proposed while it is typed
	Choices     []Choice
	// Names and Descriptions in other languages, as those of a command.
	Names, Descriptions map[string]string
}

// Choice is a proposed value.
type Choice struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Invocation is a command that somebody gave, or is typing.
type Invocation struct {
	ID      string // unique, for what is made because of it
	Path    string // "agent/list"; of an entry in a menu its name
	Text    map[string]string
	Flag    map[string]bool
	Person  map[string]room.Author
	Files   []room.File
	On      *room.Message // the message whose menu it was chosen from
	By      room.Author
	In      room.Channel
	Allowed Allowed
	Absent  bool // the bot cannot read or write where it was given
	Written bool // it was written as words: with its answer no button can be pressed
	// Confirmed says yes to what the same command asked before, where it is written.
	Confirmed bool
}

// Allowed is what the platform lets somebody do where they are.
type Allowed struct {
	Write          bool
	OpenThreads    bool
	ManageMessages bool
	ManageGuild    bool
}

// Press is a button that somebody pressed, or something that they chose or wrote.
type Press struct {
	Value     string              // as in Button, or in Select
	Chosen    string              // the value of the choice, of a Select
	Text      string              // what was written, where the button opens a form
	Fields    map[string][]string // what was written and chosen, where that form has fields
	Message   string              // the message it is on
	MessageAt time.Time
	Absent    bool // as of an Invocation
	By        room.Author
	In        room.Channel
	Allowed   Allowed
}

// Answer is what is shown to whoever gave a command or pressed a button, and to nobody
// else where the platform can do that. Without text nothing is shown.
type Answer struct {
	Text    string
	Buttons []Button
	File    File // goes along; none without a name
	Replace bool // of a press: the text takes the place of the message and its buttons
	// Panel is shown set apart from what people say, where the platform can do that, and may
	// be as long as Caps.MaxPanel.
	Panel   bool
	Selects []Select
	// Say is instead posted for everybody, as the words of whoever gave the command: the
	// platform reports that message as one of theirs which mentions the bot, with the command's
	// files. Only for commands that speak (Sink.Speaks).
	Say string
	// Asks is the question alone, of a command that was written and must be confirmed: for those who offer a button themselves.
	Asks string
}

// File is a text that goes along as a file.
type File struct{ Name, Text string }

// Button is one that people press.
type Button struct {
	Label string `json:"label"`
	Value string `json:"value"` // comes back with a press
	Style Style  `json:"style,omitempty"`
}

// Select is a list to choose one from, for what would be too many buttons.
type Select struct {
	Value   string // comes back with a press
	Hint    string // what is chosen
	Choices []Choice
}

// Form asks for words before a press is reported, or for several values.
type Form struct {
	Title, Label, Hint string
	Value              string      // what stands in it already
	Max                int         // characters
	Fields             []FormField // what is asked for instead of words; at most MaxFields
}

// What the forms of all platforms have room for.
const (
	MaxFields      = 5
	MaxFieldName   = 90  // characters
	MaxFormChoices = 25  // of one field
	MaxChoice      = 100 // characters of its value
)

// FormField is one value that a form asks for.
type FormField struct {
	Name     string   `json:"name"` // comes back with the press
	Label    string   `json:"label"`
	Hint     string   `json:"hint,omitempty"`
	Choices  []Choice `json:"choices,omitempty"` // none: a line of text
	Several  bool     `json:"several,omitempty"` // more than one may be chosen
	Optional bool     `json:"optional,omitempty"`
	Values   []string `json:"values,omitempty"` // what stands in it already
}

// FormOf is the form that a button opens; false: it opens none. A platform that has no forms
// (Caps.Forms) shows no such button.
func FormOf(value string) (Form, bool) {
	switch action, _, _ := ReadButton(value); action {
	case PressBecause:
		return Form{Title: "Deny with a reason", Label: "Why not, or what to do instead", Hint: "The agent reads this and continues from there.", Max: 1000}, true
	case PressWords:
		return Form{Title: "Your answer", Label: "What is the answer?", Hint: "Whoever asked reads these words.", Max: 2000}, true
	case PressFeedback:
		return Form{Title: "Ask for changes", Label: "What should be different?", Hint: "The worker reads this and continues from there.", Max: 4000}, true
	case PressEdit:
		return Form{Title: "Edit the task", Label: "What should be done?", Hint: "The next attempt starts from this text.", Max: 4000}, true
	}
	return Form{}, false
}

// Style is how a button looks.
type Style string

// The styles.
const (
	Plain  Style = ""
	Yes    Style = "yes"
	Danger Style = "danger"
)

// Errors of Downloads.
var (
	ErrTooLarge = errors.New("the file is too large")
	ErrStale    = errors.New("the link does not lead to the file any more")
)

// Refusal is why something will never be had, in words for people and models.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// buttonVersion comes first in what buttons carry, so that a later version knows what an
// old button means.
const buttonVersion = "c1"

// The actions of buttons.
const (
	PressYes     = "yes"
	PressNo      = "no"
	PressBecause = "because" // no, with a reason
	PressAlways  = "always"  // shows how far a yes could hold
	PressWords   = "words"   // yes, with the words that were asked for
	PressDetails = "details"
	PressStop    = "stop"   // the run that the message belongs to
	PressHalt    = "halt"   // in a list: the conversation with this id
	PressRetire  = "retire" // ends an agent

	PressTask     = "task"     // does something about a task
	PressFeedback = "feedback" // the same with words
	PressEdit     = "edit"     // the same with the words that it has now, to be changed
	PressNote     = "note"     // does something about a note of a project
)

// ButtonValue is what a button carries: an action and what it is about.
func ButtonValue(action, id string) string { return buttonVersion + ":" + action + ":" + id }

// ReadButton takes it apart; false: it is none of ours, or of another version.
func ReadButton(value string) (action, id string, ok bool) {
	v, rest, ok := strings.Cut(value, ":")
	if !ok || v != buttonVersion {
		return "", "", false
	}
	action, id, ok = strings.Cut(rest, ":")
	return action, id, ok && id != ""
}

// IsButton reports whether a value was made by ButtonValue, of this version.
func IsButton(value string) bool { return strings.HasPrefix(value, buttonVersion+":") }
