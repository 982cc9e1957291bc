package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"chorus/internal/feed"
	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// The timing of a stream.
const (
	draftEvery   = 80 * time.Millisecond // shortest time between two updates of the draft
	heartbeat    = 15 * time.Second
	writeTimeout = 20 * time.Second // a client that needs longer is disconnected and reconnects
)

// maxThinking is how much of the reasoning is sent with each update: its end.
const maxThinking = 4000

// fragment is one change of a page: the HTML of the element with that id. An element that does not
// exist yet is appended to the conversation or, with In, to that element.
type fragment struct {
	ID       string `json:"id"`
	HTML     string `json:"html"`
	Replaces string `json:"replaces,omitempty"`
	In       string `json:"in,omitempty"`
}

// stream is the connection of one page to one conversation.
type stream struct {
	pages   *Pages
	w       http.ResponseWriter
	control *http.ResponseController
	by      operation.Caller
	view    view
	draft   draft
	stale   bool              // the session's state changed since it was last sent
	sent    string            // the last state that was sent
	output  map[string]string // recent output of running calls, by their ids
}

// draft is the answer that is being written, as the page shows it.
type draft struct {
	key          string // run, step and attempt
	text         string
	thinking     string
	blocks       []string // as last sent
	thinkingSent bool     // the element for the reasoning was sent
	dirty        bool
	finished     map[string]bool // complete answers and ended runs, whose deltas may still arrive late
}

// live streams the changes of a conversation as fragments of its page.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) {
	by, ok := operation.CallerOf(r.Context())
	if !ok {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		http.Error(w, p.userMessage(err), statusOf(err))
		return
	}
	after, _ := strconv.ParseInt(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")), 10, 64)
	split := splitDiffs(w, r) // before anything is sent
	st := p.openStream(w, by, "1000")
	if st == nil {
		return
	}
	st.view = viewOf(s, by)
	st.view.Names, st.view.Split = p.names(r.Context(), by), split
	if st.state(s) != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var changes <-chan struct{}
	if p.Changes != nil {
		changes = p.Changes(ctx)
	}
	if err := st.run(ctx, p.watch(ctx, by, s.ID, after), changes); err != nil && ctx.Err() == nil {
		p.Log.Debug("page stream ended", "component", "web", "error", err)
	}
}

// update is an item, or the error that ended the stream.
type update struct {
	item feed.Item
	err  error
}

