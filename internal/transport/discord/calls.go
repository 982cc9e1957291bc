package discord

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"
)

// calls is the REST side of a bot.
type calls struct {
	rest.Rest           // waits and tries again where there were too many calls
	once      rest.Rest // does not: the outbox knows itself when to try again
	options   Options
}

// hasty is the limiter for callers who would rather hear of a limit than wait.
type hasty struct{ *limiter }

// MaxRetries implements rest.RateLimiter.
func (hasty) MaxRetries() int { return 0 }

// quiet is the library's log: it would write down bodies, and with them what people said.
var quiet = slog.New(slog.DiscardHandler)

// nobody is rung unless somebody asked for it.
func nobody() *discord.AllowedMentions {
	return &discord.AllowedMentions{Parse: []discord.AllowedMentionType{}, Roles: []snowflake.ID{}, Users: []snowflake.ID{}}
}

func newCalls(o Options) *calls {
	limits := newLimiter(o.Log)
	client := func(l rest.RateLimiter) rest.Rest {
		return rest.New(rest.NewClient(o.Token, rest.WithURL(o.API), rest.WithHTTPClient(o.HTTP), rest.WithRateLimiter(l),
			rest.WithLogger(quiet), rest.WithUserAgent("DiscordBot (https://chorus.invalid, "+first(o.Version, "dev")+")")),
			rest.WithDefaultAllowedMentions(*nobody()))
	}
	return &calls{Rest: client(limits), once: client(hasty{limits}), options: o}
}

// again repeats a call that may be repeated until it is answered, ctx ends, or the answer
// is a no: 1 s, doubling to the longest wait.
func again[T any](ctx context.Context, c *calls, what string, call func(context.Context) (T, error)) (T, error) {
	wait := c.options.FirstBackoff
	for {
		one, cancel := context.WithTimeout(ctx, callTime)
		got, err := call(one)
		cancel()
		if err == nil || ctx.Err() != nil || !passing(err) {
			return got, err
		}
		c.options.Log.Warn("Discord did not answer; trying again", "event", "call_failed", "call", what, "error", err, "wait", wait)
		if !sleep(ctx, wait) {
			return got, ctx.Err()
		}
		wait = min(2*wait, c.options.BackoffMax)
	}
}

// passing reports whether an error may be gone at the next try.
func passing(err error) bool {
	var said *rest.Error
	if !errors.As(err, &said) || said.Response == nil {
		return true // no answer at all
	}
	code := said.Response.StatusCode
	return code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
}

// status is the HTTP status of a refusal; 0: there was no answer.
func status(err error) int {
	var said *rest.Error
	if errors.As(err, &said) && said.Response != nil {
		return said.Response.StatusCode
	}
	return 0
}

// number reads an id; 0 for what is none.
func number(id string) snowflake.ID {
	n, err := snowflake.Parse(id)
	if err != nil {
		return 0
	}
	return n
}

// gateway asks where the gateway is, and how many shards it wants.
func (b *Bot) gateway(ctx context.Context) (*discord.GatewayBot, error) {
	info, err := again(ctx, b.rest, "gateway", func(ctx context.Context) (*discord.GatewayBot, error) {
		return b.rest.GetGatewayBot(rest.WithCtx(ctx))
	})
	if status(err) == http.StatusUnauthorized {
		return nil, errToken
	}
	return info, err
}

// history reads messages behind one, the oldest first. Behind none means from the
// beginning, which must be said: without it Discord gives the newest.
func (b *Bot) history(ctx context.Context, channel, after string, wait time.Duration) ([]discord.Message, error) {
	got, err := patiently(ctx, b, wait, "history", func(ctx context.Context) ([]discord.Message, error) {
		return b.rest.GetMessages(number(channel), 0, 0, max(number(after), 1), historyPage, rest.WithCtx(ctx))
	})
	for i, j := 0, len(got)-1; i < j; i, j = i+1, j-1 {
		got[i], got[j] = got[j], got[i]
	}
	return got, err
}

// historyPage is the most that Discord gives at once.
const historyPage = 100

// typing shows that somebody writes. It is a courtesy: nothing is done about an error.
func (b *Bot) typing(ctx context.Context, channel string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := b.rest.SendTyping(number(channel), rest.WithCtx(ctx)); err != nil && ctx.Err() == nil {
		b.Log.Debug("could not show that somebody writes", "event", "typing_failed", "channel", channel, "error", err)
	}
}
