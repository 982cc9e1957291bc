// Package operation defines what people and programs can ask of Chorus, each thing once.
//
// A definition is a plain value: a name, a sentence of help, the scope it needs, a typed
// input whose struct tags say what is valid, a typed output, the function that carries it
// out, and where it appears: HTTP route, command line, chat command, tool. Everything else is
// derived from that value by packages that read it: the HTTP route with its OpenAPI entry,
// the CLI command, the client's call, the chat command, the tool for agents.
//
// The package promises:
//   - making a definition costs next to nothing: fields are read when somebody asks for them;
//   - whoever executes an operation through Local has been checked for identity, scope and
//     valid input, whatever way the request came in;
//   - it knows no HTTP, no command line library and no chat platform.
//
// Since fields are read late, mistakes in a definition show late: Set.Check finds them, and a
// test runs it over every definition there is.
package operation

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"sync"
)

// Effect is what an operation does. HTTP caching, confirmation and hints for models follow from it.
type Effect int

// The effects, from harmless to final.
const (
	Reads    Effect = iota
	Creates         // a second call would create a second thing: it honours an idempotency key
	Changes         // a second call changes nothing more
	Destroys        // people are asked for confirmation first
)

// Shape is how input and output travel.
type Shape int

// The shapes.
const (
	Unary      Shape = iota // one input, one output
	Streamed                // one input, items until the end
	Uploaded                // the input carries a File
	Downloaded              // the output is a File
)

// Info is a definition without its types and its function. It is plain data.
type Info struct {
	Name    string // noun.verb, unique
	Help    string // one line, imperative: "List agents"
	Doc     string // further sentences
	Example string // command lines
	Scope   Scope  // what the caller's token must allow; "": open to everybody
	Effect  Effect
	Errors  []Kind // failures beside those that every operation may have
	Secret  bool   // the output must not be stored: it is shown once
	HTTP    []HTTP
	CLI     []CLI
	Slash   []Slash
	Tool    string // its name for agents and MCP clients; "": not offered to them
	Former  string // a name that the tool had before: it is still taken, and not listed
	Judged  string // under which name rules judge calls of the tool; "": Tool
	MCP     string // its name for MCP clients alone, where agents must not have it; "": Tool
	Columns string // of a list's table: "ID=id | LAST ACTIVE=movedAt:minute"; see Table
	Done    string // what a person reads afterwards: "{name} is ready"
	Empty   string // what a person reads of an empty list
	Page    string // where people find all of it in the browser: "/memory"; "": nowhere
	Label   string // of a list's items, for people who choose one: "{when}: {text:40}"; see Render
}

// HTTP is a route. Fields of the input are bound by name: those in braces come from the path,
// others from the query of GET and DELETE, or from the body as one JSON object.
type HTTP struct {
	Route     string // "POST /api/agents/{name}"
	ID        string // operationId in the OpenAPI document
	Tag       string // group in the OpenAPI document; "": the plural of the noun
	Help      string // summary; "": the operation's Help
	Doc       string // description; "": the operation's Doc
	Body      string // name of the body's schema; "": the schema is written in place
	NeedsBody bool   // a body is required although none of its fields is
	Status    int    // of success; 0: 200, or 204 without output
	Media     string // media types of a download, separated by commas; "": any
	MaxBody   int64  // bytes; 0: the server's default
}

// CLI is a command line. Positional arguments are field names in capitals, in brackets where
// they may be left out, with … where the rest of the line is meant; all other fields are flags.
type CLI struct {
	Words string         // "agent create"
	Args  string         // "NAME [PATH]", "WORDS…"
	Set   map[string]any // values of fields that the words decide
	Help  string         // "": the operation's Help
	Doc   string         // "": the operation's Doc
	// Example is for this command only; "": the operation's.
	Example string
	Alias   string // another last word that means the same
	// Ask is what is said of something that destroys when --yes is missing; "": that it cannot be undone.
	Ask string
}

// Slash is a command of a chat platform.
type Slash struct {
	Words      string         // at most three: "agent create"
	Options    string         // names of the fields to offer; "": all
	Require    string         // names of fields that must be given here, though elsewhere they need not
	Set        map[string]any // values of fields that the words decide
	Help       string         // "": the operation's Help
	Permission string         // what the platform should demand before it shows it: manage channels, manage guild
	Example    string         // its options as somebody would type them: "name:deploy text:staging"
	Private    bool           // the answer is for whoever asked alone: not offered where all read it
	// Show is what is answered, for a list of each item; see Render. "": the operation's Done, or its table.
	Show string
	// Ask is the question before something is destroyed, of the input and what First gave; see Render. "": whether it is meant, since it cannot be undone.
	Ask string
	// First names an operation whose output is shown first; the command is carried out when whoever gave it says yes.
	// It takes the fields of the command by their names, and what the command needs and lacks is taken from its output:
	// so a yes holds for what was shown.
	First string
	// Speaks makes words of the input, which are said where the command was given instead of calling the operation:
	// "/{name} {text}". What First names must succeed.
	Speaks string
}