// watch reads a few items ahead. A slow client holds the journal's cursor back and no memory.
func (p *Pages) watch(ctx context.Context, by operation.Caller, id string, after int64) <-chan update {
	out := make(chan update, 64)
	go func() {
		defer close(out)
		for item, err := range operations.Watch.Follow(ctx, p.Executor, by, operations.WatchRequest{ID: id, After: after}) {
			select {
			case out <- update{item, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// recheck returns an error when the reader is no longer allowed in; the page then reconnects and is sent to the sign-in page.
func (s *stream) recheck(ctx context.Context) error {
	if s.pages.Recheck == nil {
		return nil
	}
	return s.pages.Recheck(ctx, s.by)
}

// errGone ends the stream of a conversation that no longer exists, after its page was told.
var errGone = errors.New("this conversation is gone")

// run sends what happens in the conversation, and that something changed elsewhere, because lists next to it show other conversations too.
func (s *stream) run(ctx context.Context, items <-chan update, changes <-chan struct{}) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	draw := time.NewTimer(time.Hour)
	defer draw.Stop()
	around := time.NewTimer(time.Hour)
	defer around.Stop()
	waiting, due := false, changes != nil
	if due {
		around.Reset(changesEvery) // once in any case: something may have changed before the stream started
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.pages.Stopping:
			return s.send(": the server is stopping; come again\n\n")
		case <-beat.C:
			if err = s.beat(ctx); err == nil {
				err = s.refresh(ctx) // it may be gone
			}
		case _, ok := <-changes:
			if !ok {
				changes = nil
			} else if !due {
				due = true
				around.Reset(changesEvery)
			}
		case <-around.C:
			due = false
			if err = s.refresh(ctx); err == nil {
				err = s.send("event: moved\ndata: elsewhere\n\n")
			}
		case <-draw.C:
			waiting = false
			err = s.sendDraft()
		case m, ok := <-items:
			if !ok {
				return nil
			}
			if m.err != nil {
				return s.ended(ctx, m.err)
			}
			if s.draft.add(m.item) {
				if s.draft.dirty && !waiting {
					draw.Reset(draftEvery)
					waiting = true
				}
			} else if err = s.sendDraft(); err == nil {
				s.draft.end(m.item)
				err = s.item(m.item)
			}
		}
		if err == nil && s.stale && len(items) == 0 { // not for every item while it catches up
			err = s.refresh(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// send writes to the stream. A client that does not accept it in time is disconnected and
// reconnects with the last number it has.
func (s *stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

func (s *stream) put(f fragment) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return s.send("event: put\ndata: " + string(data) + "\n\n")
}

// item sends the fragments of one item.
func (s *stream) item(item feed.Item) error {
	seq := item.Header().Seq
	if it, ok := item.(feed.ToolProgress); ok {
		return s.put(fragment{ID: "progress-" + it.CallID, In: "out-" + it.CallID,
			HTML: `<pre id="progress-` + html.EscapeString(it.CallID) + `" class="progress">` + html.EscapeString(markdown.Clean(s.printed(it))) + "</pre>"})
	}
	if it, ok := item.(feed.ToolResult); ok {
		delete(s.output, it.CallID)
	}
	for _, r := range s.view.rowsOf(item) {
		made, err := "", error(nil)
		if r.Template != "nothing" {
			made, err = s.pages.fragment(r.Template, r.Data)
		}
		if err != nil {
			return err
		}
		if err := s.put(fragment{ID: r.ID, HTML: made, Replaces: r.Replaces}); err != nil {
			return err
		}
	}
	switch item.(type) {
	case feed.UserMessage, feed.RunStarted, feed.Completed, feed.Error, feed.ApprovalRequired, feed.ApprovalResolved, feed.Refused, feed.ToolResult:
		s.stale = true
	}
	if head := item.Header(); head.Seq == 0 || head.More {
		return nil
	}
	// The number comes last: a page that has it has everything up to it.
	return s.send(fmt.Sprintf("id: %d\nevent: seen\ndata: %d\n\n", seq, seq))
}

// maxPrinted is how much of the output of a running call a page shows: its end.
const maxPrinted = 4000

// printed is the end of a running call's output, which arrives in pieces. Pieces of a command continue where the last
// one ended, those of other tools are lines.
func (s *stream) printed(it feed.ToolProgress) string {
	text := s.output[it.CallID]
	if it.Tool != "bash" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += it.Message
	if over := len(text) - maxPrinted; over > 0 {
		text = text[over:]
		if _, whole, ok := strings.Cut(text, "\n"); ok && whole != "" {
			text = whole
		}
		text = strings.ToValidUTF8(text, "")
	}
	if s.output == nil {
		s.output = map[string]string{}
	}
	s.output[it.CallID] = text
	return text
}

// ended tells the page if its stream ended because this conversation no longer exists.
func (s *stream) ended(ctx context.Context, why error) error {
	if err := s.refresh(ctx); err != nil {
		return err
	}
	return why
}

// refresh sends the state of the session if it changed.
func (s *stream) refresh(ctx context.Context) error {
	now, err := operations.GetSession.Call(ctx, s.pages.Executor, s.by, operations.SessionRef{ID: s.view.Session})
	if operation.KindOf(err) == operation.NotFound {
		if err := s.send("event: gone\ndata: deleted\n\n"); err != nil {
			return err
		}
		return errGone
	}
	if err != nil {
		s.pages.Log.Debug("session could not be read", "component", "web", "error", err)
		return nil // tried again with the next event or heartbeat
	}
	s.stale = false
	return s.state(now)
}

func (s *stream) state(now operations.Session) error {
	data, err := json.Marshal(s.pages.stateOf(now))
	if err != nil {
		return err
	}
	if string(data) == s.sent {
		return nil
	}
	s.sent = string(data)
	return s.send("event: state\ndata: " + s.sent + "\n\n")
}

// add applies a delta; false: the item is not a delta. A new attempt replaces the draft.
func (d *draft) add(item feed.Item) bool {
	var piece feed.TextDelta
	thinking := false
	switch it := item.(type) {
	case feed.TextDelta:
		piece = it
	case feed.ThinkingDelta:
		piece, thinking = feed.TextDelta(it), true
	default:
		return false
	}
	key := draftKey(piece.Run, piece.Step, piece.Attempt)
	if d.finished[key] || piece.Run != "" && d.finished[piece.Run] {
		return true // the complete answer was sent already
	}
	if key != d.key {
		*d = draft{key: key, finished: d.finished}
	}
	d.dirty = true
	if thinking {
		d.thinking = spliceDelta(d.thinking, piece)
	} else {
		d.text = spliceDelta(d.text, piece)
	}
	return true
}

func draftKey(run string, step, attempt int) string { return fmt.Sprint(run, ".", step, ".", attempt) }

// end records that an answer is complete or a run has ended.
func (d *draft) end(item feed.Item) {
	if d.finished == nil {
		d.finished = map[string]bool{}
	}
	switch it := item.(type) {
	case feed.AssistantMessage:
		d.finished[draftKey(it.Run, it.Step, it.Attempt)] = true
	case feed.Completed, feed.Error:
		d.finished[it.Header().Run] = true
	}
}

// spliceDelta puts a delta at its offset: deltas may arrive twice, and the first one may contain everything that was
// written before the stream started.
func spliceDelta(text string, piece feed.TextDelta) string {
	if piece.Offset > len(text) {
		return text // a delta is missing; the complete answer will follow
	}
	return text[:piece.Offset] + piece.Text
}

// sendDraft sends the blocks of the draft that are new or changed.
func (s *stream) sendDraft() error {
	d := &s.draft
	if !d.dirty {
		return nil
	}
	d.dirty = false
	if d.blocks == nil {
		made, err := s.pages.fragment("live", map[string]any{"Agent": s.view.Agent})
		if err != nil {
			return err
		}
		if err := s.put(fragment{ID: "live", HTML: made}); err != nil {
			return err
		}
		if err := s.put(fragment{ID: noRetry.ID}); err != nil {
			return err
		}
		d.blocks = []string{}
	}
	if d.thinking != "" && d.text == "" {
		if err := s.sendThinking(); err != nil {
			return err
		}
	}
	now := markdown.Blocks(d.text)
	for i, block := range now {
		if i < len(d.blocks) && d.blocks[i] == block {
			continue
		}
		id := fmt.Sprint("live-", i)
		if err := s.put(fragment{ID: id, In: "live-body", HTML: `<div id="` + id + `">` + block + "</div>"}); err != nil {
			return err
		}
	}
	for i := len(now); i < len(d.blocks); i++ { // two blocks became one
		if err := s.put(fragment{ID: fmt.Sprint("live-", i)}); err != nil {
			return err
		}
	}
	d.blocks = now
	return nil
}

// sendThinking sends the end of the reasoning, folded as in the finished answer, so that the page does not jump when the answer arrives.
func (s *stream) sendThinking() error {
	d := &s.draft
	if !d.thinkingSent {
		d.thinkingSent = true
		if err := s.put(fragment{ID: "live-think", In: "live-body", HTML: `<details class="think" id="live-think"><summary>Thinking</summary></details>`}); err != nil {
			return err
		}
	}
	tail := strings.ToValidUTF8(d.thinking[max(0, len(d.thinking)-maxThinking):], "")
	return s.put(fragment{ID: "live-thinking", In: "live-think", HTML: `<p id="live-thinking" class="thinking">` + html.EscapeString(markdown.Clean(tail)) + "</p>"})
}
