// Package tool is the contract between the agent loop and what an agent can do.
// A tool declares what a call would touch before anything runs, never asks for its
// own permission, and answers a mistake of the model's with a Result the model can
// correct; an error of Run means ours, and ends the run.
package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"chorus/internal/chat"
)

// Risk is how much harm a call can do, for people who are asked.
type Risk string

// The risks.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

// Spec is what the model and the gate know of a tool.
type Spec struct {
	Name        string          // canonical: lower case, underscores
	Description string          // the words the model reads, from the tool's .md
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	ReadOnly    bool            // changes nothing: may run in parallel and again after a crash
	Limit       time.Duration   // how long a call may take, where that is longer than calls may usually; 0: as usual
	Once        bool            // the same call, by its key, has its effect once however often it runs: it runs again after a crash
	Ends        bool            // always ends when its context does; any other is watched, and left alone if it must be
	Group       string          // what it belongs to, such as task or git; searches name the groups. "": nothing in particular
	Deferred    bool            // another thread answers it: Run is never called, Agent.Defer is
	Rare        bool            // seldom needed: where there are others like it a model searches for it, see toolsearch
	Risk        Risk
}

// Access is one thing a call would touch: judged as "tool:<Tool>:<Detail>".
type Access struct {
	Tool    string // canonical tool for the action string, for example "write" for a redirection
	Detail  string
	Command string // the whole shell command when this is a shell call: the gate takes it apart itself
	Git     bool   // it lies in a git directory, or would make its folder one: git starts programs that such files name
}

// Action is the action string.
func (a Access) Action() string { return "tool:" + a.Tool + ":" + a.Detail }

// Tool is one thing an agent can do. Implementations are safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Access says what this call would touch. It is pure and must not fail: for
	// arguments it cannot read it returns nil, and the call is judged as
	// tool:<name>:<arguments as sorted JSON>.
	Access(args []byte) []Access
	// Run does it. The arguments have been validated against the schema.
	Run(ctx context.Context, args []byte) (Result, error)
}

// Labeler is a tool that can say in a few words what a call does: "read src/a.go".
type Labeler interface {
	Label(args []byte) string
}

// Previewer is a tool that can show what a call would change before it does: a
// unified diff, or "" when there is nothing to show. It changes nothing.
type Previewer interface {
	Preview(ctx context.Context, args []byte) string
}

// Aliaser is a tool that answers to other names too, those of the designs that
// Chorus unites.
type Aliaser interface {
	Aliases() []Alias
}

// Alias is another name for a tool. Convert (may be nil) turns that design's
// arguments into ours; it returns an error the model can read.
type Alias struct {
	Name    string
	Convert func(args []byte) ([]byte, error)
}

// Forwarder is a tool whose calls are calls of another one: Set.Resolve answers
// with that one, so nothing is ever judged, shown or run under the forwarder's name.
type Forwarder interface {
	Tool
	// Forward reads a call and says which tool is meant, with its arguments. The
	// error is an answer for the model.
	Forward(args []byte) (name string, inner []byte, err error)
}

// Judged is a tool whose calls are judged under names other than its own: all those
// its Access can give. Without names it is judged under its own.
type Judged interface {
	JudgedAs() []string
}

// Result is what a call gives back to the model, and, beside it, to people.
type Result struct {
	Blocks        chat.Blocks // Text and Image only
	Failed        bool        // the model is told of an error
	Exit          int         // the code of a command that ended with another than 0; its output is an ordinary result
	Read          []string    // files it read, as the model named them
	Changed       []string    // files it changed
	Diff          string      // what it changed in them, as a unified diff for people; "": nothing, or it is not known
	Blobs         []chat.Blob // bytes its images refer to
	UntrustedFrom string      // where its text is from when others may have written it, "file a.go"; the model is told
}

// Textf-like helpers: most tools answer with text.

// What the model is told where there is nothing to show.
const (
	NoOutput  = "(no output)"       // of a command
	NoMatches = "No matches found." // of a search
)

// OK is a result with text.
func OK(text string) Result { return Result{Blocks: chat.TextBlocks(text)} }

// From is a result with text that others may have written: source says in a few words
// where it is from.
func From(source, text string) Result {
	return Result{Blocks: chat.TextBlocks(text), UntrustedFrom: source}
}

// Fail is a mistake the model can correct.
func Fail(text string) Result { return Result{Blocks: chat.TextBlocks(text), Failed: true} }

// Call is what a running tool may know about the call it serves.
type Call struct {
	ID      string
	Key     string           // marks the call's processes: unlike ID unique among all threads
	Senders []chat.Principal // on whose words it is made; none: it is not known
	Touches []Access         // what was judged: a tool does nothing else, whatever has changed since; nil: nobody judged it
	// Hides says which files a tool that looks through many must leave out, because a rule keeps them from being
	// read; nil: none. It takes what Access has as Detail and is safe for concurrent use.
	Hides    func(path string) bool
	Progress func(text string) // never nil once taken from a context; must not block
	// Streams is told what a command wrote on its standard output and as errors, each by itself; nil: nobody asks, and the
	// result has both in the order in which they were written.
	Streams func(stdout, stderr string)
}

type callKey struct{}

// WithCall puts the call into the context that Run gets.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallFrom takes it out again; without one it is a call nobody watches.
func CallFrom(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	if call.Progress == nil {
		call.Progress = func(string) {}
	}
	call.Key = cmp.Or(call.Key, call.ID)
	return call
}
