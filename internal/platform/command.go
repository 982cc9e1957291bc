package platform

import (
	"errors"
	"strings"
	"time"

	"chorus/internal/room"
)

// Command is one entry of a platform's list of commands. A command with subcommands cannot be
// given by itself.
type Command struct {
	Name        string
	Description string
	Topic       string // its help topic; "": its own name
	Example     string // typical options
	Menu        bool   // an entry in the menu of a message; Name is its label
	GuildOnly   bool   // not in direct messages
	Anywhere    bool   // it also makes sense where the bot is not: people can take it along
	Speaks      bool   // it becomes a message: see Sink.Speaks
	Private     bool   // only the person who gave it may see the answer
	Needs       Right
	Options     []Option
	Sub         []Command
	// Names and Descriptions in other languages, by language code.
	Names, Descriptions map[string]string
}

// The topics of commands that are not a group.
const (
	TopicTalk = "talk"
	TopicLook = "look"
)

// Right is what the platform should require before it offers a command. Our own rights decide
// who may use it.
type Right string

// The rights.
const (
	Everyone       Right = ""
	ManageChannels Right = "manage channels"
	ManageGuild    Right = "manage guild"
)

// Kind is the type of an option's value.
type Kind string

// The kinds.
const (
	Text   Kind = ""
	Flag   Kind = "flag"
	Person Kind = "person"
	Number Kind = "number"
	Upload Kind = "file"
)

// Option is a value of a command.
type Option struct {
	Name        string
	Description string
	Kind        Kind
	Required    bool
	MaxLength   int  // characters of a text; 0: the platform's limit
	Completes   bool // values are suggested while it is typed
	Choices     []Choice
	// Names and Descriptions in other languages, as for a command.
	Names, Descriptions map[string]string
}

// Choice is a suggested value.
type Choice struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Invocation is a command that somebody gave, or is typing.
type Invocation struct {
	ID      string // unique; identifies what is created because of it
	Path    string // "agent/list"; for a menu entry its name
	Text    map[string]string
	Flag    map[string]bool
	Person  map[string]room.Author
	Files   []room.File
	On      *room.Message // the message whose menu it was chosen from
	By      room.Author
	In      room.Channel
	Allowed Allowed
	Absent  bool // the bot cannot read or write where it was given
	Written bool // it was written as text: no button of its answer can be pressed
	// Confirmed means that a written command confirms the question of the same command before.
	Confirmed bool
}

// Allowed is what the platform lets somebody do in this place.
type Allowed struct {
	Write          bool
	OpenThreads    bool
	ManageMessages bool
	ManageGuild    bool
}

// Press is a pressed button, or something chosen or written.
type Press struct {
	Value     string              // as in Button, or in Select
	Chosen    string              // for a Select, the value of the choice
	Text      string              // the written text, if the button opens a form
	Fields    map[string][]string // the values of a form with fields
	Message   string              // the message it is on
	MessageAt time.Time
	Absent    bool // as in an Invocation
	By        room.Author
	In        room.Channel
	Allowed   Allowed
}

// Answer is shown to the person who gave a command or pressed a button, and to nobody
// else if the platform can do that. Without text nothing is shown.
type Answer struct {
	Text    string
	Buttons []Button
	File    File // an attachment; none without a name
	Replace bool // for a press: the text replaces the message and its buttons
	// Panel sets the answer apart from people's messages, if the platform can do that. It may
	// be as long as Caps.MaxPanel.
	Panel   bool
	Selects []Select
	// Say is instead posted for everybody, as the words of the person who gave the command. The
	// platform reports that message as one of theirs that mentions the bot, with the command's
	// files. Only for commands that speak (Sink.Speaks).
	Say string
	// Asks is only the question, if a written command must be confirmed: for callers that offer their own button.
	Asks string
}

// File is a text attached as a file.
type File struct{ Name, Text string }

// Button is a button in a message.
type Button struct {
	Label string `json:"label"`
	Value string `json:"value"` // returned with a press
	Style Style  `json:"style,omitempty"`
}

// Select is a list to choose one value from, if there are too many for buttons.
type Select struct {
	Value   string // returned with a press
	Hint    string // what to choose
	Choices []Choice
}

// Form asks for text, or for several values, before a press is reported.
type Form struct {
	Title, Label, Hint string
	Value              string      // its current text
	Max                int         // characters
	Fields             []FormField // asked for instead of a text; at most MaxFields
}

// Limits that the forms of all platforms support.
const (
	MaxFields      = 5
	MaxFieldName   = 90  // characters
	MaxFormChoices = 25  // of one field
	MaxChoice      = 100 // characters of its value
)

// FormField is one value in a form.
type FormField struct {
	Name     string   `json:"name"` // returned with the press
	Label    string   `json:"label"`
	Hint     string   `json:"hint,omitempty"`
	Choices  []Choice `json:"choices,omitempty"` // none: a line of text
	Several  bool     `json:"several,omitempty"` // more than one may be chosen
	Optional bool     `json:"optional,omitempty"`
	Values   []string `json:"values,omitempty"` // current values
}

// FormOf is the form that a button opens; false: it opens none. A platform without forms
// (Caps.Forms) does not show such a button.
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

// Refusal is why something can never be fetched, in words for people and models.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// buttonVersion is the prefix of button values, so that a later version knows what an
// old button means.
const buttonVersion = "c1"

// The actions of buttons.
const (
	PressYes     = "yes"
	PressNo      = "no"
	PressBecause = "because" // no, with a reason
	PressAlways  = "always"  // shows what could always be allowed
	PressWords   = "words"   // yes, with the requested text
	PressDetails = "details"
	PressStop    = "stop"   // stops the run of the message
	PressHalt    = "halt"   // in a list: stops the conversation with this id
	PressRetire  = "retire" // ends an agent

	PressTask     = "task"     // does something about a task
	PressFeedback = "feedback" // the same with a text
	PressEdit     = "edit"     // the same with its current text, to be changed
	PressNote     = "note"     // does something about a note of a project
)

// ButtonValue is the value of a button: an action and its object.
func ButtonValue(action, id string) string { return buttonVersion + ":" + action + ":" + id }

// ReadButton splits a button's value; false: it is not ours, or of another version.
func ReadButton(value string) (action, id string, ok bool) {
	v, rest, ok := strings.Cut(value, ":")
	if !ok || v != buttonVersion {
		return "", "", false
	}
	action, id, ok = strings.Cut(rest, ":")
	return action, id, ok && id != ""
}

// IsButton reports whether ButtonValue of this version made a value.
func IsButton(value string) bool { return strings.HasPrefix(value, buttonVersion+":") }
