// Package repl is the terminal: what a person sees and types in `chorus run` and
// `chorus chat`.
//
// It promises that what it shows follows from the journal alone: live pieces only
// make it earlier, never different, and each piece of an answer is shown exactly
// once, also when pieces were dropped. Nothing a model or a tool wrote can steer
// the terminal. Where there is no terminal it prints plain lines, and the answer
// alone goes to standard output.
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
	// Send hands in a prompt. A refusal is no error: the receipt says why.
	Send(ctx context.Context, text string) (Receipt, error)
	// Steer gives words to the run that is on. With none on they are a prompt,
	// and asPrompt says so.
	Steer(ctx context.Context, text string, mode chat.Intake) (asPrompt bool, err error)
	// Abort ends the run that is on; with all it also empties the queue.
	Abort(ctx context.Context, all bool) error
	// Answer settles an approval; always means: and every one like it in this session.
	Answer(ctx context.Context, approvalID string, ok bool, note string, always bool) error
	// Propose says what "always" may mean for an approval, before anything is kept.
	Propose(ctx context.Context, approvalID string) (approval.Always, error)
	// Keep says yes to an approval and keeps the rules of one step for good.
	Keep(ctx context.Context, approvalID string, rules []string) error
	// Watch yields journal events with a number greater than after, in order, and
	// live pieces between them, until ctx ends or the reader stops.
	Watch(ctx context.Context, after int64) iter.Seq2[Item, error]
	// Approval is one with all that is known about it.
	Approval(ctx context.Context, id string) (approval.Approval, error)
	// Command answers a slash command that is not the terminal's own.
	Command(ctx context.Context, line string) (string, error)
	// Label says in a few words what a call does: "read src/a.go".
	Label(name string, args []byte) string
	// Info is what the status line shows. It is called often and must not block.
	Info() Info
}

// Namer is a session that knows what people are called.
type Namer interface {
	// NameOf is what people call somebody, by their key. It takes no time worth speaking of.
	NameOf(key string) string
}

// Sayer is a session in which some words behind a slash are a prompt: skills are called so. A Session may be one.
type Sayer interface {
	// Says reports whether the line is words for the agent and no command.
	Says(ctx context.Context, line string) bool
}

// Attacher is a session that takes files along with the next prompt. A Session may be one.
type Attacher interface {
	Attach(ctx context.Context, name string, file io.Reader) error
}

// Commander is a session that answers further slash commands. A Session may be one.
type Commander interface {
	// Commands are what it answers beside those that every chat has.
	Commands(ctx context.Context) []Command
}

// Resume is the error of a command that wants Chat to end, because the person goes on with another session.
type Resume struct {
	ID    string
	Theme string // the one that they had; "": the one that it began with
}

func (r *Resume) Error() string { return "continue with session " + r.ID }

// Receipt is what became of a prompt.
type Receipt struct {
	Seq      int64
	Refused  string // why it will not be answered; empty when it will
	Position int    // place in the queue, 0 when it is next
}

// Item is one thing that a watcher sees: an event, or a live piece.
type Item struct {
	Event *chat.Event
	Live  chat.Live
	// Lines are the objects that it came as, where it came over the wire.
	Lines [][]byte
}

// Info says what one is talking to.
type Info struct {
	Agent   string
	Model   string
	Profile string
	Mode    string
	ID      string
	Dir     string
	Sandbox string // where commands run, in a word; "": nobody knows
	Window  int    // how many tokens the model can read; 0: nobody knows
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

// pump carries a watch into a channel, so that a loop can wait for it and for
// other things. The channel is closed when the watch ends; the goroutine ends
// with ctx.
func pump(ctx context.Context, s Session, after int64) <-chan watched {
	ch := make(chan watched, 64) // a few deltas of slack; more would only be lag
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
