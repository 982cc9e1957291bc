package operations

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
)

// History implements operations that read conversations and journals.
type History interface {
	// Watch returns everything after a number and then new items, until ctx ends.
	Watch(context.Context, operation.Caller, WatchRequest) iter.Seq2[feed.Item, error]
	// Messages returns messages and tool calls, as a reader of the conversation sees them.
	Messages(context.Context, operation.Caller, EventRange) (operation.List[feed.Item], error)
	// Events returns the raw journal.
	Events(context.Context, operation.Caller, EventQuery) (operation.List[RawEvent], error)
	// Requests returns the model calls of a session, with what was sent.
	Requests(context.Context, operation.Caller, EventRange) (operation.List[Request], error)
	// Timeline returns what one run did, in order.
	Timeline(context.Context, operation.Caller, RunAt) (Timeline, error)
	// Blob opens a picture or file that an event of the session names.
	Blob(context.Context, operation.Caller, BlobRef) (operation.File, error)
	Search(context.Context, operation.Caller, SearchQuery) (operation.List[Hit], error)
	// Export writes a whole session without secrets, while it is read.
	Export(context.Context, operation.Caller, ExportRequest) (operation.File, error)
	// Replay rebuilds every request from the journal and compares it with what was sent. Its last line says how it ended; it
	// returns an error only if no request was rebuilt.
	Replay(context.Context, operation.Caller, SessionRef) iter.Seq2[ReplayLine, error]
}

// WatchRequest says where a reader continues.
type WatchRequest struct {
	ID    string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	After int64  `json:"after,omitempty" min:"0" max:"9007199254740991" resume:"true" doc:"only later numbers"`
}

// EventRange is a part of a session's journal.
type EventRange struct {
	ID     string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	After  int64  `json:"after,omitempty" min:"0" max:"9007199254740991" doc:"only later numbers; use next of the previous page"`
	Before int64  `json:"before,omitempty" min:"0" max:"9007199254740991" doc:"only earlier numbers, the newest of them; use next of the previous page if that page used before"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"500"`
}

// EventQuery selects a part of a session's journal, optionally by kind or run.
type EventQuery struct {
	ID     string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	After  int64  `json:"after,omitempty" min:"0" max:"9007199254740991" doc:"only later numbers; use next of the previous page"`
	Before int64  `json:"before,omitempty" min:"0" max:"9007199254740991" doc:"only earlier numbers, the newest of them; use next of the previous page if that page used before"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"500"`
	Kind   string `json:"kind,omitempty" maxLen:"64" doc:"only events of this kind, such as tool_ran"`
	Run    string `json:"run,omitempty" maxLen:"64" doc:"only events of this run"`
}

// RawEvent is an event as it is in the journal.
type RawEvent struct {
	Seq      int64           `json:"seq"`
	At       time.Time       `json:"at"`
	Kind     string          `json:"kind"`
	Who      string          `json:"who,omitempty"`
	Run      string          `json:"run,omitempty"`
	Platform string          `json:"platform,omitempty"`
	Title    string          `json:"title"`             // of its kind, for people
	Summary  string          `json:"summary,omitempty"` // what happened, on one line, for people
	Body     json.RawMessage `json:"body"`
}

// Request is one request to a model: what was sent, how much of it was cached, and what it cost.
type Request struct {
	Seq       int64           `json:"seq"`
	Run       string          `json:"run"`
	Step      int             `json:"step"`
	Attempt   int             `json:"attempt"`
	At        time.Time       `json:"at"`
	Model     string          `json:"model"`
	System    string          `json:"system,omitempty"`
	Tools     []string        `json:"tools,omitempty"`
	Fragments []Fragment      `json:"fragments,omitempty"`
	Digest    string          `json:"digest"`
	Verified  bool            `json:"verified"` // the request rebuilt from the journal has the recorded digest
	Usage     feed.Usage      `json:"usage"`
	Expected  int             `json:"expectedCached,omitempty"`
	Cost      feed.USD        `json:"cost"`
	Error     string          `json:"error,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

// Fragment is one piece of a prompt.
type Fragment struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"` // estimated
	Cached bool   `json:"cached"` // it was sent before, byte for byte
}

// BlobRef names bytes of a session.
type BlobRef struct {
	ID   string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Hash string `json:"hash" maxLen:"128" doc:"the name of the bytes"`
}

// RunAt names a run of a session.
type RunAt struct {
	ID string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	At int64  `json:"at,omitempty" min:"0" max:"9007199254740991" doc:"the number of an event of the run; left out: the newest run"`
}

