package operations

import (
	"context"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operation"
)

// Shares implements operations on links with which anybody can read a conversation.
type Shares interface {
	// CreateShare is the only time that the link's address is shown.
	CreateShare(context.Context, operation.Caller, NewShare) (Share, error)
	ListShares(context.Context, operation.Caller, SessionRef) (operation.List[Share], error)
	EndShare(context.Context, operation.Caller, ShareRef) (Share, error)
}

// NewShare describes a new link.
type NewShare struct {
	ID   string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Days int    `json:"days,omitempty" min:"1" max:"3650" doc:"number of days until it expires; left out: it does not expire"`
	Key  string `json:"-" key:"true"`
}

// ShareRef names a link.
type ShareRef struct {
	ID    string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Share string `json:"share" minLen:"1" maxLen:"64" noun:"share" slash:"link" slashDoc:"Which link" doc:"the link's id, as the list has it"`
}

// Share is a link with which anybody can read a conversation.
type Share struct {
	ID        string    `json:"id"`
	Path      string    `json:"path,omitempty"` // path of the page on this server; only in the answer that created it
	URL       string    `json:"url,omitempty"`  // the same with this server's address, if configured (publicUrl)
	By        string    `json:"by"`
	ByName    string    `json:"byName,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Open      bool      `json:"open"` // it still works
}

// SharedConversation is what a link shows. No operation returns it, because the holder of a link has no token.
type SharedConversation struct {
	Title string
	Agent string
	Items []feed.Item
	Next  string // the number before which earlier items are; "": none
}

// The operations on links.
var (
	CreateShare = operation.New(operation.Info{Name: "share.create", Help: "Create a link with which anybody can read a session", Scope: operation.Chat, Effect: operation.Creates,
		Doc:    "It shows what was said and done, including later messages, without secrets, attachments or other sessions. Its address is shown once.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/shares", ID: "createShare", Tag: "sessions", Body: "NewShare", Status: 201}},
		CLI:    []operation.CLI{{Words: "thread share", Args: "ID", Example: "  chorus thread share 01k3 --days 7"}},
		Slash: []operation.Slash{{Words: "thread share", Private: true, Help: "Create a link with which anybody can read a conversation; only you see the link", Example: "days:7",
			Show: "Anyone with this address can read the conversation without an account, including later messages:\n{url}\n`{path}` behind the address of this Chorus's page\n" +
				"Readers see what was said and done, but no secrets, attachments or other conversations. The address is not shown again.\n" +
				"It expires at {expiresAt:minute}.\n`/thread unshare link:{id}` ends it, `/thread shares` lists all links."}},
		Done: "anyone with the address {path} of the server can read it; it is not shown again (chorus thread unshare ID {id} ends it)"}, Shares.CreateShare)

	ListShares = operation.New(operation.Info{Name: "share.list", Help: "List the links with which anybody can read a session", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/sessions/{id}/shares", ID: "listShares", Tag: "sessions"}},
		CLI:     []operation.CLI{{Words: "thread shares", Args: "ID"}},
		Slash:   []operation.Slash{{Words: "thread shares", Help: "List the links with which anybody can read a conversation", Show: "- `{id}` {open:can be read with|has ended}, since {createdAt:minute}, by {byName:100}"}},
		Label:   "{id} ({open:can be read with|has ended}), since {createdAt:minute}",
		Columns: "LINK=id | BY=byName | SINCE=createdAt:minute | UNTIL=expiresAt:minute | ENDED=endedAt:minute", Empty: "there are no links"}, Shares.ListShares)

	EndShare = operation.New(operation.Info{Name: "share.end", Help: "Revoke a link at once", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/sessions/{id}/shares/{share}", ID: "endShare", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "thread unshare", Args: "ID SHARE"}},
		Slash:  []operation.Slash{{Words: "thread unshare", Help: "Revoke a link with which anybody can read a conversation", Example: "link:01k3", Show: "The link `{id}` is revoked."}},
		Done:   "{id} is revoked"}, Shares.EndShare)
)

func shares() []operation.Any { return []operation.Any{CreateShare, ListShares, EndShare} }
