package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/eventline"
	"chorus/internal/feed"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/redact"
	"chorus/internal/store"
)

// reader converts one thread's events for clients. It is for one goroutine.
type reader struct {
	o     *Handler
	ctx   context.Context
	row   journal.Thread
	calls feed.Calls
	opt   feed.Options
	hide  *redact.Redactor
}

func (o *Handler) reader(ctx context.Context, row journal.Thread) (*reader, error) {
	made, err := o.Standing(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	r := &reader{o: o, ctx: ctx, row: row, calls: feed.Calls{}, hide: o.app.Logs.Redactor()}
	r.opt = feed.Options{Label: r.label, Args: r.args, Model: cmp.Or(made.Terms.Model, o.Defaults(row.Agent).Model)}
	return r, nil
}

// args finds the arguments of a call, even if the call is older than the first event of this reader: a resumed stream
// shows the same as an uninterrupted one.
func (r *reader) args(call string) []byte {
	if args := r.calls.Args(call); args != nil {
		return args
	}
	found, err := r.o.app.DB.ApprovalsFor(r.ctx, store.ApprovalList{Thread: r.row.ID, Call: call, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil // shown without them
	}
	return found[0].Call.Args
}

// shown caches converted events.
type shown struct {
	mu    sync.Mutex
	items map[shownKey][]feed.Item
}

// shownKey identifies an event, and what is hidden from it.
type shownKey struct {
	thread chat.ThreadID
	seq    int64
	hide   *redact.Redactor
}

// maxCachedItems is at most some megabytes of what readers read at the same time.
const maxCachedItems = 512

func (s *shown) get(key shownKey) ([]feed.Item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, ok := s.items[key]
	return items, ok
}

func (s *shown) put(key shownKey, items []feed.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) >= maxCachedItems {
		s.items = map[shownKey][]feed.Item{}
	}
	s.items[key] = items
}

// label describes a call: with the thread's own tools, if they are loaded.
func (r *reader) label(name string, args []byte) string {
	b := r.o.app.Setup.OpenToolbox(r.row.ID)
	if b == nil {
		var err error
		if b, err = r.o.BareToolbox(); err != nil {
			return name
		}
	}
	return b.Label(name, args)
}

// event returns the objects of an event, without secrets. Many clients read the same events at the same time, so they share the result.
func (r *reader) event(ev chat.Event) []feed.Item {
	r.calls.Note(ev)
	key := shownKey{ev.Thread, ev.Seq, r.hide}
	if items, ok := r.o.shown.get(key); ok {
		return items
	}
	items := r.translate(ev)
	if r.ctx.Err() == nil && textSize(ev.Body) < maxRemembered {
		r.o.shown.put(key, items)
	}
	return items
}

// maxRemembered keeps long results, which are read once, out of the cache.
const maxRemembered = 8 << 10

func textSize(body chat.Body) int {
	switch b := body.(type) {
	case chat.Received:
		return len(b.Blocks.Text())
	case chat.Said:
		return len(b.Blocks.Text())
	case chat.ToolRan:
		return len(b.Blocks.Text())
	case chat.ApprovalAsked:
		return len(b.Preview)
	case chat.Compacted:
		return len(b.Summary)
	default:
		return 0
	}
}

func (r *reader) translate(ev chat.Event) []feed.Item {
	opt := r.opt
	if ev.Seq == 1 { // its original value, whatever was changed since
		opt.Model = cmp.Or(termsOf(ev.Body).Model, opt.Model)
	}
	items := feed.Translate(ev, opt)
	for i := range items {
		items[i] = r.clean(items[i])
	}
	return items
}

// clean removes secrets from an object. An object without secrets is returned unchanged. Of a delta, only the text can
// contain secrets: deltas are frequent, and go to many readers.
func (r *reader) clean(item feed.Item) feed.Item {
	switch v := item.(type) {
	case feed.TextDelta:
		v.Text = r.hide.Text(v.Text)
		return v
	case feed.ThinkingDelta:
		v.Text = r.hide.Text(v.Text)
		return v
	case feed.ToolProgress:
		v.Message = r.hide.Text(v.Message)
		return v
	}
	data, err := feed.Encode(item)
	if err != nil {
		return item
	}
	cleaned := r.hide.JSON(data)
	if bytes.Equal(cleaned, data) {
		return item
	}
	back, err := feed.Parse(cleaned)
	if err != nil { // rather a broken shape than a leaked secret
		return feed.Trace{Head: item.Header(), Kind: "hidden", Data: json.RawMessage(`null`)}
	}
	return back
}

// Watch implements the operation of that name. It ends with ctx, and when the server stops.
func (o *Handler) Watch(ctx context.Context, by operation.Caller, in operations.WatchRequest) iter.Seq2[feed.Item, error] {
	return func(yield func(feed.Item, error) bool) {
		row, err := o.Find(ctx, by, in.ID)
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(o.app.Serving.drained, cancel)()
		r, err := o.reader(ctx, row)
		if err != nil {
			yield(nil, err)
			return
		}
		if err := o.app.DB.Health(); err != nil { // clients that connect later also learn of the problem
			for _, it := range r.seen(nil, nil, err) {
				if !yield(it, nil) {
					return
				}
			}
		}
		for item, err := range o.Engine.Watch(ctx, row.ID, max(0, in.After)) {
			for _, it := range r.seen(item.Event, item.Live, err) {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
}

// seen is what a watcher sees: an event, a live delta, or a problem of the thread. Watching continues after a problem.
func (r *reader) seen(ev *chat.Event, live chat.Live, err error) []feed.Item {
	switch {
	case err != nil:
		data, _ := json.Marshal(map[string]string{"message": r.hide.Text(err.Error())}) // text only
		return []feed.Item{feed.Trace{Head: feed.Head{Type: feed.TypeTrace, SessionID: r.row.ID.Thread(), At: time.Now().UTC()}, Kind: "trouble", Data: data}}
	case ev != nil:
		return r.event(*ev)
	case live != nil:
		return []feed.Item{r.clean(feed.Live(r.row.ID, live))}
	default:
		return nil
	}
}

// Limits of pages of a journal.
const (
	eventsPage = 100
	eventsMost = 500
)

// span reads a part of a journal, and says where the next page begins: after its last event, or with Before in front of its first.
func (o *Handler) span(ctx context.Context, thread chat.ThreadID, q operations.EventRange) (events []chat.Event, next string, err error) {
	n := operation.Limit(q.Limit, eventsPage, eventsMost)
	if q.Before > 0 {
		if events, err = o.app.DB.EventsBefore(ctx, thread, q.Before, n); err != nil {
			return nil, "", err
		}
		for len(events) > 0 && events[0].Seq <= q.After {
			events = events[1:]
		}
		if len(events) == n && events[0].Seq > q.After+1 {
			next = strconv.FormatInt(events[0].Seq, 10)
		}
		return events, next, nil
	}
	if events, err = o.app.DB.Events(ctx, thread, q.After, n); err != nil {
		return nil, "", err
	}
	if len(events) == n {
		next = strconv.FormatInt(events[n-1].Seq, 10)
	}
	return events, next, nil
}

// eventsOf is span, filtered by kind or run if requested.
func (o *Handler) eventsOf(ctx context.Context, thread chat.ThreadID, q operations.EventQuery) (events []chat.Event, next string, err error) {
	if q.Kind == "" && q.Run == "" {
		return o.span(ctx, thread, operations.EventRange{ID: q.ID, After: q.After, Before: q.Before, Limit: q.Limit})
	}
	n := operation.Limit(q.Limit, eventsPage, eventsMost)
	events, err = o.app.DB.EventsFor(ctx, thread, store.EventFilter{Kind: chat.Kind(q.Kind), Run: q.Run, After: q.After, Before: q.Before, Limit: n})
	if len(events) == n {
		next = strconv.FormatInt(events[n-1].Seq, 10)
		if q.Before > 0 {
			next = strconv.FormatInt(events[0].Seq, 10)
		}
	}
	return events, next, err
}

// Events implements the operation of that name.
func (o *Handler) Events(ctx context.Context, by operation.Caller, q operations.EventQuery) (operation.List[operations.RawEvent], error) {
	out := operation.List[operations.RawEvent]{Items: []operations.RawEvent{}}
	row, err := o.Find(ctx, by, q.ID)
	if err != nil {
		return out, err
	}
	events, next, err := o.eventsOf(ctx, row.ID, q)
	if err != nil {
		return out, err
	}
	hide := o.app.Logs.Redactor()
	for _, ev := range events {
		body, err := chat.EncodeBody(ev.Body)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, operations.RawEvent{Seq: ev.Seq, At: ev.At, Kind: string(ev.Body.Kind()), Who: ev.Who, Run: ev.Run,
			Platform: ev.Platform, Title: eventline.Title(string(ev.Body.Kind())), Summary: hide.Text(eventline.Line(ev.Body)), Body: hide.JSON(body)})
	}
	out.Next = next
	return out, nil
}

// Messages implements the operation of that name. Imported history is shown in place of the event that brought it.
func (o *Handler) Messages(ctx context.Context, by operation.Caller, q operations.EventRange) (operation.List[feed.Item], error) {
	out := operation.List[feed.Item]{Items: []feed.Item{}}
	row, err := o.Find(ctx, by, q.ID)
	if err != nil {
		return out, err
	}
	events, next, err := o.span(ctx, row.ID, q)
	if err != nil {
		return out, err
	}
	r, err := o.reader(ctx, row)
	if err != nil {
		return out, err
	}
	for _, ev := range events {
		for _, item := range r.event(ev) {
			if item.Header().Type != feed.TypeTrace {
				out.Items = append(out.Items, item)
			}
		}
		if b, ok := ev.Body.(chat.Imported); ok {
			items, err := r.imported(ev, b)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, items...)
		}
	}
	out.Next = next
	return out, nil
}

// maxImported is how many of the newest imported lines are shown.
const maxImported = 500

// imported converts the lines that an event imported, all with its number.
func (r *reader) imported(ev chat.Event, b chat.Imported) ([]feed.Item, error) {
	data, err := r.o.app.DB.Blob(r.ctx, b.Blob)
	if err != nil {
		return nil, err
	}
	var lines []chat.Line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, err
	}
	lines = lines[max(0, len(lines)-maxImported):]
	ran, err := r.ranBefore(ev)
	if err != nil {
		return nil, err
	}
	var out []feed.Item
	for _, line := range lines {
		for _, body := range bodiesOf(line, ran) {
			as := ev
			as.Body, as.PlatformID = body, ""
			if !line.At.IsZero() {
				as.At = line.At
			}
			for _, item := range r.translate(as) {
				if item.Header().Type != feed.TypeSessionStarted {
					out = append(out, item)
				}
			}
		}
	}
	return out, nil
}

// ranBefore returns the results of calls that a fork begins with, by call: its lines have only what the model saw of them. What it was
// forked from may be a fork too.
func (r *reader) ranBefore(imported chat.Event) (map[string]chat.ToolRan, error) {
	out := map[string]chat.ToolRan{}
	thread, before := r.row.ID, imported.Seq
	for range maxForks {
		begin, err := r.o.app.DB.EventsFor(r.ctx, thread, store.EventFilter{Kind: chat.Forked{}.Kind(), Before: before, Limit: 1})
		if err != nil || len(begin) == 0 {
			return out, err
		}
		fork, ok := begin[0].Body.(chat.Forked)
		if !ok {
			return out, nil
		}
		thread, before = fork.From, fork.AtSeq+1
		events, err := r.o.app.DB.EventsFor(r.ctx, thread, store.EventFilter{Kind: chat.ToolRan{}.Kind(), Before: before})
		if err != nil {
			return out, err
		}
		for _, ev := range events { // none if that was deleted
			if b, ok := ev.Body.(chat.ToolRan); ok {
				out[b.Call] = b
			}
		}
	}
	return out, nil
}

// bodiesOf returns the events that a line would have been. ran are known results of calls.
func bodiesOf(line chat.Line, ran map[string]chat.ToolRan) []chat.Body {
	switch line.Role {
	case "assistant":
		return []chat.Body{chat.Said{Blocks: line.Blocks, Stop: chat.StopEnd}}
	case "tool":
		var out []chat.Body
		for _, b := range line.Blocks {
			if r, ok := b.(chat.ToolResult); ok {
				was := ran[r.Call]
				out = append(out, chat.ToolRan{Call: r.Call, Name: r.Name, Blocks: r.Blocks, Failed: r.Failed, Exit: was.Exit, Outcome: cmp.Or(was.Outcome, chat.Ran),
					TookMS: was.TookMS, Changed: was.Changed, Diff: was.Diff})
			}
		}
		return out
	default:
		return []chat.Body{chat.Received{From: line.From, Blocks: line.Blocks, Prompt: true}}
	}
}