// Timeline is what one run did and waited for.
type Timeline struct {
	Run       string     `json:"run"`
	Seq       int64      `json:"seq"` // its first event
	Model     string     `json:"model"`
	Profile   string     `json:"profile,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   time.Time  `json:"endedAt,omitzero"` // left out while it runs
	Outcome   string     `json:"outcome,omitempty"`
	Usage     feed.Usage `json:"usage"`
	Cost      feed.USD   `json:"cost"`
	Spans     []Span     `json:"spans"`
	Knew      []string   `json:"knew,omitempty"`   // the docs and instructions in its prompt
	Hidden    int        `json:"hidden,omitempty"` // spans left out because there are too many
}

// The kinds of spans.
const (
	SpanQueue  = "queue"  // before it started
	SpanModel  = "model"  // a request to a model
	SpanPause  = "pause"  // before the next attempt of a failed request
	SpanTool   = "tool"   // a call of a tool
	SpanAgent  = "agent"  // another agent worked for it
	SpanPerson = "person" // a person was asked
)

// Span is one thing that a run did or waited for.
type Span struct {
	Kind   string    `json:"kind" enum:"queue,model,pause,tool,agent,person"`
	Label  string    `json:"label"`
	Seq    int64     `json:"seq,omitempty"` // its first event
	Began  time.Time `json:"began"`
	TookMS int64     `json:"tookMs"`
	Open   bool      `json:"open,omitempty"` // it has not ended
	State  string    `json:"state,omitempty"`
}

// SearchQuery is a full-text search over everything the caller may read.
type SearchQuery struct {
	Text   string `json:"q" minLen:"1" maxLen:"500" cli:"words" slash:"words" tool:"query" doc:"the words"`
	Agent  string `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"only this agent's threads"`
	Cursor string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"100" default:"20" doc:"maximum number of results"`
}

