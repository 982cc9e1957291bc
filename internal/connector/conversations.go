package connector

import (
	"context"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
)

// Conversations is what people do with conversations besides taking part in them.
type Conversations interface {
	// ClearContext empties a conversation's window and says how many messages were in it.
	ClearContext(ctx context.Context, thread chat.ThreadID, by chat.Principal) (int, error)
	// SaveContext saves what is in the windows of an agent's conversations in one place.
	SaveContext(ctx context.Context, rows []journal.Thread, by chat.Principal, description string) (Saved, error)
	// SavedContexts lists what was saved in a place, the newest first; of every agent without one.
	SavedContexts(ctx context.Context, agent, place string) ([]Saved, error)
	// RestoreContext puts what was saved in place of what is in the windows of conversations.
	RestoreContext(ctx context.Context, place, id string, rows []journal.Thread, by chat.Principal) (Restored, error)

	// RunEvents are the events of a run, with what others wrote meanwhile. Without a run it
	// is the conversation's last; none: it has had none.
	RunEvents(ctx context.Context, thread chat.ThreadID, run string) ([]chat.Event, error)
	// RunOf is the run that took a prompt; "": none has.
	RunOf(ctx context.Context, thread chat.ThreadID, seq int64) (string, error)
	// PendingPrompts are the numbers of the prompts that wait, the oldest first.
	PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error)
	// WindowUse is how many tokens the next request of a conversation would have.
	WindowUse(ctx context.Context, thread chat.ThreadID) (int, error)
	// Defaults are an agent's model and profile in a channel where nobody chose others.
	Defaults(ctx context.Context, agent room.Agent, in room.Channel) (model, profile string)
	// PromptSources names what was in the system prompt of a run, by the blob of its head.
	PromptSources(ctx context.Context, head string) ([]string, error)
	// HeldIn are the conversations that are held in a channel or below it, without those of which nothing is left.
	HeldIn(ctx context.Context, channel string) ([]chat.ThreadID, error)
	// MessagesIn are the ids of the messages of people that a conversation has from a channel, also of those that it read there.
	MessagesIn(ctx context.Context, thread chat.ThreadID, channel string) ([]string, error)
	// AnswersIn are the ids of our own messages of a conversation in a channel.
	AnswersIn(ctx context.Context, thread chat.ThreadID, channel string) ([]string, error)
	// DeletedOnPlatform puts a conversation among the deleted ones; published is up to which event it was shown. false: it must be erased at
	// once, and something is still going on in it.
	DeletedOnPlatform(ctx context.Context, thread chat.ThreadID, published int64) (bool, error)

	// ForkInto makes a conversation whose history is another's up to an event, and says how
	// many messages that is.
	ForkInto(ctx context.Context, from journal.Thread, into chat.ThreadID, by chat.Principal, atSeq int64) (int, error)

	// Redact removes secrets from a text.
	Redact(text string) string
}

// Saved is a context that was saved.
type Saved struct {
	ID          string
	Agent       string
	Description string
	Summary     string
	By          string
	At          time.Time
	Messages    int
	Quiet       bool // nobody asked for it: the place had been idle
}

// Restored is what came of a restore.
type Restored struct {
	Saved
	Conversations int // that have their old window again
	Messages      int // in those
	Cleared       int // conversations that were not in what was saved
	LeftOut       int // saved conversations that are not here, or not the caller's
}
