package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store/blobs"
)

// draft is an event prepared in its caller's goroutine, so that the writer only needs to write.
type draft struct {
	event chat.Event
	kind  string
	body  string
	blobs []string // hashes its body refers to
}

// intent is a prepared commit.
type intent struct {
	journal.Commit
	drafts []draft
	blobs  []blobs.Row
	beside []*intent

	fetched map[string][]byte // bytes from the storage that forgetting needs
	left    []blobs.Leaving   // bytes in the storage whose rows were removed

	owned, leaves *ownedThread // on a server: what the owner knows of the thread's row, and what it will know; nil: nothing
}

// prepare checks what can be checked without the database, encodes the bodies, and writes large
// blobs into files or the storage. Those must be safe before a row names them.
func (db *DB) prepare(ctx context.Context, c journal.Commit) (*intent, error) {
	if err := allowed(c); err != nil {
		return nil, fmt.Errorf("commit to thread %s: %w", c.Thread, err)
	}
	in := &intent{Commit: c, drafts: make([]draft, len(c.Events))}
	for i, e := range c.Events {
		d, err := newDraft(c.Thread, e)
		if err != nil {
			return nil, fmt.Errorf("commit to thread %s: %w", c.Thread, err)
		}
		in.drafts[i] = d
	}
	for _, b := range c.Blobs {
		row, err := db.KeepBlob(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("commit to thread %s: %w", c.Thread, err)
		}
		in.blobs = append(in.blobs, row)
	}
	for _, other := range c.Beside {
		if other.Epoch != 0 || other.Thread == c.Thread {
			return nil, fmt.Errorf("commit to thread %s: what is written beside it is a guest's, on another thread", c.Thread)
		}
		guest, err := db.prepare(ctx, other)
		if err != nil {
			return nil, err
		}
		in.beside = append(in.beside, guest)
	}
	return in, nil
}

// allowed restricts guests to what guests may do.
func allowed(c journal.Commit) error {
	if c.Thread == "" {
		return errors.New("no thread named")
	}
	for _, e := range c.Events {
		if e.Body == nil {
			return errors.New("an event has no body")
		}
	}
	if c.Epoch != 0 {
		if c.Create != nil {
			return errors.New("only a guest's commit creates a thread")
		}
		return nil
	}
	if c.Status != "" || len(c.Money) > 0 {
		return errors.New("status and money are the owner's to write")
	}
	for _, e := range c.Events {
		if !journal.IsGuest(e.Body) {
			return fmt.Errorf("%s is the owner's to write", e.Body.Kind())
		}
	}
	for _, a := range c.Approvals {
		if a.New != nil && !asksDuring(c.Events, a.New.ID) {
			return errors.New("a new approval is the owner's to write")
		}
	}
	return nil
}

// asksDuring reports whether the approval is one that a running call waits for.
func asksDuring(events []chat.Event, id string) bool {
	return slices.ContainsFunc(events, func(e chat.Event) bool {
		asked, ok := e.Body.(chat.ApprovalAsked)
		return ok && asked.During && asked.ID == id
	})
}

func newDraft(thread chat.ThreadID, e chat.Event) (draft, error) {
	e.Thread = thread
	kind := e.Body.Kind()
	body, err := chat.EncodeBody(e.Body)
	if err != nil {
		return draft{}, err
	}
	if rewritten(e.Body, body) {
		if e.Body, err = chat.DecodeBody(kind, body); err != nil {
			return draft{}, err
		}
	}
	return draft{event: e, kind: string(kind), body: string(body), blobs: blobRefs(e.Body)}, nil
}

// rewritten reports whether the JSON may differ from the body: arguments of calls
// are compacted or quoted, and broken UTF-8 is replaced. Rendering from memory
// must give the same as rendering from the journal.
func rewritten(body chat.Body, encoded []byte) bool {
	if bytes.Contains(encoded, []byte(`\ufffd`)) {
		return true
	}
	said, ok := body.(chat.Said)
	if !ok {
		return false
	}
	var compact bytes.Buffer
	for _, call := range said.Blocks.Calls() {
		compact.Reset()
		if json.Compact(&compact, call.Args) != nil || !bytes.Equal(compact.Bytes(), call.Args) || !bytes.Contains(encoded, call.Args) {
			return true
		}
	}
	return false
}

// blobRefs lists the blobs that a body refers to, each once.
func blobRefs(body chat.Body) []string {
	var refs refList
	switch b := body.(type) {
	case chat.Received:
		refs.blocks(b.Blocks)
	case chat.Edited:
		refs.blocks(b.Blocks)
	case chat.Steered:
		refs.blocks(b.Blocks)
	case chat.Said:
		refs.blocks(b.Blocks)
	case chat.ToolRan:
		refs.blocks(b.Blocks)
	case chat.Imported:
		refs.add(b.Blob)
	case chat.RunStarted:
		refs.add(b.Head)
	}
	return refs
}

type refList []string

func (r *refList) add(hash string) {
	if hash == "" {
		return
	}
	if slices.Contains(*r, hash) {
		return
	}
	*r = append(*r, hash)
}

func (r *refList) blocks(blocks chat.Blocks) {
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Image:
			r.add(b.Blob)
		case chat.File:
			r.add(b.Blob)
		case chat.ToolResult:
			r.blocks(b.Blocks)
		}
	}
}

// allLeft returns the bytes in the storage whose rows were removed by
// the intent and its commits on other threads.
func (in *intent) allLeft() []blobs.Leaving {
	left := in.left
	for _, other := range in.beside {
		left = append(left, other.left...)
	}
	return left
}
