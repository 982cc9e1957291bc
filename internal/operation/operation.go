// Package operation defines everything that people and programs can ask of Chorus, each thing once.
//
// A definition is a plain value: a name, a line of help, the scope it needs, a typed input with struct tags for
// validation, a typed output, the function that runs it, and where it appears: HTTP route, command line, chat command,
// tool. Other packages derive everything else from it: the HTTP route with its OpenAPI entry, the CLI command, the
// client call, the chat command and the tool for agents.
//
// The package promises:
//   - creating a definition is cheap: fields are read on first use;
//   - an operation that runs through Local has been checked for identity, scope and valid input,
//     however the request came in;
//   - it depends on no HTTP, command line or chat library.
//
// Because fields are read late, mistakes in a definition appear late. Set.Check finds them, and a test runs it over every definition.
package operation

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"sync"
)

// Effect is what an operation does. HTTP caching, confirmations and hints for models depend on it.
type Effect int

// The effects, from harmless to irreversible.
const (
	Reads    Effect = iota
	Creates         // a second call would create a second thing, so it honours an idempotency key
	Changes         // a second call changes nothing more
	Destroys        // people must confirm it first
)

// Shape is how input and output travel.
type Shape int

// The shapes.
const (
	Unary      Shape = iota // one input, one output
	Streamed                // one input, items until the end
	Uploaded                // the input contains a File
	Downloaded              // the output is a File
)

// Info is a definition without its types and function. It is plain data.
type Info struct {
	Name    string // noun.verb, unique
	Help    string // one line, imperative: "List agents"
	Doc     string // more sentences
	Example string // example command lines
	Scope   Scope  // what the caller's token must allow; "": open to everybody
	Effect  Effect
	Errors  []Kind // failures in addition to those that every operation may have
	Secret  bool   // the output must not be stored, because it is shown only once
	HTTP    []HTTP
	CLI     []CLI
	Slash   []Slash
	Tool    string // its name for agents and MCP clients; "": not offered to them
	Former  string // a former name of the tool: still accepted, but not listed
	Judged  string // the name under which rules judge calls of the tool; "": Tool
	MCP     string // its name for MCP clients only, if agents must not have it; "": Tool
	Columns string // columns of a list's table: "ID=id | LAST ACTIVE=movedAt:minute"; see Table
	Done    string // message after it is done: "{name} is ready"
	Empty   string // message for an empty list
	Page    string // the page in the browser: "/memory"; "": none
	Label   string // label of a list's items for selection: "{when}: {text:40}"; see Render
}

// HTTP is a route. Fields of the input are bound by name: fields in braces come from the path, others from the query of
// GET and DELETE, or from the body, which is one JSON object.
type HTTP struct {
	Route     string // "POST /api/agents/{name}"
	ID        string // operationId in the OpenAPI document
	Tag       string // group in the OpenAPI document; "": the plural of the noun
	Help      string // summary; "": the operation's Help
	Doc       string // description; "": the operation's Doc
	Body      string // name of the body's schema; "": the schema is inlined
	NeedsBody bool   // a body is required although none of its fields is
	Status    int    // status on success; 0: 200, or 204 without output
	Media     string // media types of a download, separated by commas; "": any
	MaxBody   int64  // bytes; 0: the server's default
}

// CLI is a command line. Positional arguments are field names in capitals, in brackets if optional, with … if they take
// the rest of the line. All other fields are flags.
type CLI struct {
	Words string         // "agent create"
	Args  string         // "NAME [PATH]", "WORDS…"
	Set   map[string]any // values of fields implied by the words
	Help  string         // "": the operation's Help
	Doc   string         // "": the operation's Doc
	// Example is for this command only; "": the operation's.
	Example string
	Alias   string // an alias of the last word
	// Ask is shown if --yes is missing for something that destroys; "": that it cannot be undone.
	Ask string
}

// Slash is a command of a chat platform.
type Slash struct {
	Words      string         // at most three words: "agent create"
	Options    string         // names of the fields to offer; "": all
	Require    string         // names of fields that are required here, though optional elsewhere
	Set        map[string]any // values of fields implied by the words
	Help       string         // "": the operation's Help
	Permission string         // permission that the platform should require to show it: manage channels, manage guild
	Example    string         // example options as typed: "name:deploy text:staging"
	None       string         // the answer if a session or an agent was left out and there is none here; "": to choose one
	Private    bool           // only the caller sees the answer: not offered where everybody reads it
	// Show is the template of the answer, for each item of a list; see Render. "": the operation's Done, or its table.
	Show string
	// Ask is the question before something is destroyed, a template over the input and the output of First; see Render. "":
	// asks for confirmation and says that it cannot be undone.
	Ask string
	// First names an operation whose output is shown first; the command runs when the same person confirms. It takes the
	// command's fields by name, and its output fills in what the command needs and lacks, so that the confirmation applies
	// to what was shown.
	First string
	// Speaks is a template of a message that is sent where the command was given, instead of calling the operation: "/{name}
	// {text}". The operation named by First must succeed.
	Speaks string
}

// Definition is an operation without its static types, for packages that derive something from every operation. It may
// be used from any goroutine and must not be changed.
type Definition struct {
	Info
	Shape   Shape
	In, Out reflect.Type // Out of a stream: of one item
	Handler reflect.Type // the interface of the handler

	// Parse parses the output, or one item of a stream; nil: as JSON.
	Parse func(data []byte) (any, error)
	// Position returns the number of a stream item, 0 for none, and whether more items of that number follow. nil: the stream cannot be resumed.
	Position func(item any) (number int64, more bool)

	run    func(ctx context.Context, handler any, by Caller, in any) (any, error)
	follow func(ctx context.Context, handler any, by Caller, in any) iter.Seq2[any, error]
	fields func() (fieldSet, error)
}

