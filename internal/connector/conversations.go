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
	// ClearContext empties a conversation's window and returns how many messages it contained.
	ClearContext(ctx context.Context, thread chat.ThreadID, by chat.Principal) (int, error)
	// SaveContext saves the windows of an agent's conversations in one place.
	SaveContext(ctx context.Context, rows []journal.Thread, by chat.Principal, description string) (Saved, error)
	// SavedContexts lists what was saved in a place, newest first; without an agent, for all agents.
	SavedContexts(ctx context.Context, agent, place string) ([]Saved, error)
	// RestoreContext replaces the windows of conversations by what was saved.
	RestoreContext(ctx context.Context, place, id string, rows []journal.Thread, by chat.Principal) (Restored, error)

	// RunEvents are the events of a run, including what others wrote meanwhile. Without a run it
	// is the conversation's last one; none: there was no run.
	RunEvents(ctx context.Context, thread chat.ThreadID, run string) ([]chat.Event, error)
	// RunOf is the run that took a prompt; "": none has.
	RunOf(ctx context.Context, thread chat.ThreadID, seq int64) (string, error)
	// PendingPrompts are the numbers of the waiting prompts, oldest first.
	PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error)
	// WindowUse is the number of tokens in a conversation's next request.
	WindowUse(ctx context.Context, thread chat.ThreadID) (int, error)
	// Defaults are an agent's model and profile in a channel where nobody chose others.
	Defaults(ctx context.Context, agent room.Agent, in room.Channel) (model, profile string)
	// PromptSources lists the parts of a run's system prompt, by the blob of its head.
	PromptSources(ctx context.Context, head string) ([]string, error)
	// HeldIn are the conversations held in a channel or below it, except those of which nothing is left.
	HeldIn(ctx context.Context, channel string) ([]chat.ThreadID, error)
	// MessagesIn are the ids of people's messages that a conversation has from a channel, including those that it read there.
	MessagesIn(ctx context.Context, thread chat.ThreadID, channel string) ([]string, error)
	// AnswersIn are the ids of our own messages of a conversation in a channel.
	AnswersIn(ctx context.Context, thread chat.ThreadID, channel string) ([]string, error)
	// DeletedOnPlatform moves a conversation to the deleted ones; published is the last event that was shown. false: it must be erased at
	// once, and something is still active in it.
	DeletedOnPlatform(ctx context.Context, thread chat.ThreadID, published int64) (bool, error)

	// ForkInto makes a conversation whose history is another's up to an event, and returns the number of
	// messages.
	ForkInto(ctx context.Context, from journal.Thread, into chat.ThreadID, by chat.Principal, atSeq int64) (int, error)

	// Redact removes secrets from a text.
	Redact(text string) string
}

// Saved is a saved context.
type Saved struct {
	ID          string
	Agent       string
	Description string
	Summary     string
	By          string
	At          time.Time
	Messages    int
	Quiet       bool // automatic, because the place was idle
}

// Restored is the result of a restore.
type Restored struct {
	Saved
	Conversations int // that have their old window again
	Messages      int // in those conversations
	Cleared       int // conversations that were not saved
	LeftOut       int // saved conversations that are not here, or not the caller's
}
