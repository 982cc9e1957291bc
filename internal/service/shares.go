package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/id"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

var _ operations.Shares = (*Handler)(nil)

// share is a link as it is kept, under the digest of its token: every node reads it at each look, so an end counts at once.
type share struct {
	ID      string        `json:"id"`
	Thread  chat.ThreadID `json:"thread"`
	By      string        `json:"by"`
	Created time.Time     `json:"created"`
	Expires time.Time     `json:"expires,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
}

// shareMemos are the memos of links.
const shareMemos = "share"

// SharedPath is where the pages of links are; the token follows.
const SharedPath = "/shared/"

// shareKey is what is kept of a token: whoever reads the database can open nothing with it.
func shareKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func (s share) open(now time.Time) bool {
	return s.Ended.IsZero() && (s.Expires.IsZero() || now.Before(s.Expires))
}

func (s share) shown(now time.Time) operations.Share {
	return operations.Share{ID: s.ID, By: s.By, CreatedAt: s.Created, ExpiresAt: s.Expires, EndedAt: s.Ended, Open: s.open(now)}
}

// CreateShare carries out the operation of that name.
func (o *Handler) CreateShare(ctx context.Context, by operation.Caller, in operations.NewShare) (operations.Share, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Share{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	made := share{ID: strings.ToLower(id.New()), Thread: row.ID, By: by.Principal.String(), Created: now}
	if in.Key != "" {
		made.ID = id.Of("share", by.Principal.String(), string(row.ID), in.Key)
		if _, _, err := o.shareNamed(ctx, row.ID, made.ID); err == nil {
			return operations.Share{}, operation.Errorf(operation.Conflict, "this key has made a link already, and its address is shown only once; make another, or end it")
		} else if operation.KindOf(err) != operation.NotFound {
			return operations.Share{}, err
		}
	}
	if in.Days > 0 {
		made.Expires = now.AddDate(0, 0, in.Days)
	}
	token := rand.Text()
	// First the line that says who wanted it: a link that nobody made is worse than a line too many.
	if err := o.Record(ctx, by, row.Agent, "share create "+row.ID.Thread(), made.ID); err != nil {
		return operations.Share{}, err
	}
	if err := o.putShare(ctx, shareKey(token), made); err != nil {
		return operations.Share{}, err
	}
	out := made.shown(now)
	out.Path = SharedPath + token
	return out, nil
}

func (o *Handler) putShare(ctx context.Context, key string, s share) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return o.app.DB.Remember(ctx, shareMemos, key, data)
}

// ListShares carries out the operation of that name: the newest first.
func (o *Handler) ListShares(ctx context.Context, by operation.Caller, in operations.SessionRef) (operation.List[operations.Share], error) {
	out := operation.List[operations.Share]{Items: []operations.Share{}}
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	all, err := o.sharesOf(ctx, row.ID)
	for _, s := range all {
		out.Items = append(out.Items, s.shown(time.Now()))
	}
	slices.SortStableFunc(out.Items, func(a, b operations.Share) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out, err
}

// sharesOf are the links of a thread by the digests of their tokens.
func (o *Handler) sharesOf(ctx context.Context, thread chat.ThreadID) (map[string]share, error) {
	memos, err := o.app.DB.Memos(ctx, shareMemos)
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

func (o *Handler) shareNamed(ctx context.Context, thread chat.ThreadID, name string) (key string, s share, err error) {
	all, err := o.sharesOf(ctx, thread)
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

// EndShare carries out the operation of that name. One that has ended stays so.
func (o *Handler) EndShare(ctx context.Context, by operation.Caller, in operations.ShareRef) (operations.Share, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Share{}, err
	}
	key, s, err := o.shareNamed(ctx, row.ID, in.Share)
	if err != nil {
		return operations.Share{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	if s.Ended.IsZero() {
		s.Ended = now
		if err := o.putShare(ctx, key, s); err != nil {
			return operations.Share{}, err
		}
		if err := o.Record(ctx, by, row.Agent, "share end "+row.ID.Thread(), s.ID); err != nil {
			return operations.Share{}, err
		}
	}
	return s.shown(now), nil
}

// maxSharedItems is how many items one page of a shared conversation has.
const maxSharedItems = 200

// Shared is the conversation that a link opens, before a number or, with 0, its end. Whoever asks has no token: they see what was
// said and done, without secrets and attachments. That there is no such link and that it has ended are told alike.
func (o *Handler) Shared(ctx context.Context, token string, before int64) (operations.SharedConversation, error) {
	var s share
	data, err := o.app.DB.Recall(ctx, shareMemos, shareKey(token))
	if err != nil {
		return operations.SharedConversation{}, err
	}
	over := operation.Errorf(operation.NotFound, "this link shows nothing: it has ended, or it was copied in part")
	if data == nil || json.Unmarshal(data, &s) != nil || !s.open(time.Now()) {
		return operations.SharedConversation{}, over
	}
	reader := operation.Caller{Principal: chat.Principal{Kind: chat.TheSystem, ID: "share"}, Scopes: []operation.Scope{operation.Admin}}
	row, err := o.Find(ctx, reader, string(s.Thread))
	if operation.KindOf(err) == operation.NotFound {
		return operations.SharedConversation{}, over
	}
	if err != nil {
		return operations.SharedConversation{}, err
	}
	span := operations.EventRange{ID: string(s.Thread), Before: row.Next, Limit: maxSharedItems}
	if before > 0 && before < row.Next {
		span.Before = before
	}
	list, err := o.Messages(ctx, reader, span)
	if err != nil {
		return operations.SharedConversation{}, err
	}
	hide := o.app.Logs.Redactor()
	out := operations.SharedConversation{Title: hide.Text(cmp.Or(row.Title, "A conversation")), Agent: row.Agent, Next: list.Next}
	for _, item := range list.Items {
		if item := withoutFiles(item); item != nil {
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

// withoutFiles is an item as strangers see it: what was said and done, without files, thoughts and what it cost; nil: not at all.
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
