package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/search"
)

func testThreads(t *testing.T, f *fixture) {
	for i := range 5 {
		f.guest(chat.ThreadID(fmt.Sprintf("cli:p%d:t%d@main", i%2, i)), heard("x"))
	}
	f.guest("api:p0:t@helper", heard("x"))
	var all []chat.ThreadID
	filter := store.ThreadFilter{Limit: 2}
	for {
		page := must[[]journal.Thread](t)(f.s.Threads(f.ctx(), filter))
		if len(page) == 0 {
			break
		}
		for _, row := range page {
			all = append(all, row.ID)
		}
		last := page[len(page)-1]
		filter.Before = &store.Cursor{LastActive: last.LastActive, ID: last.ID}
	}
	f.equal("threads", len(all), 6)
	f.equal("newest", all[0], chat.ThreadID("api:p0:t@helper"))
	pinned, archived := "pinned", "archived"
	f.ok(f.s.SetThread(f.ctx(), all[0], store.ThreadChange{Listing: &pinned}))
	f.ok(f.s.SetThread(f.ctx(), all[1], store.ThreadChange{Listing: &archived}))
	f.equal("listing", f.row(all[0]).Listing, "pinned")
	for name, c := range map[string]struct {
		filter store.ThreadFilter
		want   int
	}{
		"pinned": {store.ThreadFilter{Listing: "pinned"}, 1}, "archived": {store.ThreadFilter{Listing: "archived"}, 1}, "unarchived": {store.ThreadFilter{Listing: store.Unarchived}, 5},
		"agent": {store.ThreadFilter{Agent: "helper"}, 1}, "transport": {store.ThreadFilter{Transport: "cli"}, 5},
		"place": {store.ThreadFilter{Place: "p1"}, 2}, "status": {store.ThreadFilter{Status: chat.Idle}, 6},
		"none": {store.ThreadFilter{Status: chat.Running}, 0}, "two": {store.ThreadFilter{Transport: "cli", Place: "p0"}, 3},
	} {
		if got := must[[]journal.Thread](t)(f.s.Threads(f.ctx(), c.filter)); len(got) != c.want {
			t.Errorf("%s: %d threads, want %d", name, len(got), c.want)
		}
	}
}

func testThreadsNamed(t *testing.T, f *fixture) {
	for _, id := range []chat.ThreadID{"cli:home:abc@main", "cli:home:abcd@main", "api:home:a%c@main", "cli:abc:other@main"} {
		f.guest(id)
	}
	for name, want := range map[string]int{"ab": 2, "abc": 1, "abcd": 1, "a%": 1, "_": 0, "other": 1, "none": 0} {
		if got := must[[]journal.Thread](t)(f.s.ThreadsNamed(f.ctx(), name)); len(got) != want {
			t.Errorf("%q: %d threads, want %d", name, len(got), want)
		}
	}
}

func testTitles(t *testing.T, f *fixture) {
	f.guest(thread, heard("not a prompt"))
	f.equal("title", f.row(thread).Title, "")
	f.guest(thread, prompt("  fix the\n\n build "+strings.Repeat("ä", 100)))
	f.equal("title", f.row(thread).Title, "fix the build "+strings.Repeat("ä", 66))
	f.guest(thread, prompt("another"))
	f.equal("first prompt wins", f.row(thread).Title[:13], "fix the build")
	title, dir := "mine", "/elsewhere"
	f.ok(f.s.SetThread(f.ctx(), thread, store.ThreadChange{Title: &title}))
	f.ok(f.s.SetThread(f.ctx(), thread, store.ThreadChange{Dir: &dir}))
	f.equal("title", f.row(thread).Title, "mine")
	f.equal("dir", f.row(thread).Dir, "/elsewhere")
	f.wants(f.s.SetThread(f.ctx(), absent, store.ThreadChange{}), journal.ErrUnknown)
}

