// Package tool is the contract between the agent loop and what an agent can do. A tool declares what a call
// would touch before anything runs, and never asks for its own permission. It answers a mistake of the model
// with a Result that the model can correct. An error of Run means a fault of ours, and ends the run.
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

// Spec is what the model and the gate know about a tool.
type Spec struct {
	Name        string          // canonical: lower case, underscores
	Description string          // the text that the model reads, from the tool's .md
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	ReadOnly    bool            // changes nothing: may run in parallel, and again after a crash
	Limit       time.Duration   // how long a call may take if that is longer than usual; 0: the usual limit
	Once        bool            // a call with the same key takes effect once however often it runs, so it runs again after a crash
	Ends        bool            // always ends when its context does; any other tool is watched, and abandoned if necessary
	Group       string          // what it belongs to, such as task or git; searches name the groups; "" if nothing in particular
	Deferred    bool            // another thread answers it: Run is never called, Agent.Defer is
	Rare        bool            // seldom needed: if there are several such tools, a model searches for them, see toolsearch
	Risk        Risk
}

// Access is one thing that a call would touch. It is judged as "tool:<Tool>:<Detail>".
type Access struct {
	Tool    string // canonical tool for the action string, for example "write" for a redirection
	Detail  string
	Command string // the whole shell command of a shell call, which the gate takes apart itself
	Git     bool   // the path lies in a git directory, or would make its folder one: git starts programs that such files name
}

// Action returns the action string.
func (a Access) Action() string { return "tool:" + a.Tool + ":" + a.Detail }

// Tool is one thing that an agent can do. Implementations are safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Access returns what this call would touch. It is pure and must not fail: for arguments it cannot read
	// it returns nil, and the call is judged as tool:<name>:<arguments as sorted JSON>.
	Access(args []byte) []Access
	// Run makes the call. The arguments have been validated against the schema.
	Run(ctx context.Context, args []byte) (Result, error)
}

// Labeler is a tool that can say in a few words what a call does: "read src/a.go".
type Labeler interface {
	Label(args []byte) string
}

// Previewer is a tool that can show in advance what a call would change: a unified
// diff, or "" if there is nothing to show. It changes nothing.
type Previewer interface {
	Preview(ctx context.Context, args []byte) string
}

// Aliaser is a tool that also answers to other names, those of the designs that Chorus unites.
type Aliaser interface {
	Aliases() []Alias
}

// Alias is another name for a tool. Convert (may be nil) turns that design's
// arguments into ours, or returns an error that the model can read.
type Alias struct {
	Name    string
	Convert func(args []byte) ([]byte, error)
}

// Forwarder is a tool whose calls are calls of another tool. Set.Resolve returns that other
// tool, so nothing is ever judged, shown or run under the forwarder's name.
type Forwarder interface {
	Tool
	// Forward reads a call and returns the tool that is meant, with its
	// arguments. The error is an answer for the model.
	Forward(args []byte) (name string, inner []byte, err error)
}

// Judged is a tool whose calls are judged under names other than its own: all those that
// its Access can return. Without names it is judged under its own.
type Judged interface {
	JudgedAs() []string
}

// Result is what a call returns to the model and to people.
type Result struct {
	Blocks        chat.Blocks // Text and Image only
	Failed        bool        // the model is told of an error
	Exit          int         // nonzero exit code of a command; its output is an ordinary result
	Read          []string    // files it read, as the model named them
	Changed       []string    // files it changed
	Diff          string      // what it changed in them, as a unified diff for people; "" if nothing or unknown
	Blobs         []chat.Blob // bytes that its images refer to
	UntrustedFrom string      // where its text is from if others may have written it, "file a.go"; the model is told
}

// Helpers for results; most tools answer with text.

// What the model is told if there is nothing to show.
const (
	NoOutput  = "(no output)"       // of a command
	NoMatches = "No matches found." // of a search
)

// OK returns a result with text.
func OK(text string) Result { return Result{Blocks: chat.TextBlocks(text)} }

// From returns a result with text that others may have written. source says in a few words where it is from.
func From(source, text string) Result {
	return Result{Blocks: chat.TextBlocks(text), UntrustedFrom: source}
}

// Fail returns a result about a mistake that the model can correct.
func Fail(text string) Result { return Result{Blocks: chat.TextBlocks(text), Failed: true} }

// Call is what a running tool may know about its call.
type Call struct {
	ID      string
	Key     string           // marks the call's processes; unlike ID it is unique among all threads
	Senders []chat.Principal // on whose words it is made; empty if unknown
	Touches []Access         // what was judged: a tool does nothing else, whatever has changed since; nil: nobody judged it
	// Hides reports whether a tool that looks through many files must leave one out, because a rule keeps it
	// from being read; nil: none. Its argument is like Access.Detail. It is safe for concurrent use.
	Hides    func(path string) bool
	Progress func(text string) // never nil once taken from a context; must not block
	// Streams receives a command's standard output and standard error separately. nil: nobody needs
	// that, and the result has both in the order in which they were written.
	Streams func(stdout, stderr string)
}

type callKey struct{}

// WithCall puts the call into the context that Run gets.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallFrom returns the call from the context, or an unwatched call if there is none.
func CallFrom(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	if call.Progress == nil {
		call.Progress = func(string) {}
	}
	call.Key = cmp.Or(call.Key, call.ID)
	return call
}
