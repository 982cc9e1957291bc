package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"chorus/internal/command"
	"chorus/internal/feed"
	"chorus/internal/markdown"
)

// The rhythm of a stream.
const (
	drawEvery    = 80 * time.Millisecond // text in the making, at most
	heartbeat    = 15 * time.Second
	writeTimeout = 20 * time.Second // a reader that takes longer for one piece comes again
)

// shownThinking is how much of the reasoning in the making is sent, again and again.
const shownThinking = 4000

// fragment is one change of a page: HTML for the element with that id. One that is not
// there yet comes behind the last, or, with In, at the end of that element.
type fragment struct {
	ID       string `json:"id"`
	HTML     string `json:"html"`
	Replaces string `json:"replaces,omitempty"`
	In       string `json:"in,omitempty"`
}

// stream is one reader of one conversation.
type stream struct {
	pages   *Pages
	w       http.ResponseWriter
	control *http.ResponseController
	by      command.Caller
	talk    talk
	draft   draft
	stale   bool // what stands beside the conversation changed since it was sent
}

// draft is the answer in the making, as the page has it.
type draft struct {
	key      string // of which run, step and attempt
	text     string
	thinking string
	blocks   []string // as they were sent
	thought  bool     // the place for reasoning was sent
	dirty    bool
	over     map[string]bool // answers that are whole, and runs that ended: pieces of them may still come, however late
}