func testPages(t *testing.T, f *fixture) {
	row := f.owner(thread)
	const all = 620
	batch := make([]chat.Event, all)
	for i := range batch {
		batch[i] = noted("short")
		if i > 500 && i%5 == 0 {
			batch[i] = noted(strings.Repeat("long", 25_000)) // several pages by their bytes
		}
	}
	f.owns(row, batch...)
	page := must[[]chat.Event](t)(f.s.Events(f.ctx(), thread, 0, 0))
	f.equal("a page", len(page), 500)
	page = must[[]chat.Event](t)(f.s.Events(f.ctx(), thread, 0, 100000))
	f.equal("never more", len(page), 500)
	page = must[[]chat.Event](t)(f.s.Events(f.ctx(), thread, 615, 3))
	f.equal("limit", len(page), 3)
	f.equal("behind", page[0].Seq, int64(616))
	f.equal("all", len(f.events(thread)), all)
	n := 0
	for e, err := range f.s.AllEvents(f.ctx(), thread, 100) {
		f.ok(err)
		// A commit while the reader is here must not wait for it.
		if n == 0 {
			f.owns(row, noted("meanwhile"))
		}
		n++
		f.equal("in order", e.Seq, int64(100+n))
		if n == 450 {
			break
		}
	}
}

func testSnapshots(t *testing.T, f *fixture) {
	f.guest(thread, heard("a"), heard("b"), heard("c"))
	_, err := f.s.Snapshot(f.ctx(), thread, "v1")
	f.wants(err, journal.ErrUnknown)
	save := func(seq int64, state string) error {
		return f.s.SaveSnapshot(f.ctx(), journal.Snapshot{Thread: thread, Seq: seq, Codec: "v1", State: []byte(state)})
	}
	f.ok(save(2, "two"))
	f.ok(save(1, "one")) // older: ignored
	got := must[journal.Snapshot](t)(f.s.Snapshot(f.ctx(), thread, "v1"))
	if want := (journal.Snapshot{Thread: thread, Seq: 2, Codec: "v1", State: []byte("two")}); !reflect.DeepEqual(got, want) {
		t.Fatalf("snapshot %+v", got)
	}
	f.ok(save(3, "three"))
	f.equal("latest", string(must[journal.Snapshot](t)(f.s.Snapshot(f.ctx(), thread, "v1")).State), "three")
	_, err = f.s.Snapshot(f.ctx(), thread, "v2")
	f.wants(err, journal.ErrUnknown)
	if save(4, "of the future") == nil {
		t.Fatal("a snapshot of events that are not there")
	}
	f.wants(f.s.SaveSnapshot(f.ctx(), journal.Snapshot{Thread: absent, Seq: 1, Codec: "v1"}), journal.ErrUnknown)
}

func testBlobs(t *testing.T, f *fixture) {
	for name, data := range map[string][]byte{
		"empty": {}, "small": []byte("bytes\x00\xff"), "edge": bytes.Repeat([]byte("e"), 64<<10), "large": bytes.Repeat([]byte("large"), 100_000),
	} {
		hash := must[string](t)(f.s.PutBlob(f.ctx(), data))
		sum := sha256.Sum256(data)
		f.equal("hash of "+name, hash, hex.EncodeToString(sum[:]))
		f.equal("again", must[string](t)(f.s.PutBlob(f.ctx(), data)), hash)
		if !bytes.Equal(must[[]byte](t)(f.s.Blob(f.ctx(), hash)), data) {
			t.Errorf("%s came back different", name)
		}
	}
	_, err := f.s.Blob(f.ctx(), strings.Repeat("0", 64))
	f.wants(err, journal.ErrUnknown)
	_, err = f.s.Blob(f.ctx(), "../../etc/passwd")
	f.wants(err, journal.ErrUnknown)
}

