package operations

import (
	"context"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
)

// Tokens implements operations on the tokens of the API.
type Tokens interface {
	ListTokens(context.Context, operation.Caller, operation.None) (operation.List[Token], error)
	// CreateToken is the only time that the token's text is shown.
	CreateToken(context.Context, operation.Caller, NewToken) (Token, error)
	RevokeToken(context.Context, operation.Caller, TokenRef) (operation.None, error)
}

// NewToken describes a new token.
type NewToken struct {
	Name      string            `json:"name" minLen:"1" maxLen:"100" doc:"its name"`
	Scopes    []operation.Scope `json:"scopes" minItems:"1" maxItems:"8" doc:"its scopes: read, chat, approve, admin"`
	Roles     []string          `json:"roles,omitempty" maxItems:"32" doc:"roles of whoever uses it, for rules that name roles"`
	ExpiresIn string            `json:"expiresIn,omitempty" maxLen:"32" cli:"expires" doc:"24h or 30d; left out: never"`
}

// maxDays keeps days within the range of a duration.
const maxDays = 36500

// Lifetime parses ExpiresIn; 0: the token does not expire.
func (n NewToken) Lifetime() (time.Duration, error) {
	if n.ExpiresIn == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(n.ExpiresIn)
	if days, ok := strings.CutSuffix(n.ExpiresIn, "d"); ok {
		count, dayErr := strconv.Atoi(days)
		d, err = time.Duration(min(max(count, 0), maxDays))*24*time.Hour, dayErr
	}
	if err != nil || d <= 0 {
		return 0, operation.InvalidField("expiresIn", "expiresIn must be a time like 24h or 30d, not %q", n.ExpiresIn)
	}
	return d, nil
}

// Token gives access to the API. Text is set only when it is created.
type Token struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Scopes    []operation.Scope `json:"scopes"`
	Roles     []string          `json:"roles,omitempty"`
	CreatedAt time.Time         `json:"createdAt"`
	UsedAt    time.Time         `json:"usedAt,omitzero"`
	ExpiresAt time.Time         `json:"expiresAt,omitzero"`
	RevokedAt time.Time         `json:"revokedAt,omitzero"`
	Text      string            `json:"token,omitempty"`
}

// Holder is the principal of a token's holder.
func (t Token) Holder() chat.Principal {
	return chat.Principal{Kind: chat.TokenHolder, ID: t.ID, Name: t.Name, Roles: t.Roles}
}

// TokenRef names a token.
type TokenRef struct {
	ID string `json:"id" maxLen:"200" noun:"token" doc:"the token's id"`
}

// The operations on tokens.
var (
	ListTokens = operation.New(operation.Info{Name: "token.list", Help: "List tokens, without their text", Scope: operation.Admin,
		HTTP:    []operation.HTTP{{Route: "GET /api/tokens", ID: "listTokens"}},
		CLI:     []operation.CLI{{Words: "token list", Help: "List tokens, newest first"}},
		Columns: "NAME=name | SCOPES=scopes | CREATED=createdAt:day | USED=usedAt:day | ID=id",
		Empty:   "there are no tokens; `chorus serve` makes the first one"}, Tokens.ListTokens)

	CreateToken = operation.New(operation.Info{Name: "token.create", Help: "Create a token", Doc: "Its text is shown only in this answer.",
		Scope: operation.Admin, Effect: operation.Creates, Secret: true,
		HTTP: []operation.HTTP{{Route: "POST /api/tokens", ID: "createToken", Body: "NewToken", Status: 201}},
		CLI:  []operation.CLI{{Words: "token create", Help: "Create a token and show it once", Example: "  chorus token create --name laptop --scopes chat,approve"}},
	}, Tokens.CreateToken)

	RevokeToken = operation.New(operation.Info{Name: "token.revoke", Help: "Revoke a token", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/tokens/{id}", ID: "revokeToken"}},
		CLI:    []operation.CLI{{Words: "token revoke", Args: "ID", Help: "Revoke a token; it stops working at once"}},
		Done:   "token {id} revoked"}, Tokens.RevokeToken)
)

func tokens() []operation.Any { return []operation.Any{ListTokens, CreateToken, RevokeToken} }
