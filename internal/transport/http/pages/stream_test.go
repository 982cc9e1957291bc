package pages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/feed"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func newPages(t testing.TB) *Pages {
	t.Helper()
	p, err := New(Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fakeWriter collects what a stream sends.
type fakeWriter struct {
	bytes.Buffer
	header http.Header
}

func (w *fakeWriter) Header() http.Header              { return w.header }
func (w *fakeWriter) WriteHeader(int)                  {}
func (w *fakeWriter) Flush()                           {}
func (w *fakeWriter) SetWriteDeadline(time.Time) error { return nil }

// fakeDOM does what live.js does in a browser, with one element.
type fakeDOM struct {
	html string
	seen int64
}

// find returns where the element with an id begins and ends.
func (d *fakeDOM) find(id string) (from, to int, ok bool) {
	at := strings.Index(d.html, ` id="`+id+`"`)
	if at < 0 {
		return 0, 0, false
	}
	from = strings.LastIndexByte(d.html[:at], '<')
	tag := d.html[from+1 : from+strings.IndexAny(d.html[from:], " >")]
	depth := 0
	for i := from; i < len(d.html); i++ {
		switch rest := d.html[i:]; {
		case strings.HasPrefix(rest, "<"+tag+" "), strings.HasPrefix(rest, "<"+tag+">"):
			depth++
		case strings.HasPrefix(rest, "</"+tag+">"):
			if depth--; depth == 0 {
				return from, i + len(tag) + 3, true
			}
		}
	}
	return 0, 0, false
}

func (d *fakeDOM) replace(id, with string) bool {
	from, to, ok := d.find(id)
	if ok {
		d.html = d.html[:from] + with + d.html[to:]
	}
	return ok
}

// put does what live.js does with a fragment.
func (d *fakeDOM) put(f fragment) {
	switch {
	case f.HTML == "":
		d.replace(f.ID, "")
	case d.replace(f.ID, f.HTML):
	case f.Replaces != "" && d.replace(f.Replaces, f.HTML):
	case f.In != "":
		if from, to, ok := d.find(f.In); ok {
			end := from + strings.LastIndex(d.html[from:to], "</")
			d.html = d.html[:end] + f.HTML + d.html[end:]
		}
	default:
		if owner, _ := (row{ID: f.ID}).owner(); owner != "" {
			return
		}
		if from, _, ok := d.find("live"); ok {
			d.html = d.html[:from] + f.HTML + d.html[from:]
		} else {
			d.html += f.HTML
		}
	}
	if f.Replaces != "" && f.Replaces != f.ID {
		d.replace(f.Replaces, "")
	}
	if from, _, ok := d.find(f.ID); ok && strings.Contains(f.HTML, `class="answer `) { // what was asked is folded
		if card := strings.LastIndex(d.html[:from], "<section "); card >= 0 {
			d.html = d.html[:card] + strings.Replace(d.html[card:], `<details class="about" open>`, `<details class="about">`, 1)
		}
	}
}

// read applies a stream, as far as it came.
func (d *fakeDOM) read(t testing.TB, stream string) {
	t.Helper()
	event := ""
	for lines := bufio.NewScanner(strings.NewReader(stream)); lines.Scan(); {
		switch name, data, _ := strings.Cut(lines.Text(), ": "); {
		case name == "event":
			event = data
		case name == "data" && event == "put":
			var f fragment
			if err := json.Unmarshal([]byte(data), &f); err != nil {
				t.Fatal(err)
			}
			d.put(f)
		case name == "data" && event == "seen":
			n, err := strconv.ParseInt(data, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			d.seen = n
		}
	}
}

// streamed is what a page receives for items; the draft is sent after each delta.
func streamed(t testing.TB, p *Pages, tk view, items []feed.Item) string {
	t.Helper()
	w := &fakeWriter{header: http.Header{}}
	s := &stream{pages: p, w: w, control: http.NewResponseController(w), view: tk}
	for _, item := range items {
		if s.draft.add(item) {
			if err := s.sendDraft(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		s.draft.end(item)
		if err := s.item(item); err != nil {
			t.Fatal(err)
		}
	}
	return w.String()
}

// script generates the items of a conversation.
type script struct {
	*rapid.T
	items []feed.Item
	seq   int64
	calls int
	step  int
}

func (s *script) next() feed.Head {
	s.seq++
	return feed.Head{Seq: s.seq, At: noon}
}

func (s *script) word() string {
	return rapid.SampledFrom([]string{"hello", "a **b** c", "- one\n\n-", "- one\n\n- two", "```go\nx := 1\n```\nafter", "<script>alert(1)</script>", "| a | b |\n|---|---|\n| 1 | 2 |", "ä€"}).Draw(s.T, "word")
}

// deltas adds the deltas of an answer.
func (s *script) deltas(text string, attempt int) {
	live := feed.Head{At: noon}
	if rapid.Bool().Draw(s.T, "thinks") {
		s.items = append(s.items, feed.ThinkingDelta{Head: live, Step: s.step, Attempt: attempt, Text: "hm <b>"})
	}
	for at := 0; at < len(text); {
		n := rapid.IntRange(1, len(text)-at).Draw(s.T, "piece")
		s.items = append(s.items, feed.TextDelta{Head: live, Step: s.step, Attempt: attempt, Offset: at, Text: text[at : at+n]})
		at += n
		if rapid.IntRange(0, 9).Draw(s.T, "steered") == 0 {
			s.items = append(s.items, feed.Steered{Head: s.next(), Text: "also", Mode: chat.Inject})
		}
	}
}

// run adds a run of a few steps, with calls and approvals.
func (s *script) run() {
	s.items = append(s.items, feed.UserMessage{Head: s.next(), Text: s.word(), Prompt: true}, feed.RunStarted{Head: s.next(), Model: "m"})
	for range rapid.IntRange(1, 3).Draw(s.T, "steps") {
		s.step++
		text := s.word()
		if rapid.IntRange(0, 3).Draw(s.T, "fails") == 0 {
			s.deltas("lost text", 1) // an attempt that failed
		}
		s.deltas(text, 2)
		if rapid.IntRange(0, 3).Draw(s.T, "silent") == 0 {
			text = ""
		}
		n := rapid.IntRange(0, 2).Draw(s.T, "calls")
		head := s.next()
		head.More = n > 0
		s.items = append(s.items, feed.AssistantMessage{Head: head, Step: s.step, Attempt: 2, Text: text, ToolCalls: n})
		late := func() { // a delta may arrive after the complete answer
			if rapid.IntRange(0, 3).Draw(s.T, "late") == 0 {
				s.items = append(s.items, feed.TextDelta{Head: feed.Head{At: noon}, Step: s.step, Attempt: 2, Text: "late"})
			}
		}
		var made []string
		for i := range n {
			s.calls++
			head.More = i < n-1
			made = append(made, fmt.Sprint("c", s.calls))
			s.items = append(s.items, feed.ToolCall{Head: head, CallID: made[i], Tool: "bash", ArgsJSON: `{"command":"ls"}`, Step: s.step})
		}
		if len(made) > 0 && rapid.Bool().Draw(s.T, "asks") {
			s.items = append(s.items, feed.ApprovalRequired{Head: s.next(), CallID: made[0], Tool: "bash", ApprovalID: "a" + made[0], Reason: "it changes things", Actions: []string{"rm <x>"}})
			if rapid.Bool().Draw(s.T, "interrupted") { // the call is skipped, and the approval is never answered
				s.items = append(s.items, feed.ToolResult{Head: s.next(), CallID: made[0], Tool: "bash", Result: feed.Result{Stderr: "skipped"}, Outcome: "skipped"})
				made = made[1:]
			} else {
				s.items = append(s.items, feed.ApprovalResolved{Head: s.next(), CallID: made[0], ApprovalID: "a" + made[0], Approved: true, By: "user:ada", Note: "<i>"})
			}
		}
		late()
		for _, call := range rapid.Permutation(made).Draw(s.T, "order") {
			if rapid.Bool().Draw(s.T, "progress") {
				s.items = append(s.items, feed.ToolProgress{Head: feed.Head{At: noon}, CallID: call, Message: "half"})
			}
			s.items = append(s.items, feed.ToolResult{Head: s.next(), CallID: call, Tool: "bash", Result: feed.Result{OK: true, Stdout: s.word()}, Outcome: "ran"})
		}
	}
	if rapid.Bool().Draw(s.T, "breaks") {
		s.items = append(s.items, feed.Error{Head: s.next(), Message: "broken", StopReason: "failed"})
	} else {
		s.items = append(s.items, feed.Completed{Head: s.next(), StopReason: "done", Iterations: 1})
	}
}

// after are the items that a page with a given number still has to receive, without the deltas
// of complete answers.
func after(items []feed.Item, seq int64) []feed.Item {
	var out []feed.Item
	for _, item := range items {
		if n := item.Header().Seq; n > seq || n == 0 && len(out) > 0 {
			out = append(out, item)
		}
	}
	return out
}

// A page that is loaded at any moment and then updated, with its connection cut anywhere, shows
// the same as a page that is loaded at the end.
func TestStreamedPageEqualsLoadedPage(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := &script{T: rt}
		for range rapid.IntRange(1, 2).Draw(rt, "runs") {
			s.run()
		}
		tk := view{Session: "s", Agent: "chorus", MayWrite: true, MayAnswer: true, MayFork: true}
		facts := slices.DeleteFunc(slices.Clone(s.items), func(it feed.Item) bool { return it.Header().Seq == 0 })
		whole, err := p.rows(tk, facts)
		if err != nil {
			rt.Fatal(err)
		}
		loaded := rapid.Int64Range(0, s.seq).Draw(rt, "loaded")
		first, err := p.rows(tk, slices.DeleteFunc(slices.Clone(facts), func(it feed.Item) bool { return it.Header().Seq > loaded }))
		if err != nil {
			rt.Fatal(err)
		}
		page := &fakeDOM{html: string(first), seen: loaded}
		for page.seen < s.seq {
			text := streamed(t, p, tk, after(s.items, page.seen))
			before := page.seen
			cut := rapid.IntRange(0, len(text)).Draw(rt, "cut")
			at := strings.LastIndex(text[:cut], "\n\n")
			if at < 0 || before == page.seen && rapid.IntRange(0, 4).Draw(rt, "uncut") == 0 {
				at = len(text) - 2
			}
			page.read(t, text[:at+2])
		}
		if between := regexp.MustCompile(`>\s+<`); between.ReplaceAllString(page.html, "><") != between.ReplaceAllString(string(whole), "><") {
			rt.Fatalf("loaded at %d of %d\nfollowed %s\nloaded   %s", loaded, s.seq, page.html, whole)
		}
	})
}

// A result whose call is on an earlier page is shown, and a call whose result is on a later page
// is not shown as running.
func TestPagesCutThroughCalls(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	head := feed.Head{Seq: 5, At: noon}
	late, err := p.rows(view{}, []feed.Item{feed.ToolResult{Head: head, CallID: "c1", Tool: "bash", Outcome: "ran", Result: feed.Result{OK: true, Stdout: "the output"}}})
	if err != nil || !strings.Contains(string(late), "the output") || !strings.Contains(string(late), "bash") || !strings.Contains(string(late), "done") {
		t.Errorf("%v %s", err, late)
	}
	early, err := p.rows(view{Past: true}, []feed.Item{feed.ToolCall{Head: head, CallID: "c1", Tool: "bash", ArgsJSON: "{}"}})
	if err != nil || strings.Contains(string(early), "running") {
		t.Errorf("%v %s", err, early)
	}
}

func TestSplicing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(1, 60, -1).Draw(rt, "text")
		got := ""
		for len(got) < len(text) {
			from := rapid.IntRange(0, len(got)).Draw(rt, "from") // deltas may arrive twice
			to := rapid.IntRange(len(got)+1, len(text)).Draw(rt, "to")
			got = spliceDelta(got, feed.TextDelta{Offset: from, Text: text[from:to]})
			if gap := spliceDelta(got, feed.TextDelta{Offset: len(got) + 1, Text: "x"}); gap != got {
				rt.Fatalf("a delta after a gap was added: %q", gap)
			}
		}
		if got != text {
			rt.Fatalf("%q is not %q", got, text)
		}
	})
}

