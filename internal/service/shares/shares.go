// Package shares implements the operations on links that show a conversation to anyone who has them, without a token. A
// link can be revoked, and shows no files, thoughts or costs.
package shares

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/feed"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/redact"
	"chorus/internal/store"
)

// Sessions is what links need of sessions.
type Sessions interface {
	// Find returns a session that the caller sees.
	Find(ctx context.Context, by operation.Caller, id string) (journal.Thread, error)
	// MayKeep says why somebody who sees a session may not manage it.
	MayKeep(by operation.Caller, row journal.Thread) error
	Messages(context.Context, operation.Caller, operations.EventRange) (operation.List[feed.Item], error)
	// Record writes a line of the audit log.
	Record(ctx context.Context, by operation.Caller, agent, action, detail string) error
	// NameOf returns somebody's name, by their key.
	NameOf(ctx context.Context, key string) string
}

// Handler implements the operations on links.
type Handler struct {
	db       *store.DB
	redactor func() *redact.Redactor
	sessions Sessions
	address  string
}

// New returns a handler. The address is where people reach the pages of this server; "": it is not configured.
func New(db *store.DB, redactor func() *redact.Redactor, sessions Sessions, address string) *Handler {
	return &Handler{db, redactor, sessions, address}
}

var _ operations.Shares = (*Handler)(nil)