func testBlobReferences(t *testing.T, f *fixture) {
	row := f.owner(thread)
	put := func(text string) string { return must[string](t)(f.s.PutBlob(f.ctx(), []byte(text))) }
	large := bytes.Repeat([]byte("x"), 100_000)
	sum := sha256.Sum256(large)
	largeHash := hex.EncodeToString(sum[:])
	image, file, nested, head := put("image"), put("file"), put("nested"), put("head")
	loose, looseLarge := put("loose"), put(strings.Repeat("y", 100_000))
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Blobs: []chat.Blob{{Hash: largeHash, Data: large}},
		Events: []chat.Event{
			{Body: chat.ToolRan{Blocks: chat.Blocks{chat.Image{Blob: image}, chat.Image{Blob: image}}}},
			{Body: chat.Said{Blocks: chat.Blocks{chat.ToolResult{Blocks: chat.Blocks{chat.Image{Blob: nested}}}}}},
			{Body: chat.RunStarted{Run: "r", Head: head}},
			{Body: chat.Received{Blocks: chat.Blocks{chat.File{Blob: file, Name: "f"}}}},
			{Body: chat.Imported{Blob: largeHash}},
		}})
	f.ok(err)
	f.equal("too young to be swept", must[int](t)(f.s.SweepBlobs(f.ctx(), blobs.SweepAfter)), 0)
	f.equal("swept", must[int](t)(f.s.SweepBlobs(f.ctx(), -time.Hour)), 2)
	for _, hash := range []string{image, file, nested, head, largeHash} {
		must[[]byte](t)(f.s.Blob(f.ctx(), hash))
	}
	for _, hash := range []string{loose, looseLarge} {
		_, err := f.s.Blob(f.ctx(), hash)
		f.wants(err, journal.ErrUnknown)
	}
	f.equal("put again", put(strings.Repeat("y", 100_000)), looseLarge)
	must[[]byte](t)(f.s.Blob(f.ctx(), looseLarge))
}

func testReaders(t *testing.T, f *fixture) {
	f.guest(thread, heard("a"), heard("b"))
	f.guest(other)
	f.equal("not begun", must[int64](t)(f.s.Reader(f.ctx(), "mirror", thread)), int64(0))
	lags := must[[]store.Lag](t)(f.s.Behind(f.ctx(), "mirror", 10))
	if want := []store.Lag{{Thread: thread, Seq: 0, Next: 3}}; !reflect.DeepEqual(lags, want) {
		t.Fatalf("behind: %+v", lags)
	}
	f.ok(f.s.MoveReader(f.ctx(), "mirror", thread, 2))
	f.ok(f.s.MoveReader(f.ctx(), "mirror", thread, 1)) // never moves back
	f.equal("place", must[int64](t)(f.s.Reader(f.ctx(), "mirror", thread)), int64(2))
	f.equal("behind", len(must[[]store.Lag](t)(f.s.Behind(f.ctx(), "mirror", 10))), 0)
	f.equal("another reader", len(must[[]store.Lag](t)(f.s.Behind(f.ctx(), "index", 10))), 1)
	f.wants(f.s.MoveReader(f.ctx(), "mirror", absent, 1), journal.ErrUnknown)
}

func testAgents(t *testing.T, f *fixture) {
	a := store.Agent{Name: "main", Model: "m/1", Profile: "ask", Config: json.RawMessage(`{"a":1}`), Status: "active"}
	f.ok(f.s.PutAgent(f.ctx(), a))
	made := must[store.Agent](t)(f.s.Agent(f.ctx(), "main")).Created
	a.Model, a.Created = "m/2", made.Add(time.Hour)
	f.ok(f.s.PutAgent(f.ctx(), a))
	got := must[store.Agent](t)(f.s.Agent(f.ctx(), "main"))
	a.Created = made
	if !reflect.DeepEqual(got, a) {
		t.Fatalf("agent %+v, want %+v", got, a)
	}
	f.ok(f.s.PutAgent(f.ctx(), store.Agent{Name: "another"}))
	f.equal("agents", len(must[[]store.Agent](t)(f.s.Agents(f.ctx()))), 2)
	f.ok(f.s.DeleteAgent(f.ctx(), "main"))
	f.wants(f.s.DeleteAgent(f.ctx(), "main"), journal.ErrUnknown)
	_, err := f.s.Agent(f.ctx(), "main")
	f.wants(err, journal.ErrUnknown)
	for _, bad := range []store.Agent{{Name: "No Such"}, {Name: "main", Config: json.RawMessage(`{`)}} {
		if f.s.PutAgent(f.ctx(), bad) == nil {
			t.Errorf("%+v went through", bad)
		}
	}
}

