package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

// NewToken is the body that makes a token.
type NewToken struct {
	Name      string          `json:"name" minLen:"1" maxLen:"100" doc:"what people call it"`
	Scopes    []command.Scope `json:"scopes" minItems:"1" maxItems:"8"`
	Roles     []string        `json:"roles,omitempty" maxItems:"32"`
	ExpiresIn string          `json:"expiresIn,omitempty" maxLen:"32" doc:"24h or 30d; left out: never"`
}

func (a *API) tokenOps() []rest.Operation {
	const tag = "tokens"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/api/tokens", ID: "listTokens", Tag: tag, Scope: adminScope, Summary: "List tokens, without their text"},
			func(ctx context.Context, _ struct{}) (command.List[command.Token], error) {
				return a.service.ListTokens(ctx, by(ctx))
			}),
		rest.Op(rest.Route{Method: "POST", Path: "/api/tokens", ID: "createToken", Tag: tag, Scope: adminScope, Status: http.StatusCreated, Creates: true, Secret: true,
			Summary: "Make a token", Doc: "The answer is the one time that its text is seen."}, a.createToken),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/tokens/{id}", ID: "revokeToken", Tag: tag, Scope: adminScope, Errors: []int{404, 409},
			Summary: "Revoke a token"}, func(ctx context.Context, in struct {
			ID string `path:"id" maxLen:"200" doc:"the token's id"`
		}) (rest.None, error) {
			return rest.None{}, a.service.RevokeToken(ctx, by(ctx), in.ID)
		}),
	}
}

func (a *API) createToken(ctx context.Context, in struct{ Body NewToken }) (command.Token, error) {
	expires, err := duration(in.Body.ExpiresIn)
	if err != nil {
		return command.Token{}, err
	}
	return a.service.CreateToken(ctx, by(ctx), command.NewToken{Name: in.Body.Name, Scopes: in.Body.Scopes, Roles: in.Body.Roles, ExpiresIn: expires})
}

// maxDays keeps days within what a duration can hold.
const maxDays = 36500

// duration reads 24h and 30d; "": no limit.
func duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, dayErr := strconv.Atoi(days)
		d, err = time.Duration(min(max(n, 0), maxDays))*24*time.Hour, dayErr
	}
	if err != nil || d <= 0 {
		bad := command.Errorf(command.Invalid, "expiresIn must be a time like 24h or 30d, not %q", text)
		bad.Field = "expiresIn"
		return 0, bad
	}
	return d, nil
}
