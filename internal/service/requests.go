package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/redact"
	"chorus/internal/transcript"
)

// Limits of shown requests: a page of whole prompts would be many megabytes, so what a request shares with the one
// before is shortened to its beginning.
const (
	requestsPage = 5
	requestsMost = 20
	newText      = 32 << 10
	cachedText   = 400
)

// Requests implements the operation of that name. It folds the journal only up to the page, from the snapshot if that is
// earlier, and renders only the page.
func (o *Handler) Requests(ctx context.Context, by operation.Caller, q operations.EventRange) (operation.List[operations.Request], error) {
	out := operation.List[operations.Request]{Items: []operations.Request{}}
	row, err := o.Find(ctx, by, q.ID)
	if err != nil {
		return out, err
	}
	n := operation.Limit(q.Limit, requestsPage, requestsMost)
	seqs, err := o.app.DB.Seqs(ctx, row.ID, chat.KindAsked, q.After, q.Before, n+1)
	if err != nil {
		return out, err
	}
	if len(seqs) > n {
		if q.Before > 0 {
			seqs = seqs[1:]
			out.Next = strconv.FormatInt(seqs[0], 10)
		} else {
			seqs = seqs[:n]
			out.Next = strconv.FormatInt(seqs[n-1], 10)
		}
	}
	if len(seqs) == 0 {
		return out, nil
	}
	found, err := o.inspect(ctx, row, seqs)
	if err != nil {
		return out, err
	}
	out.Items = found
	return out, nil
}

// inspection rebuilds requests of one thread.
type inspection struct {
	o      *Handler
	ctx    context.Context
	hide   *redact.Redactor
	heads  map[string]*model.Head
	money  map[string][]ledger.Entry // by run
	before []*model.Message          // of the request before
}

// inspect rebuilds the requests with these numbers, in order.
func (o *Handler) inspect(ctx context.Context, row journal.Thread, seqs []int64) ([]operations.Request, error) {
	in := &inspection{o: o, ctx: ctx, hide: o.app.Logs.Redactor(), heads: map[string]*model.Head{}, money: map[string][]ledger.Entry{}}
	first := seqs[0]
	// The request before the page is rendered too: it shows what was already sent.
	prior, err := o.app.DB.Seqs(ctx, row.ID, chat.KindAsked, 0, first, 1)
	if err != nil {
		return nil, err
	}
	first = append(prior, first)[0]
	log, err := o.app.LogAt(ctx, row.ID, first-1)
	if err != nil {
		return nil, err
	}
	wanted := map[int64]bool{}
	for _, seq := range seqs {
		wanted[seq] = true
	}
	last := seqs[len(seqs)-1]
	out := []operations.Request{}
	for ev, err := range o.app.DB.AllEvents(ctx, row.ID, log.Seq()) {
		if err != nil {
			return nil, err
		}
		switch b := ev.Body.(type) {
		case chat.Asked:
			if ev.Seq > last {
				return out, nil
			}
			r := in.request(log, ev, b)
			if wanted[ev.Seq] {
				out = append(out, r)
			}
		case chat.Said:
			in.ended(out, b)
		case chat.RunEnded:
			if ev.Seq > last {
				return out, nil
			}
		}
		if err := log.Apply(ev); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ended records that an attempt failed and its error.
func (in *inspection) ended(out []operations.Request, b chat.Said) {
	if len(out) == 0 || b.Error == nil {
		return
	}
	if r := &out[len(out)-1]; r.Step == b.Step && r.Attempt == b.Attempt {
		r.Error = in.hide.Text(b.Error.Message)
	}
}

func (in *inspection) request(log *transcript.Log, ev chat.Event, b chat.Asked) operations.Request {
	r := operations.Request{Seq: ev.Seq, Run: ev.Run, Step: b.Step, Attempt: b.Attempt, At: ev.At, Model: b.Model, Digest: b.Digest, Expected: b.Cached,
		Tools: []string{}, Fragments: []operations.Fragment{}}
	r.Extra, _ = json.Marshal(map[string]any{"purpose": b.Purpose, "estimate": b.Tokens, "sees": b.Sees}) // words and numbers
	in.price(&r)
	head, err := in.head(log)
	var req model.Request
	if err == nil {
		req, err = rebuilt(log, head, b)
	}
	if err != nil {
		r.Error = in.hide.Text("it cannot be rebuilt: " + err.Error())
		in.before = nil
		return r
	}
	digest, err := req.Digest()
	r.Verified = err == nil && digest == b.Digest
	r.System = in.hide.Text(req.Head.System)
	for _, t := range req.Head.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	same := common(in.before, req.Messages)
	for i, m := range req.Messages {
		r.Fragments = append(r.Fragments, in.fragment(m, i < same))
	}
	in.before = req.Messages
	return r
}

func (in *inspection) head(log *transcript.Log) (*model.Head, error) {
	run := log.Run()
	if run == nil || run.Head == "" {
		return nil, fmt.Errorf("the run has no head")
	}
	if h := in.heads[run.Head]; h != nil {
		return h, nil
	}
	h, err := in.o.app.Setup.Head(run.Head)
	if err == nil {
		in.heads[run.Head] = h
	}
	return h, err
}

// price adds the cost of the call.
func (in *inspection) price(r *operations.Request) {
	entries, ok := in.money[r.Run]
	if !ok {
		entries, _ = in.o.app.DB.LedgerEntries(in.ctx, r.Run) // without it, the request is shown without a price
		in.money[r.Run] = entries
	}
	for _, e := range entries {
		if e.Step == r.Step && e.Attempt == r.Attempt {
			r.Usage, r.Cost = usageOf(e.Usage), feed.USD(e.Settled)
		}
	}
}

// common is how many messages both requests share at the start, byte for byte.
func common(before, now []*model.Message) int {
	for i, m := range now {
		if i >= len(before) {
			return i
		}
		if before[i] == m {
			continue
		}
		a, err := before[i].Fragment()
		b, err2 := m.Fragment()
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			return i
		}
	}
	return len(now)
}

func (in *inspection) fragment(m *model.Message, cached bool) operations.Fragment {
	most := newText
	if cached {
		most = cachedText
	}
	f := operations.Fragment{Role: string(m.Role), Tokens: transcript.MessageTokens(m), Cached: cached}
	var text strings.Builder
	for _, b := range m.Blocks {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		switch v := b.(type) {
		case chat.Text:
			text.WriteString(v.Text)
		case chat.Thinking:
			text.WriteString(cmp.Or(v.Text, "[thinking]"))
		case chat.ToolUse:
			fmt.Fprintf(&text, "%s %s", v.Name, v.Args)
		case chat.ToolResult:
			f.Role = "tool"
			text.WriteString(v.Blocks.Text())
		case chat.Image:
			fmt.Fprintf(&text, "[picture %s %s]", v.Name, v.MediaType)
		case chat.File:
			fmt.Fprintf(&text, "[file %s]", cmp.Or(v.Path, v.Name))
		}
	}
	f.Text = in.hide.Text(text.String())
	if len(f.Text) > most {
		for most > 0 && !utf8.RuneStart(f.Text[most]) {
			most--
		}
		f.Text = f.Text[:most] + "…"
	}
	return f
}