// Definition is an operation without its static types, for packages that derive something from
// every operation. It may be used from any goroutine and must not be changed.
type Definition struct {
	Info
	Shape   Shape
	In, Out reflect.Type // Out of a stream: of one item
	Handler reflect.Type // the interface that carries it out

	// Parse reads the output, or one item of a stream, from the wire; nil: as JSON.
	Parse func(data []byte) (any, error)
	// Position says which number an item of a stream has, 0 for none, and whether more items of that number
	// follow. nil: the stream cannot be resumed.
	Position func(item any) (number int64, more bool)

	run    func(ctx context.Context, handler any, by Caller, in any) (any, error)
	follow func(ctx context.Context, handler any, by Caller, in any) iter.Seq2[any, error]
	fields func() (fieldSet, error)
}

// NameForMCP is the operation's name for MCP clients; "": not offered to them.
func (i *Info) NameForMCP() string { return cmp.Or(i.MCP, i.Tool) }

// IsTool reports whether a name is that of the operation's tool, or was.
func (i *Info) IsTool(name string) bool {
	return name != "" && (name == i.NameForMCP() || name == i.Tool || name == i.Former)
}

// Any is an operation of whatever types.
type Any interface{ Def() *Definition }

// Def implements Any.
func (d *Definition) Def() *Definition { return d }

// None is the input or output of an operation that has none.
type None struct{}

// Operation is an operation with one output. Use it through Call.
type Operation[In, Out any] struct{ *Definition }

// Stream is an operation that gives items until it ends. Use it through Follow.
type Stream[In, Item any] struct{ *Definition }

// New defines an operation. The types follow from the method that carries it out, given as a
// method expression of a small interface: operation.New(info, Agents.CreateAgent).
func New[H, In, Out any](info Info, run func(H, context.Context, Caller, In) (Out, error)) Operation[In, Out] {
	return Operation[In, Out]{define(info, Unary, run)}
}

// ParsedBy gives the operation a way of its own to read its output from the wire, where the output holds interfaces.
func (o Operation[In, Out]) ParsedBy(parse func(data []byte) (Out, error)) Operation[In, Out] {
	o.Parse = func(data []byte) (any, error) { return parse(data) }
	return o
}

// NewUpload defines an operation whose input has a field of type File.
func NewUpload[H, In, Out any](info Info, run func(H, context.Context, Caller, In) (Out, error)) Operation[In, Out] {
	return Operation[In, Out]{define(info, Uploaded, run)}
}

// NewDownload defines an operation that gives a File, which the caller closes.
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

// Wire says how the items of a stream travel. Both may be nil: items are then plain JSON, and the stream is
// not resumed after a lost connection.
type Wire[Item any] struct {
	Parse    func(data []byte) (Item, error)
	Position func(item Item) (number int64, more bool)
}

// NewStream defines an operation that gives items until it ends or its context does.
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

// WithProgress lets whoever carries out a long operation in this process report how far it is.
func WithProgress(ctx context.Context, report func(done, all int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// ProgressOf is where to report progress; nil: nobody wants to know.
func ProgressOf(ctx context.Context) func(done, all int64) {
	report, _ := ctx.Value(progressKey{}).(func(done, all int64))
	return report
}

// Executor carries operations out: in this process, or on a server. It may be used from any goroutine.
// Errors are *Error wherever they come from.
type Executor interface {
	// Execute runs an operation that is no stream. in has the definition's type In, the output its type Out.
	Execute(ctx context.Context, by Caller, d *Definition, in any) (any, error)
	// Follow runs a stream. An error is the last thing it gives.
	Follow(ctx context.Context, by Caller, d *Definition, in any) iter.Seq2[any, error]
}

// Call runs the operation. Over the wire the token says who the caller is, and by is not looked at.
func (o Operation[In, Out]) Call(ctx context.Context, to Executor, by Caller, in In) (Out, error) {
	out, err := to.Execute(ctx, by, o.Definition, in)
	typed, _ := out.(Out)
	return typed, err
}

// Follow runs the stream; breaking off the loop ends it.
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