func testSettings(t *testing.T, f *fixture) {
	_, err := f.s.Setting(f.ctx(), "agent:main", "model")
	f.wants(err, journal.ErrUnknown)
	f.ok(f.s.SetSetting(f.ctx(), "agent:main", "model", "m/1"))
	f.ok(f.s.SetSetting(f.ctx(), "agent:main", "model", "m/2"))
	f.equal("value", must[string](t)(f.s.Setting(f.ctx(), "agent:main", "model")), "m/2")
	_, err = f.s.Setting(f.ctx(), "agent:other", "model")
	f.wants(err, journal.ErrUnknown)
	f.ok(f.s.SetSetting(f.ctx(), "agent:main", "model", ""))
	_, err = f.s.Setting(f.ctx(), "agent:main", "model")
	f.wants(err, journal.ErrUnknown)
}

func (f *fixture) finds(query string, o search.Options) []int64 {
	f.t.Helper()
	hits, err := f.s.Search(f.ctx(), query, o)
	f.ok(err)
	var seqs []int64
	for _, h := range hits {
		seqs = append(seqs, h.Seq)
	}
	return seqs
}

func testSearch(t *testing.T, f *fixture) {
	row := f.owner(thread)
	f.guest(thread, chat.Event{Body: chat.Received{From: chat.Participant{ID: "u", Name: "Ada"}, Blocks: chat.TextBlocks("Where is the Größe of the parser?")}})
	f.owns(row,
		chat.Event{Body: chat.Said{Blocks: chat.TextBlocks("The parser lives in parse.go")}},
		chat.Event{Body: chat.ToolRan{Name: "read", Blocks: chat.TextBlocks("func parse() " + strings.Repeat("x ", 10_000) + "unreachable")}},
		chat.Event{Body: chat.Said{Blocks: chat.TextBlocks("parser half said"), Error: &chat.Failure{Kind: "overloaded"}}},
		noted("parser note"))
	f.guest(other, prompt("a parser elsewhere"))
	f.equal("indexed", must[int](t)(f.s.IndexNew(f.ctx())), 6)
	f.equal("nothing new", must[int](t)(f.s.IndexNew(f.ctx())), 0)
	f.equal("hits", len(f.finds("parser", search.Options{})), 3)
	f.equal("in one thread", len(f.finds("parser", search.Options{Thread: thread})), 2)
	f.equal("of nobody", len(f.finds("parser", search.Options{Agent: "nobody"})), 0)
	f.equal("limit", len(f.finds("parser", search.Options{Limit: 1})), 1)
	f.equal("accents and case", len(f.finds("GROSSE grosse größe", search.Options{})), 0)
	f.equal("umlaut", len(f.finds("große", search.Options{})), 1)
	f.equal("beginning of a word", len(f.finds("pars", search.Options{})), 4)
	f.equal("phrase", len(f.finds(`"lives in"`, search.Options{})), 1)
	f.equal("no such phrase", len(f.finds(`"in lives"`, search.Options{})), 0)
	f.equal("beyond the bound", len(f.finds("unreachable", search.Options{})), 0)
	hits := must[[]search.Hit](t)(f.s.Search(f.ctx(), "größe", search.Options{MarkStart: "[", MarkEnd: "]"}))
	h := hits[0]
	if h.Who != "Ada" || h.Thread != thread || h.Seq != 1 || h.Kind != chat.KindReceived || !strings.Contains(h.Snippet, "[Größe]") || h.At.IsZero() {
		t.Fatalf("hit %+v", h)
	}
	f.guest(thread, chat.Event{Body: chat.Edited{Seq: 1, Blocks: chat.TextBlocks("Where is the lexer?")}})
	f.guest(other, chat.Event{Body: chat.Deleted{Seq: 1}})
	must[int](t)(f.s.IndexNew(f.ctx()))
	f.equal("edited away", len(f.finds("größe", search.Options{})), 0)
	f.equal("edited in", len(f.finds("lexer", search.Options{})), 1)
	f.equal("deleted", len(f.finds("elsewhere", search.Options{})), 0)
}

