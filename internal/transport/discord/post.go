package discord

import (
	"strings"

	"github.com/disgoorg/disgo/discord"
)

// post is a message, or a reaction, as it stands in the outbox.
type post struct {
	Text    string `json:"text,omitempty"`
	ReplyTo string `json:"replyTo,omitempty"`
	Card    string `json:"card,omitempty"`    // the approval that its buttons answer
	Details string `json:"details,omitempty"` // the approval that a button tells all about
	Stop    string `json:"stop,omitempty"`    // the run that its button stops
	File    string `json:"file,omitempty"`    // name
	Content string `json:"content,omitempty"` // of the file
	Blob    string `json:"blob,omitempty"`    // of the file, where its bytes are kept apart
	Emoji   string `json:"emoji,omitempty"`   // of a reaction
	Aside   bool   `json:"aside,omitempty"`   // said beside the conversation, through a webhook where there is one
	Name    string `json:"name,omitempty"`    // under which that is said
	// For the case that it cannot be shown: who asked, by which message, and the channel
	// that the thread hangs under.
	Asker string `json:"asker,omitempty"`
	Ask   string `json:"ask,omitempty"`
	AskIn string `json:"askIn,omitempty"`
	Home  string `json:"home,omitempty"`
}

// version stands in front of what buttons carry, so that a later Chorus knows what an
// old card means.
const version = "c1"

// The buttons.
const (
	pressYes  = "yes"
	pressNo   = "no"
	pressTell = "details"
	pressStop = "stop"
	pressHalt = "halt" // in a list: of which conversation
)

// pressed is what a button carries: version, what, about whom.
func pressed(what, id string) string { return version + ":" + what + ":" + id }

// readPressed takes it apart; false: not ours, or of another version.
func readPressed(s string) (what, id string, ok bool) {
	v, rest, ok := strings.Cut(s, ":")
	if !ok || v != version {
		return "", "", false
	}
	what, id, ok = strings.Cut(rest, ":")
	return what, id, ok && id != ""
}

// buttons are the components of a post; none is an empty list, which takes old ones away.
func (p post) buttons() []discord.LayoutComponent {
	var row []discord.InteractiveComponent
	if p.Card != "" {
		row = append(row, discord.ButtonComponent{Style: discord.ButtonStyleSuccess, Label: "Yes", CustomID: pressed(pressYes, p.Card)},
			discord.ButtonComponent{Style: discord.ButtonStyleDanger, Label: "No", CustomID: pressed(pressNo, p.Card)})
	}
	if p.Details != "" {
		row = append(row, discord.ButtonComponent{Style: discord.ButtonStyleSecondary, Label: "Details", CustomID: pressed(pressTell, p.Details)})
	}
	if p.Stop != "" {
		row = append(row, discord.ButtonComponent{Style: discord.ButtonStyleSecondary, Label: "Stop", CustomID: pressed(pressStop, p.Stop)})
	}
	if len(row) == 0 {
		return []discord.LayoutComponent{}
	}
	return []discord.LayoutComponent{discord.ActionRowComponent{Components: row}}
}
