// Package repl is the terminal: what a person sees and types in `chorus run` and
// `chorus chat`.
//
// It promises that everything it shows follows from the journal: live pieces only
// show it earlier, never differently, and each piece of an answer is shown exactly
// once, even if pieces were dropped. Nothing that a model or a tool wrote can control
// the terminal. Without a terminal it prints plain lines, and only the answer goes to
// standard output.
package repl

import (
	"context"
	"io"
	"iter"

	"chorus/internal/approval"
	"chorus/internal/chat"
)

// Session is one conversation as the terminal sees it. All methods may be called
// from several goroutines at once.
type Session interface {
	// Send submits a prompt. A refusal is not an error: the receipt says why.
	Send(ctx context.Context, text string) (Receipt, error)
	// Steer sends words to the active run. Without one they become a prompt,
	// and asPrompt is true.
	Steer(ctx context.Context, text string, mode chat.Intake) (asPrompt bool, err error)
	// Abort ends the active run; all also empties the queue.
	Abort(ctx context.Context, all bool) error
	// Answer settles an approval; always also settles every similar one in this session.
	Answer(ctx context.Context, approvalID string, ok bool, note string, always bool) error
	// Propose says what "always" would allow for an approval, before anything is kept.
	Propose(ctx context.Context, approvalID string) (approval.Always, error)
	// Keep approves and keeps the rules of one step.
	Keep(ctx context.Context, approvalID string, rules []string) error
	// Watch yields journal events with a number greater than after, in order, and
	// live pieces between them, until ctx ends or the reader stops.
	Watch(ctx context.Context, after int64) iter.Seq2[Item, error]
	// Approval returns an approval with everything known about it.
	Approval(ctx context.Context, id string) (approval.Approval, error)
	// Command answers a slash command that the terminal does not handle itself.
	Command(ctx context.Context, line string) (string, error)
	// Label says in a few words what a call does: "read src/a.go".
	Label(name string, args []byte) string
	// Info is the content of the status line. It is called often and must not block.
	Info() Info
}

// Namer is a session that knows people's names.
type Namer interface {
	// NameOf returns a person's display name for a key. It must be fast.
	NameOf(key string) string
}

// Sayer is a session in which some slash lines are prompts, because they call skills. A Session may be one.
type Sayer interface {
	// Says reports whether the line is words for the agent rather than a command.
	Says(ctx context.Context, line string) bool
}

// Attacher is a session that accepts files for the next prompt. A Session may be one.
type Attacher interface {
	Attach(ctx context.Context, name string, file io.Reader) error
}

// Commander is a session that answers further slash commands. A Session may be one.
type Commander interface {
	// Commands are the commands it adds to those of every chat.
	Commands(ctx context.Context) []Command
}

// Resume is the error of a command that ends Chat because the person continues another session.
type Resume struct {
	ID    string
	Theme string // the current theme; "": the initial one
	Draft string // what was typed and not sent
}

func (r *Resume) Error() string { return "continue with session " + r.ID }

// Receipt says what happened to a prompt.
type Receipt struct {
	Seq      int64
	Refused  string // why it will not be answered; empty if it will
	Position int    // place in the queue; 0: it is next
}

// Item is one thing that a watcher sees: an event, or a live piece.
type Item struct {
	Event *chat.Event
	Live  chat.Live
	// Lines are the objects that it came as, if it came over the wire.
	Lines [][]byte
}

// Info describes the conversation partner.
type Info struct {
	Agent   string
	Model   string
	Profile string
	Mode    string
	ID      string
	Dir     string
	Sandbox string // where commands run, in a word; "": unknown
	Window  int    // the model's context size in tokens; 0: unknown
}

// Exit codes of run and chat.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitLimit       = 3
	ExitDenied      = 4
	ExitInterrupted = 130
)

func exitOf(reason chat.Reason) int {
	switch reason {
	case chat.EndDone:
		return ExitDone
	case chat.EndLimit:
		return ExitLimit
	case chat.EndDenied:
		return ExitDenied
	case chat.EndAborted:
		return ExitInterrupted
	default:
		return ExitFailed
	}
}

// watched is one step of a pump.
type watched struct {
	item Item
	err  error
}

// pump carries a watch into a channel, so that a loop can also wait for
// other things. The channel is closed when the watch ends; the goroutine ends
// with ctx.
func pump(ctx context.Context, s Session, after int64) <-chan watched {
	ch := make(chan watched, 64) // room for a few deltas; more would only add delay
	go func() {
		defer close(ch)
		for item, err := range s.Watch(ctx, after) {
			select {
			case ch <- watched{item, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return ch
}
