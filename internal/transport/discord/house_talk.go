package discord

import (
	"context"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Talks is what people do with conversations beside taking part in them.
type Talks interface {
	// ClearContext empties a conversation's window and says how many messages were in it.
	ClearContext(ctx context.Context, thread chat.ThreadID, by chat.Principal) (int, error)
	// SaveContext keeps what is in the windows of an agent's conversations in one place.
	SaveContext(ctx context.Context, rows []journal.Thread, by chat.Principal, description string) (Saved, error)
	// SavedContexts lists what was kept of a place, the newest first; of every agent without one.
	SavedContexts(ctx context.Context, agent, place string) ([]Saved, error)
	// RestoreContext puts what was kept in place of what is in the windows of conversations.
	RestoreContext(ctx context.Context, place, id string, rows []journal.Thread, by chat.Principal) (Restored, error)
}

// Saved is a context that was kept.
type Saved struct {
	ID          string
	Agent       string
	Description string
	Summary     string
	By          string
	At          time.Time
	Messages    int
	Quiet       bool // nobody asked for it: the place had been quiet
}

// Restored is what came of a restore.
type Restored struct {
	Saved
	Conversations int // that have their old window again
	Messages      int // in those
	Cleared       int // conversations that were not in what was saved
	LeftOut       int // saved conversations that are not here, or not the caller's
}