// Hit is one match.
type Hit struct {
	Session string    `json:"session"`
	Title   string    `json:"title,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Who     string    `json:"who,omitempty"`
	Snippet string    `json:"snippet"` // matches are between \x01 and \x02
}

// Format is the format of an export.
type Format string

// The formats of an export.
const (
	Markdown  Format = "markdown" // for people to read
	JSONLines Format = "jsonl"    // the journal, one event per line
	CSV       Format = "csv"      // the same for spreadsheets
)

// The media types of exports.
const (
	MarkdownMedia  = "text/markdown"
	JSONLinesMedia = "application/x-ndjson"
	CSVMedia       = "text/csv"
)

// ExportRequest says what to export and how.
type ExportRequest struct {
	ID     string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Format Format `json:"format,omitempty" enum:"markdown,jsonl,csv" default:"markdown" doc:"left out: markdown"`
	Kind   string `json:"kind,omitempty" maxLen:"64" doc:"only events of this kind, such as tool_ran"`
	Run    string `json:"run,omitempty" maxLen:"64" doc:"only events of this run"`
}

// MediaType returns the format's media type and file extension.
func (f Format) MediaType() (media, suffix string) {
	switch f {
	case JSONLines:
		return JSONLinesMedia, ".jsonl"
	case CSV:
		return CSVMedia, ".csv"
	}
	return MarkdownMedia, ".md"
}

// Replayed is one request, rebuilt from the journal alone.
type Replayed struct {
	Seq     int64        `json:"seq"`
	Run     string       `json:"run"`
	Step    int          `json:"step"`
	Attempt int          `json:"attempt"`
	Purpose chat.Purpose `json:"purpose"`
	Digest  string       `json:"digest"`  // recorded when it was sent
	Rebuilt string       `json:"rebuilt"` // of the request rebuilt from the journal
	Same    bool         `json:"same"`
	Why     string       `json:"why,omitempty"` // why it could not be rebuilt
}

// ReplayLine is one line of a replay: a request or the end.
type ReplayLine struct {
	Request *Replayed  `json:"request,omitempty" doc:"a request, rebuilt"`
	End     *ReplayEnd `json:"end,omitempty" doc:"only in the last line"`
}

// ReplayEnd says how a replay ended.
type ReplayEnd struct {
	Requests int            `json:"requests" doc:"how many were rebuilt"`
	Differ   int            `json:"differ" doc:"how many of them differ from what was sent"`
	Error    string         `json:"error,omitempty" doc:"why it could not continue"`
	Kind     operation.Kind `json:"kind,omitempty" doc:"the kind of that problem"`
}

// ReplayLines converts the requests of a replay to lines.
func ReplayLines(requests iter.Seq2[Replayed, error]) iter.Seq2[ReplayLine, error] {
	return func(yield func(ReplayLine, error) bool) {
		end := ReplayEnd{}
		for one, err := range requests {
			var ours *operation.Error
			switch {
			case err == nil:
			case end.Requests > 0 && errors.As(err, &ours): // the answer has begun: its last line has the error
				end.Error, end.Kind = ours.Message, ours.Kind
				yield(ReplayLine{End: &end}, nil)
				return
			default:
				yield(ReplayLine{}, err)
				return
			}
			end.Requests++
			if !one.Same {
				end.Differ++
			}
			if !yield(ReplayLine{Request: &one}, nil) {
				return
			}
		}
		yield(ReplayLine{End: &end}, nil)
	}
}

// ParseItem parses an object of a session's stream. One of a newer version becomes a trace: its number still counts.
func ParseItem(data []byte) (feed.Item, error) {
	item, err := feed.Parse(data)
	if !errors.Is(err, feed.ErrUnknownType) {
		return item, err
	}
	var head feed.Head
	err = json.Unmarshal(data, &head)
	kind := string(head.Type)
	head.Type = feed.TypeTrace
	return feed.Trace{Head: head, Kind: kind, Data: data}, err
}

// parseItems parses a page of objects. Those of a newer version are left out.
func parseItems(data []byte) (operation.List[feed.Item], error) {
	var raw operation.List[json.RawMessage]
	if err := json.Unmarshal(data, &raw); err != nil {
		return operation.List[feed.Item]{}, err
	}
	out := operation.List[feed.Item]{Next: raw.Next}
	for _, data := range raw.Items {
		item, err := feed.Parse(data)
		switch {
		case errors.Is(err, feed.ErrUnknownType):
		case err != nil:
			return out, err
		default:
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

func position(item feed.Item) (int64, bool) {
	head := item.Header()
	return head.Seq, head.More
}

// The operations on history.
var (
	Watch = operation.NewStream(operation.Info{Name: "session.watch", Help: "Follow a session as server-sent events", Scope: operation.Read,
		Doc: "The id of an event is its number in the journal; Last-Event-ID or after continues after it. Several objects may have the same number: " +
			"only the last of them has the id, so handle all objects of a number together. Deltas have no number: they are a preview of " +
			"a run, step and attempt that starts over at offset 0 and is replaced by assistant_message. A comment is sent every 15 seconds, and bye before the server stops.",
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/stream", ID: "stream", Tag: "history"}},
		CLI:  []operation.CLI{{Words: "thread watch", Args: "ID", Help: "Follow a thread, one event per line", Doc: "Each line is one object of the event stream as JSON."}},
	}, History.Watch, operation.Wire[feed.Item]{Parse: ParseItem, Position: position})

	Messages = operation.New(operation.Info{Name: "session.messages", Help: "Read the messages and tool calls", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/messages", ID: "messages", Tag: "history"}}, Tool: "session_messages"},
		History.Messages).ParsedBy(parseItems)

	Events = operation.New(operation.Info{Name: "session.events", Help: "Read the raw journal", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/events", ID: "events", Tag: "history"}}}, History.Events)

	Requests = operation.New(operation.Info{Name: "session.requests", Help: "Read the requests to models, and how much of them was cached", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/requests", ID: "requests", Tag: "history"}}}, History.Requests)

	GetTimeline = operation.New(operation.Info{Name: "session.timeline", Help: "Show what a run did and waited for, and how long each took", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/timeline", ID: "timeline", Tag: "history"}}}, History.Timeline)

	Blob = operation.NewDownload(operation.Info{Name: "session.blob", Help: "Get a picture or file that an event names", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/blobs/{hash}", ID: "blob", Tag: "history"}},
		CLI:  []operation.CLI{{Words: "thread blob", Args: "ID HASH", Example: "  chorus thread blob 01k3 3f2a91c0 -o shot.png"}}}, History.Blob)

	Search = operation.New(operation.Info{Name: "session.search", Help: "Search all messages",
		Doc: "Matches are enclosed in the characters U+0001 and U+0002.", Scope: operation.Read, Errors: []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/search", ID: "search", Tag: "history"}},
		CLI:     []operation.CLI{{Words: "thread search", Args: "WORDS…", Help: "Search messages", Example: "  chorus thread search retry budget"}},
		Tool:    "session_search",
		Columns: "SESSION=session | EVENT=seq | AT=at:minute | WHO=who | FOUND=snippet:200", Empty: "nothing found"}, History.Search)

	Export = operation.NewDownload(operation.Info{Name: "session.export", Help: "Export a whole session, without secrets", Scope: operation.Read,
		Doc: "As Markdown for people, in the server's time zone, or as JSON lines or CSV with one event of the journal per line, optionally only those of a kind or run. " +
			"If the answer is cut off, it is incomplete.",
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/export", ID: "export", Tag: "history", Media: MarkdownMedia + "," + JSONLinesMedia + "," + CSVMedia}},
		CLI: []operation.CLI{{Words: "thread export", Args: "ID", Help: "Write a thread as Markdown, JSON lines or CSV, without secrets",
			Example: "  chorus thread export 01k3 --format jsonl --output talk.jsonl"}}}, History.Export)

	Replay = operation.NewStream(operation.Info{Name: "session.replay", Help: "Rebuild every request from the journal and compare it with what was sent",
		Doc: "Sends a line of JSON for each request as soon as it is rebuilt, and a last line that says how it ended.", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}/replay", ID: "replay", Tag: "history"}},
		CLI: []operation.CLI{{Words: "thread replay", Args: "ID", Doc: "Rebuilds every request of a thread from its journal alone and compares its digest\n" +
			"with the one recorded when it was sent. Exit code 1 if one differs."}}}, History.Replay, operation.Wire[ReplayLine]{})
)

func history() []operation.Any {
	return []operation.Any{Watch, Messages, Events, Requests, GetTimeline, Blob, Search, Export, Replay}
}