// testSearchNewest checks that for frequent words the newest events come
// first, best match on top, and that paging shows each once.
func testSearchNewest(t *testing.T, f *fixture) {
	old := f.guest(other, heard("needle needle needle needle")).Events[0].At // the best of all, and the oldest
	for f.guest(other, heard("straw")).Events[0].At.Sub(old) < 2*time.Millisecond {
		continue
	}
	const many = 1200
	events := make([]chat.Event, many)
	for i := range events {
		events[i] = heard("a needle, or needles, in the hay that lies about")
	}
	events[many-1] = heard("needle needle needle")
	f.guest(thread, events...)
	must[int](t)(f.s.IndexNew(f.ctx()))
	seen := map[chat.ThreadID]map[int64]bool{thread: {}, other: {}}
	for skip := 0; ; skip += 70 {
		hits := must[[]search.Hit](t)(f.s.Search(f.ctx(), "needl", search.Options{Limit: 70, Skip: skip}))
		for i, h := range hits {
			if seen[h.Thread][h.Seq] {
				t.Fatalf("%s %d was there before %d", h.Thread, h.Seq, skip)
			}
			seen[h.Thread][h.Seq] = true
			if h.Thread == other && skip+i < 1000 {
				t.Fatalf("the oldest is number %d", skip+i)
			}
		}
		if skip == 0 && (hits[0].Thread != thread || !seen[thread][many]) {
			t.Fatalf("the best of the newest is not among the first")
		}
		if len(hits) < 70 {
			break
		}
	}
	f.equal("found", len(seen[thread])+len(seen[other]), many+1)
	f.equal("two words", len(f.finds("hay needles", search.Options{Limit: 10})), 10)
	f.equal("in the other thread", len(f.finds("needle", search.Options{Thread: other})), 1)
	f.equal("by how its name begins", len(f.finds("needle", search.Options{Prefix: string(other)})), 1)
}

// testEnds checks the last end of each thread and the sum of all its ends,
// including those written by anybody since the last query.
func testEnds(t *testing.T, f *fixture) {
	row := f.owner(thread)
	ended := func(run string, why chat.Reason) chat.Event {
		return chat.Event{Run: run, Body: chat.RunEnded{Run: run, Reason: why, Usage: chat.Usage{Input: 10}, Cost: 5}}
	}
	asked := []chat.ThreadID{thread, other, "cli:home:none@main"}
	second := f.open()
	check := func(runs int, last string, why chat.Reason) {
		t.Helper()
		for _, s := range []Store{f.s, second, f.s} {
			lasts := must[map[chat.ThreadID]chat.RunEnded](t)(s.LastEnds(f.ctx(), asked))
			if len(lasts) != 1 || lasts[thread].Run != last || lasts[thread].Reason != why {
				t.Fatalf("last ends: %+v", lasts)
			}
			all := must[map[chat.ThreadID]store.Ends](t)(s.EndsOf(f.ctx(), asked))
			if sum := all[thread]; len(all) != 1 || sum.Runs != runs || sum.Last.Run != last || sum.Usage.Input != 10*runs || sum.Cost != int64(5*runs) {
				t.Fatalf("ends: %+v", all)
			}
		}
	}
	f.owns(row, ended("r1", chat.EndFailed), ended("r2", chat.EndDone))
	f.guest(other, heard("nothing ran here"))
	check(2, "r2", chat.EndDone)
	f.owns(row, noted("x"), ended("r3", chat.EndFailed))
	check(3, "r3", chat.EndFailed)
}

func testSearchSyntax(t *testing.T, f *fixture) {
	f.guest(thread, heard(`it's a "quoted" C++ AND NEAR thing: foo-bar(baz)*`))
	must[int](t)(f.s.IndexNew(f.ctx()))
	for _, q := range []string{"", " ", `"`, `""`, `"""`, "*", "-", "AND", "OR OR", "NOT", "NEAR(", "a:b", "text:", "{x}", "^a", "a AND", "(", ")",
		"c++", "'", ";", "\x00", "\xff", "foo-bar", `"foo bar`, strings.Repeat("w ", 500), "col : 1 + 2"} {
		if _, err := f.s.Search(f.ctx(), q, search.Options{}); err != nil {
			t.Errorf("search %q: %v", q, err)
		}
	}
	f.equal("operators are words", len(f.finds("AND NEAR", search.Options{})), 1)
	f.equal("punctuation", len(f.finds("foo-bar(baz)*", search.Options{})), 1)
	f.equal("quotes", len(f.finds(`it's "quoted" c++`, search.Options{})), 1)
}