// live sends what moves in a conversation as fragments of its page.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) {
	by, ok := command.CallerOf(r.Context())
	if !ok {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	s, err := p.Service.GetSession(r.Context(), by, r.PathValue("id"))
	if err != nil {
		http.Error(w, p.sentence(err), statusOf(err))
		return
	}
	after, _ := strconv.ParseInt(firstOf(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")), 10, 64)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	st := &stream{pages: p, w: w, control: http.NewResponseController(w), by: by, talk: talkOf(s, by)}
	st.talk.Names = p.names(r.Context(), by)
	if st.send("retry: 1000\n\n") != nil || st.state(s) != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if err := st.run(ctx, p.watch(ctx, by, s.ID, after)); err != nil && ctx.Err() == nil {
		p.Log.Debug("a page's stream ended", "component", "web", "error", err)
	}
}

// moved is an item, or why there are no more.
type moved struct {
	item feed.Item
	err  error
}

// watch reads items ahead by a few; a reader that cannot keep up holds the journal's
// cursor back and no memory.
func (p *Pages) watch(ctx context.Context, by command.Caller, id string, after int64) <-chan moved {
	out := make(chan moved, 64)
	go func() {
		defer close(out)
		for item, err := range p.Service.Watch(ctx, by, id, after) {
			select {
			case out <- moved{item, err}:
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

// still says why the reader would not be let in now; the page comes again, and is shown the way in.
func (s *stream) still(ctx context.Context) error {
	if s.pages.Still == nil {
		return nil
	}
	return s.pages.Still(ctx, s.by)
}

func (s *stream) run(ctx context.Context, items <-chan moved) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	draw := time.NewTimer(time.Hour)
	defer draw.Stop()
	waiting := false
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.pages.Stopping:
			return s.send(": the server is stopping; come again\n\n")
		case <-beat.C:
			if err = s.still(ctx); err == nil {
				err = s.send(": still here\n\n")
			}
		case <-draw.C:
			waiting = false
			err = s.draw()
		case m, ok := <-items:
			if !ok {
				return nil
			}
			if m.err != nil {
				return m.err
			}
			if s.draft.take(m.item) {
				if s.draft.dirty && !waiting {
					draw.Reset(drawEvery)
					waiting = true
				}
			} else if err = s.draw(); err == nil {
				s.draft.end(m.item)
				err = s.item(m.item)
			}
		}
		if err == nil && s.stale && len(items) == 0 { // while it catches up, nobody needs every step
			err = s.refresh(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// send writes a piece of the stream; a reader who does not take it in time is let go and
// comes again with the number it has.
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

// item sends what a fact of the journal, or a sign of life, puts on the page.
func (s *stream) item(item feed.Item) error {
	seq := item.Header().Seq
	if it, ok := item.(feed.ToolProgress); ok {
		return s.put(fragment{ID: "progress-" + it.CallID, In: "out-" + it.CallID,
			HTML: `<pre id="progress-` + html.EscapeString(it.CallID) + `" class="progress">` + html.EscapeString(markdown.Clean(it.Message)) + "</pre>"})
	}
	for _, r := range s.talk.rowsOf(item) {
		made, err := "", error(nil)
		if r.Template != "nothing" {
			made, err = s.pages.piece(r.Template, r.Data)
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
	// The number comes last: whoever has it has everything up to it.
	return s.send(fmt.Sprintf("id: %d\nevent: seen\ndata: %d\n\n", seq, seq))
}

// refresh sends what stands beside the conversation.
func (s *stream) refresh(ctx context.Context) error {
	now, err := s.pages.Service.GetSession(ctx, s.by, s.talk.Session)
	if err != nil {
		s.pages.Log.Debug("a session could not be looked at", "component", "web", "error", err)
		return nil // the next event tries again, or the next sign of life
	}
	s.stale = false
	return s.state(now)
}

func (s *stream) state(now command.Session) error {
	data, err := json.Marshal(s.pages.stateOf(now))
	if err != nil {
		return err
	}
	return s.send("event: state\ndata: " + string(data) + "\n\n")
}

// take keeps a piece of an answer in the making; false: it is none. A new attempt
// begins anew.
func (d *draft) take(item feed.Item) bool {
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
	if d.over[key] || piece.Run != "" && d.over[piece.Run] {
		return true // what is whole needs no pieces
	}
	if key != d.key {
		*d = draft{key: key, over: d.over}
	}
	d.dirty = true
	if thinking {
		d.thinking = spliced(d.thinking, piece)
	} else {
		d.text = spliced(d.text, piece)
	}
	return true
}

func draftKey(run string, step, attempt int) string { return fmt.Sprint(run, ".", step, ".", attempt) }

// end takes note of what will not be written any further.
func (d *draft) end(item feed.Item) {
	if d.over == nil {
		d.over = map[string]bool{}
	}
	switch it := item.(type) {
	case feed.AssistantMessage:
		d.over[draftKey(it.Run, it.Step, it.Attempt)] = true
	case feed.Completed, feed.Error:
		d.over[it.Header().Run] = true
	}
}

// spliced puts a piece where it belongs: pieces may come twice, and the first may hold
// what was said before we came.
func spliced(text string, piece feed.TextDelta) string {
	if piece.Offset > len(text) {
		return text // something is missing; the whole answer will follow
	}
	return text[:piece.Offset] + piece.Text
}

// draw sends what changed in the draft: the blocks that are new, and the last one.
func (s *stream) draw() error {
	d := &s.draft
	if !d.dirty {
		return nil
	}
	d.dirty = false
	if d.blocks == nil {
		made, err := s.pages.piece("live", map[string]any{"Agent": s.talk.Agent})
		if err != nil {
			return err
		}
		if err := s.put(fragment{ID: "live", HTML: made}); err != nil {
			return err
		}
		d.blocks = []string{}
	}
	if d.thinking != "" && d.text == "" {
		if err := s.think(); err != nil {
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

// think sends the end of the reasoning. It is folded, as it will be in the answer, so
// that nothing moves when the answer comes.
func (s *stream) think() error {
	d := &s.draft
	if !d.thought {
		d.thought = true
		if err := s.put(fragment{ID: "live-think", In: "live-body", HTML: `<details class="think" id="live-think"><summary>Thinking</summary></details>`}); err != nil {
			return err
		}
	}
	tail := strings.ToValidUTF8(d.thinking[max(0, len(d.thinking)-shownThinking):], "")
	return s.put(fragment{ID: "live-thinking", In: "live-think", HTML: `<p id="live-thinking" class="thinking">` + html.EscapeString(markdown.Clean(tail)) + "</p>"})
}
