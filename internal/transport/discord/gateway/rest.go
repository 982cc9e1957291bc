package gateway

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/outbox"
)

// REST makes the calls of a bot.
type REST struct {
	rest.Rest           // waits and retries after too many calls
	Once      rest.Rest // does not: the outbox decides when to retry
}

// once is the limiter for callers who want to know about a limit instead of waiting.
type once struct{ *limiter }

// MaxRetries implements rest.RateLimiter.
func (once) MaxRetries() int { return 0 }

// silent is the library's log: it would log bodies, and with them people's messages.
var silent = slog.New(slog.DiscardHandler)

// Nobody notifies nobody.
func Nobody() *discord.AllowedMentions {
	return &discord.AllowedMentions{Parse: []discord.AllowedMentionType{}, Roles: []snowflake.ID{}, Users: []snowflake.ID{}}
}

// Only notifies some users.
func Only(users []string) *discord.AllowedMentions {
	out := Nobody()
	for _, id := range users {
		out.Users = append(out.Users, ID(id))
	}
	return out
}

// NewREST makes the calling side of a bot.
func NewREST(token, api, version string, client *http.Client, log *slog.Logger) *REST {
	limits := newLimiter(log)
	calls := func(l rest.RateLimiter) rest.Rest {
		return rest.New(rest.NewClient(token, rest.WithURL(api), rest.WithHTTPClient(client), rest.WithRateLimiter(l),
			rest.WithLogger(silent), rest.WithUserAgent("DiscordBot (https://chorus.invalid, "+cmp.Or(version, "dev")+")")),
			rest.WithDefaultAllowedMentions(*Nobody()))
	}
	return &REST{Rest: calls(limits), Once: calls(once{limits})}
}

// ID parses an id; 0 if it is invalid.
func ID(id string) snowflake.ID {
	n, err := snowflake.Parse(id)
	if err != nil {
		return 0
	}
	return n
}

// Status is the HTTP status of a refusal; 0: there was no answer.
func Status(err error) int {
	if said, ok := errors.AsType[*rest.Error](err); ok && said.Response != nil {
		return said.Response.StatusCode
	}
	return 0
}

// Trouble classifies an error in the terms of the outbox.
func Trouble(err error) error {
	var said *rest.Error
	if err == nil || !errors.As(err, &said) || said.Response == nil {
		return err
	}
	is := func(why outbox.Why) error {
		return &outbox.Trouble{Why: why, Err: err, Said: cmp.Or(said.Message, said.Response.Status)}
	}
	switch code := said.Response.StatusCode; {
	case code == http.StatusTooManyRequests:
		wait := Seconds(said.Response.Header.Get("X-RateLimit-Reset-After"))
		if wait <= 0 {
			wait = Seconds(said.Response.Header.Get("Retry-After"))
		}
		return &outbox.RateLimited{After: max(wait, 50*time.Millisecond), Global: said.Response.Header.Get("X-RateLimit-Global") != ""}
	case code >= 500 || code == http.StatusRequestTimeout:
		return is(outbox.Temporary)
	case said.Code == rest.JSONErrorCodeOperationOnArchivedThread:
		return is(outbox.Archived)
	case said.Code == rest.JSONErrorCodeUnknownChannel:
		return is(outbox.Nowhere)
	case code == http.StatusNotFound:
		return is(outbox.Gone)
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		return is(outbox.Forbidden)
	default:
		return is(outbox.Invalid)
	}
}