// Deltas that arrive after the complete answer or after the run change nothing.
func TestLateDeltasAreDropped(t *testing.T) {
	t.Parallel()
	head := feed.Head{Run: "r1", At: noon}
	piece := func(run string, step, attempt int) feed.Item {
		return feed.TextDelta{Head: feed.Head{Run: run, At: noon}, Step: step, Attempt: attempt, Text: "x"}
	}
	var d draft
	d.end(feed.AssistantMessage{Head: head, Step: 1, Attempt: 1})
	for _, c := range []struct {
		item  feed.Item
		drawn bool
	}{{piece("r1", 1, 1), false}, {piece("r1", 1, 2), true}, {piece("r1", 2, 1), true}, {piece("r2", 1, 1), true}} {
		d.dirty = false
		if took := d.add(c.item); !took || d.dirty != c.drawn {
			t.Errorf("%+v: taken %v, drawn %v", c.item, took, d.dirty)
		}
	}
	d.end(feed.Completed{Head: head})
	d.dirty = false
	if d.add(piece("r1", 3, 1)); d.dirty {
		t.Error("a delta of a finished run was added")
	}
	if d.add(piece("r2", 1, 1)); !d.dirty {
		t.Error("a delta of the next run was dropped")
	}
	d.end(feed.AssistantMessage{Head: feed.Head{Run: "r2", At: noon}, Step: 1, Attempt: 1})
	d.end(feed.Completed{Head: feed.Head{Run: "r2", At: noon}})
	d.dirty = false
	if d.add(piece("r1", 3, 1)); d.dirty {
		t.Error("a delta of an older finished run was added")
	}
	if d.add(feed.Completed{Head: head}) {
		t.Error("the end of a run was taken for a delta")
	}
}