// NameForMCP is the operation's name for MCP clients; "": not offered to them.
func (i *Info) NameForMCP() string { return cmp.Or(i.MCP, i.Tool) }

// IsTool reports whether a name is the current or former name of the operation's tool.
func (i *Info) IsTool(name string) bool {
	return name != "" && (name == i.NameForMCP() || name == i.Tool || name == i.Former)
}

// Any is an operation of any types.
type Any interface{ Def() *Definition }

// Def implements Any.
func (d *Definition) Def() *Definition { return d }

// None is the input or output of an operation that has none.
type None struct{}

// Operation is an operation with one output. Use it through Call.
type Operation[In, Out any] struct{ *Definition }

// Stream is an operation that returns items until it ends. Use it through Follow.
type Stream[In, Item any] struct{ *Definition }

// New defines an operation. The types follow from the handler method, given as a method expression of a small interface:
// operation.New(info, Agents.CreateAgent).
func New[H, In, Out any](info Info, run func(H, context.Context, Caller, In) (Out, error)) Operation[In, Out] {
	return Operation[In, Out]{define(info, Unary, run)}
}

// ParsedBy sets a custom parser for an output that contains interfaces.
func (o Operation[In, Out]) ParsedBy(parse func(data []byte) (Out, error)) Operation[In, Out] {
	o.Parse = func(data []byte) (any, error) { return parse(data) }
	return o
}

// NewUpload defines an operation whose input has a field of type File.
func NewUpload[H, In, Out any](info Info, run func(H, context.Context, Caller, In) (Out, error)) Operation[In, Out] {
	return Operation[In, Out]{define(info, Uploaded, run)}
}

// NewDownload defines an operation that returns a File, which the caller closes.
func NewDownload[H, In any](info Info, run func(H, context.Context, Caller, In) (File, error)) Operation[In, File] {
	return Operation[In, File]{define(info, Downloaded, run)}
}

func define[H, In, Out any](info Info, shape Shape, run func(H, context.Context, Caller, In) (Out, error)) *Definition {
	d := &Definition{Info: info, Shape: shape, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](), Handler: reflect.TypeFor[H]()}
	d.fields = sync.OnceValues(func() (fieldSet, error) { return readFields(d.In) })
	d.run = func(ctx context.Context, handler any, by Caller, in any) (any, error) {
		return run(handler.(H), ctx, by, in.(In))
	}
	return d
}

// Wire says how the items of a stream are sent. Both fields may be nil: items are then plain JSON, and the stream is not
// resumed after a lost connection.
type Wire[Item any] struct {
	Parse    func(data []byte) (Item, error)
	Position func(item Item) (number int64, more bool)
}

// NewStream defines an operation that returns items until it ends or its context does.
func NewStream[H, In, Item any](info Info, follow func(H, context.Context, Caller, In) iter.Seq2[Item, error], wire Wire[Item]) Stream[In, Item] {
	d := &Definition{Info: info, Shape: Streamed, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Item](), Handler: reflect.TypeFor[H]()}
	d.fields = sync.OnceValues(func() (fieldSet, error) { return readFields(d.In) })
	if wire.Parse != nil {
		d.Parse = func(data []byte) (any, error) { return wire.Parse(data) }
	}
	if wire.Position != nil {
		d.Position = func(item any) (int64, bool) { return wire.Position(item.(Item)) }
	}
	d.follow = func(ctx context.Context, handler any, by Caller, in any) iter.Seq2[any, error] {
		return func(yield func(any, error) bool) {
			for item, err := range follow(handler.(H), ctx, by, in.(In)) {
				if !yield(item, err) {
					return
				}
			}
		}
	}
	return Stream[In, Item]{d}
}

type progressKey struct{}

// WithProgress lets a long operation in this process report its progress.
func WithProgress(ctx context.Context, report func(done, all int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// ProgressOf returns the function to report progress to; nil: nobody listens.
func ProgressOf(ctx context.Context) func(done, all int64) {
	report, _ := ctx.Value(progressKey{}).(func(done, all int64))
	return report
}

// Executor runs operations: in this process, or on a server. It may be used from any goroutine. Errors are always *Error.
type Executor interface {
	// Execute runs an operation that is not a stream. in has the definition's type In, the output its type Out.
	Execute(ctx context.Context, by Caller, d *Definition, in any) (any, error)
	// Follow runs a stream. An error is its last item.
	Follow(ctx context.Context, by Caller, d *Definition, in any) iter.Seq2[any, error]
}

// Call runs the operation. With a remote executor, the token identifies the caller and by is ignored.
func (o Operation[In, Out]) Call(ctx context.Context, to Executor, by Caller, in In) (Out, error) {
	out, err := to.Execute(ctx, by, o.Definition, in)
	typed, _ := out.(Out)
	return typed, err
}

// Follow runs the stream. Breaking out of the loop ends it.
func (s Stream[In, Item]) Follow(ctx context.Context, to Executor, by Caller, in In) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for item, err := range to.Follow(ctx, by, s.Definition, in) {
			typed, _ := item.(Item)
			if !yield(typed, err) {
				return
			}
		}
	}
}