// share is a stored link, under the digest of its token: nobody who reads the database can use it. Every node reads it on each use, so revoking it takes effect at once.
type share struct {
	ID      string        `json:"id"`
	Thread  chat.ThreadID `json:"thread"`
	By      string        `json:"by"`
	Created time.Time     `json:"created"`
	Expires time.Time     `json:"expires,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
}

// memoKind is the kind of the memos of links.
const memoKind = "share"

// pagePath is where the pages of links are; the token follows.
const pagePath = "/shared/"

func (s share) open(now time.Time) bool {
	return s.Ended.IsZero() && (s.Expires.IsZero() || now.Before(s.Expires))
}

func (s share) shown(now time.Time, name string) operations.Share {
	return operations.Share{ID: s.ID, By: s.By, ByName: name, CreatedAt: s.Created, ExpiresAt: s.Expires, EndedAt: s.Ended, Open: s.open(now)}
}

// CreateShare implements the operation of that name.
func (o *Handler) CreateShare(ctx context.Context, by operation.Caller, in operations.NewShare) (operations.Share, error) {
	row, err := o.sessions.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Share{}, err
	}
	if err := o.sessions.MayKeep(by, row); err != nil {
		return operations.Share{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	made := share{ID: strings.ToLower(id.New()), Thread: row.ID, By: by.Principal.String(), Created: now}
	if in.Key != "" {
		made.ID = id.Of("share", by.Principal.String(), string(row.ID), in.Key)
		if _, _, err := o.named(ctx, row.ID, made.ID); err == nil {
			return operations.Share{}, operation.Errorf(operation.Conflict, "this key was already used for a link, whose address is shown only once; create another link")
		} else if operation.KindOf(err) != operation.NotFound {
			return operations.Share{}, err
		}
	}
	if in.Days > 0 {
		made.Expires = now.AddDate(0, 0, in.Days)
	}
	token := rand.Text()
	// First the audit line: a link without one is worse than a line too many.
	if err := o.sessions.Record(ctx, by, row.Agent, "share create "+row.ID.Thread(), made.ID); err != nil {
		return operations.Share{}, err
	}
	if err := o.put(ctx, digest.Of(token), made); err != nil {
		return operations.Share{}, err
	}
	out := made.shown(now, o.sessions.NameOf(ctx, made.By))
	out.Path = pagePath + token
	if at := strings.TrimRight(strings.TrimSpace(o.address), "/"); at != "" {
		out.URL = at + out.Path
	}
	return out, nil
}

func (o *Handler) put(ctx context.Context, key string, s share) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return o.db.Remember(ctx, memoKind, key, data)
}

// ListShares implements the operation of that name: the newest first.
func (o *Handler) ListShares(ctx context.Context, by operation.Caller, in operations.SessionRef) (operation.List[operations.Share], error) {
	out := operation.List[operations.Share]{Items: []operations.Share{}}
	row, err := o.sessions.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	all, err := linksOf(ctx, o.db, row.ID)
	for _, s := range all {
		out.Items = append(out.Items, s.shown(time.Now(), o.sessions.NameOf(ctx, s.By)))
	}
	slices.SortStableFunc(out.Items, func(a, b operations.Share) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out, err
}

// linksOf returns the links of a thread by the digests of their tokens.
func linksOf(ctx context.Context, db *store.DB, thread chat.ThreadID) (map[string]share, error) {
	memos, err := db.Memos(ctx, memoKind)
	if err != nil {
		return nil, err
	}
	out := map[string]share{}
	for _, m := range memos {
		var s share
		if err := json.Unmarshal([]byte(m.Value), &s); err != nil {
			return nil, err
		}
		if s.Thread == thread {
			out[m.Key] = s
		}
	}
	return out, nil
}

func (o *Handler) named(ctx context.Context, thread chat.ThreadID, name string) (key string, s share, err error) {
	all, err := linksOf(ctx, o.db, thread)
	if err != nil {
		return "", s, err
	}
	for key, s := range all {
		if s.ID == name {
			return key, s, nil
		}
	}
	return "", s, operation.Errorf(operation.NotFound, "the session has no link %.64q; `chorus thread shares` lists them", name)
}

// EndShare implements the operation of that name. A revoked link stays revoked.
func (o *Handler) EndShare(ctx context.Context, by operation.Caller, in operations.ShareRef) (operations.Share, error) {
	row, err := o.sessions.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Share{}, err
	}
	if err := o.sessions.MayKeep(by, row); err != nil {
		return operations.Share{}, err
	}
	key, s, err := o.named(ctx, row.ID, in.Share)
	if err != nil {
		return operations.Share{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	if s.Ended.IsZero() {
		s.Ended = now
		if err := o.put(ctx, key, s); err != nil {
			return operations.Share{}, err
		}
		if err := o.sessions.Record(ctx, by, row.Agent, "share end "+row.ID.Thread(), s.ID); err != nil {
			return operations.Share{}, err
		}
	}
	return s.shown(now, o.sessions.NameOf(ctx, s.By)), nil
}

// Forget drops the links to a thread.
func Forget(ctx context.Context, db *store.DB, thread chat.ThreadID) error {
	links, err := linksOf(ctx, db, thread)
	if err != nil {
		return err
	}
	for key := range links {
		if err := db.Forget(ctx, memoKind, key); err != nil {
			return err
		}
	}
	return nil
}

// maxItems is how many items one page of a shared conversation has.
const maxItems = 200

// Shared returns the conversation of a link, before a number or, with 0, at its end. The caller has no token: they see
// what was said and done, without secrets and attachments. A missing link and a revoked one give the same error.
func (o *Handler) Shared(ctx context.Context, token string, before int64) (operations.SharedConversation, error) {
	var s share
	data, err := o.db.Recall(ctx, memoKind, digest.Of(token))
	if err != nil {
		return operations.SharedConversation{}, err
	}
	over := operation.Errorf(operation.NotFound, "this link does not work: it has expired, was revoked, or was not copied in full")
	if data == nil || json.Unmarshal(data, &s) != nil || !s.open(time.Now()) {
		return operations.SharedConversation{}, over
	}
	reader := operation.Caller{Principal: chat.Principal{Kind: chat.TheSystem, ID: "share"}, Scopes: []operation.Scope{operation.Admin}}
	row, err := o.sessions.Find(ctx, reader, string(s.Thread))
	if operation.KindOf(err) == operation.NotFound {
		return operations.SharedConversation{}, over
	}
	if err != nil {
		return operations.SharedConversation{}, err
	}
	span := operations.EventRange{ID: string(s.Thread), Before: row.Next, Limit: maxItems}
	if before > 0 && before < row.Next {
		span.Before = before
	}
	list, err := o.sessions.Messages(ctx, reader, span)
	if err != nil {
		return operations.SharedConversation{}, err
	}
	hide := o.redactor()
	out := operations.SharedConversation{Title: hide.Text(cmp.Or(row.Title, "A conversation")), Agent: row.Agent, Next: list.Next}
	for _, item := range list.Items {
		if item := withoutFiles(item); item != nil {
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

// withoutFiles returns an item as strangers see it: without files, thoughts and costs; nil: not at all.
func withoutFiles(item feed.Item) feed.Item {
	switch it := item.(type) {
	case feed.UserMessage:
		it.Attachments = nil
		return it
	case feed.Steered:
		it.Attachments = nil
		return it
	case feed.AssistantMessage:
		it.Thinking = ""
		return it
	case feed.ToolCall:
		return it
	case feed.ToolResult:
		it.Result.Data = nil
		return it
	}
	return nil
}
