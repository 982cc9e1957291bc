package memories

import (
	"context"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/memory"
	"chorus/internal/operation"
	"chorus/internal/service"
	"chorus/internal/store/search"
	"chorus/internal/tool/remember"
)

// RecallFor searches memory and past conversations for an agent that works in a thread. It finds what was said in the
// same place, for everybody who talks there. If only one person talks there, it also finds their conversations
// elsewhere, and for whoever runs this home everything. Conversations at hand come last, because the model sees most of
// them already.
func (o *Handler) RecallFor(ctx context.Context, thread chat.ThreadID, senders []chat.Principal, words string, limit int) ([]remember.Hit, error) {
	prefixes := []string{thread.Transport() + ":" + thread.Place() + ":"}
	if who := onePerson(senders); who.Owns() {
		prefixes = []string{""}
	} else if who.ID != "" {
		prefixes = append(prefixes, operation.Caller{Principal: who}.OwnPrefix())
	}
	hits, err := o.inMemory(ctx, memory.Of(thread), memory.File.Tool, words)
	if err != nil {
		return nil, err
	}
	said, err := o.inConversations(ctx, prefixes, words, limit)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(said, func(a, b search.Hit) int {
		switch {
		case (a.Thread == thread) == (b.Thread == thread):
			return 0
		case a.Thread == thread:
			return 1
		}
		return -1
	})
	for _, h := range said {
		hits = append(hits, remember.Hit{Where: "conversation " + h.Thread.Thread(), Who: h.Who, At: h.At, Text: o.app.Snippet(h.Snippet)})
	}
	return hits[:min(len(hits), limit)], nil
}

// onePerson returns the only person on whose words something is asked; nobody if there are several.
func onePerson(senders []chat.Principal) chat.Principal {
	return service.CallerOf(senders, []operation.Scope{operation.Read}, func(chat.Principal) bool { return false }).Principal
}

// inConversations finds events of threads with an id prefix, the best first.
func (o *Handler) inConversations(ctx context.Context, prefixes []string, words string, limit int) (out []search.Hit, err error) {
	if _, err := o.app.DB.IndexNew(ctx); err != nil {
		return nil, err
	}
	for _, prefix := range prefixes {
		found, err := o.app.DB.Search(ctx, words, search.Options{Prefix: prefix, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			if row, err := o.app.DB.Thread(ctx, h.Thread); err != nil || row.Gone() {
				continue // it was removed
			}
			if !slices.ContainsFunc(out, func(have search.Hit) bool { return have.Thread == h.Thread && have.Seq == h.Seq }) {
				out = append(out, h)
			}
		}
	}
	return out, nil
}

// inMemory finds the lines of memory files that contain every word; name formats a file's name for the answer.
func (o *Handler) inMemory(ctx context.Context, files []memory.File, name func(memory.File) string, words string) (out []remember.Hit, err error) {
	wanted := strings.Fields(strings.ToLower(strings.ReplaceAll(words, `"`, " ")))
	if len(wanted) == 0 {
		return nil, nil
	}
	for _, f := range files {
		c, err := o.app.Setup.Memory.Read(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, part := range c.Parts() {
			for _, line := range memory.Lines(part.Text) {
				if hasAll(line, wanted) {
					out = append(out, remember.Hit{Where: name(f), Who: part.Who, At: c.At, Text: o.app.Snippet(line)})
				}
			}
		}
	}
	return out, nil
}
