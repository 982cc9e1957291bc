package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/disgoorg/disgo/gateway"
	"github.com/gorilla/websocket"
)

// link keeps one shard on the gateway: it identifies, beats, resumes where it can and
// begins anew where it cannot. The library has the words of the wire; the order of things is
// ours, so that a stop is a stop, waiting is ours to bound, and a silent connection is noticed.
type link struct {
	bot   *Bot
	url   string
	shard [2]int
	log   *slog.Logger

	session string // "": the next connection begins anew
	resume  string
	seq     int64
}

// frame is what goes over the socket.
type frame struct {
	Op gateway.Opcode    `json:"op"`
	S  *int64            `json:"s,omitempty"`
	T  gateway.EventType `json:"t,omitempty"`
	D  json.RawMessage   `json:"d"`
}

// How long the gateway is waited for.
const (
	dialTime  = 15 * time.Second
	helloTime = 15 * time.Second
	writeTime = 10 * time.Second
)

// The close codes of ours.
const (
	closeGone   = websocket.CloseNormalClosure  // ends the session
	closeResume = websocket.CloseServiceRestart // keeps it
)

// errToken: nobody knows us.
var errToken = errors.New("the token is not known to Discord; make a new one under Bot in the developer portal and set DISCORD_BOT_TOKEN (or discordToken)")

// errAgain: the connection is over and another one is to be made at once.
var errAgain = errors.New("the gateway asked for a new connection")

// run keeps the shard connected until ctx ends. An error is one that no retry mends.
func (l *link) run(ctx context.Context) error {
	wait := l.bot.FirstBackoff
	for {
		began := time.Now()
		err := l.connection(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if fatal := hopeless(err); fatal != nil {
			return fatal
		}
		if websocket.IsCloseError(err, gateway.CloseEventCodeInvalidSeq.Code, gateway.CloseEventCodeSessionTimed.Code) {
			l.session = ""
		}
		if time.Since(began) > time.Minute || errors.Is(err, errAgain) {
			wait = l.bot.FirstBackoff
		}
		l.log.Warn("the connection is lost; trying again", "event", "disconnected", "error", err, "wait", wait, "resume", l.session != "")
		if !errors.Is(err, errAgain) || l.session == "" {
			// A little chance, so that many bots do not come back in one instant.
			if !sleep(ctx, wait/2+rand.N(wait/2+1)) {
				return nil
			}
			wait = min(2*wait, l.bot.BackoffMax)
		}
	}
}

// sleep waits; false: ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// hopeless is the error for people when trying again cannot help.
func hopeless(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return nil
	}
	switch closed.Code {
	case gateway.CloseEventCodeAuthenticationFailed.Code:
		return errToken
	case gateway.CloseEventCodeDisallowedIntent.Code:
		return fmt.Errorf("an intent is refused (%d): switch on \"Message Content Intent\" under Bot, Privileged Gateway Intents, in the developer portal, "+
			"and start again; without it a bot sees no words", closed.Code)
	case gateway.CloseEventCodeInvalidIntent.Code, gateway.CloseEventCodeInvalidAPIVersion.Code, gateway.CloseEventCodeInvalidShard.Code, gateway.CloseEventCodeShardingRequired.Code:
		return fmt.Errorf("the connection was closed for good: %d %s", closed.Code, closed.Text)
	default:
		return nil
	}
}

// intents are what is needed and nothing else. Only the content of messages is privileged.
const intents = gateway.IntentGuilds | gateway.IntentGuildMessages | gateway.IntentGuildMessageReactions |
	gateway.IntentDirectMessages | gateway.IntentDirectMessageReactions | gateway.IntentMessageContent

// connection is one socket from dial to end.
func (l *link) connection(ctx context.Context) error {
	at := l.url
	if l.session != "" && l.resume != "" {
		at = l.resume
	}
	target, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("the gateway's address %q: %w", at, err)
	}
	if target.Path == "" {
		target.Path = "/"
	}
	target.RawQuery = url.Values{"v": {"10"}, "encoding": {"json"}}.Encode()
	dialer := websocket.Dialer{HandshakeTimeout: dialTime, Proxy: http.ProxyFromEnvironment}
	conn, answer, err := dialer.DialContext(ctx, target.String(), nil)
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		l.resume = "" // perhaps it is this address that is gone
		return fmt.Errorf("connect to the gateway: %w", err)
	}
	conn.SetReadLimit(64 << 20)
	ctx, cancel := context.WithCancelCause(ctx)
	frames := make(chan frame)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(l.read(ctx, conn, frames))
	}()
	err = l.talk(ctx, conn, frames)
	code := closeResume
	if l.session == "" || errors.Is(context.Cause(ctx), context.Canceled) {
		code = closeGone
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) // it may be gone
	_ = conn.Close()
	cancel(err)
	<-ended
	return err
}

// read takes frames off the socket until it ends.
func (l *link) read(ctx context.Context, conn *websocket.Conn, out chan<- frame) error {
	for {
		var f frame
		if err := conn.ReadJSON(&f); err != nil {
			return err
		}
		select {
		case out <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// talk is the conversation on one socket.
func (l *link) talk(ctx context.Context, conn *websocket.Conn, frames <-chan frame) error {
	resync := make(chan struct{}, 1)
	l.bot.onResync(l.shard[0], func() {
		select {
		case resync <- struct{}{}:
		default:
		}
	})
	hello := time.NewTimer(helloTime)
	defer hello.Stop()
	var beat *time.Ticker
	var beats <-chan time.Time
	defer func() {
		if beat != nil {
			beat.Stop()
		}
	}()
	acked := true
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hello.C:
			return errors.New("the gateway said nothing")
		case <-resync:
			l.session = "" // what it did not tell, a resume would not tell either
			return errAgain
		case <-beats:
			if !acked {
				return errors.New("the gateway does not answer heartbeats")
			}
			acked = false
			if err := l.send(conn, gateway.OpcodeHeartbeat, l.last()); err != nil {
				return err
			}
		case f := <-frames:
			if f.S != nil && f.Op == gateway.OpcodeDispatch {
				l.seq = *f.S
			}
			switch f.Op {
			case gateway.OpcodeHello:
				var h struct {
					Every int64 `json:"heartbeat_interval"`
				}
				if err := json.Unmarshal(f.D, &h); err != nil || h.Every <= 0 {
					return fmt.Errorf("the gateway's hello cannot be read: %s", f.D)
				}
				beat = time.NewTicker(time.Duration(h.Every) * time.Millisecond)
				beats = beat.C
				if err := l.introduce(conn); err != nil {
					return err
				}
			case gateway.OpcodeDispatch:
				hello.Stop()
				l.dispatch(f)
			case gateway.OpcodeHeartbeatACK:
				acked = true
			case gateway.OpcodeHeartbeat:
				if err := l.send(conn, gateway.OpcodeHeartbeat, l.last()); err != nil {
					return err
				}
			case gateway.OpcodeReconnect:
				return errAgain
			case gateway.OpcodeInvalidSession:
				if string(f.D) != "true" {
					l.session = ""
				}
				return errors.New("the gateway has forgotten the session")
			}
		}
	}
}

func (l *link) last() any {
	if l.seq == 0 {
		return nil
	}
	return l.seq
}

// introduce says who we are: anew, or where we were.
func (l *link) introduce(conn *websocket.Conn) error {
	if l.session != "" {
		return l.send(conn, gateway.OpcodeResume, gateway.MessageDataResume{Token: l.bot.Token, SessionID: l.session, Seq: int(l.seq)})
	}
	l.seq = 0
	return l.send(conn, gateway.OpcodeIdentify, gateway.MessageDataIdentify{Token: l.bot.Token, LargeThreshold: 50, Intents: intents, Shard: &l.shard,
		Properties: gateway.IdentifyCommandDataProperties{OS: runtime.GOOS, Browser: "chorus", Device: "chorus"}})
}

func (l *link) send(conn *websocket.Conn, op gateway.Opcode, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
	return conn.WriteJSON(frame{Op: op, D: raw})
}

// told are the events that something is done about; the others are not even read.
var told = map[gateway.EventType]bool{
	gateway.EventTypeReady: true, gateway.EventTypeResumed: true, gateway.EventTypeGuildCreate: true, gateway.EventTypeGuildDelete: true,
	gateway.EventTypeChannelCreate: true, gateway.EventTypeChannelUpdate: true, gateway.EventTypeChannelDelete: true,
	gateway.EventTypeThreadCreate: true, gateway.EventTypeThreadUpdate: true, gateway.EventTypeThreadDelete: true,
	gateway.EventTypeGuildRoleCreate: true, gateway.EventTypeGuildRoleUpdate: true, gateway.EventTypeGuildRoleDelete: true,
	gateway.EventTypeMessageCreate: true, gateway.EventTypeMessageUpdate: true, gateway.EventTypeMessageDelete: true, gateway.EventTypeMessageDeleteBulk: true,
	gateway.EventTypeMessageReactionAdd: true, gateway.EventTypeMessageReactionRemove: true,
	gateway.EventTypeMessageReactionRemoveAll: true, gateway.EventTypeMessageReactionRemoveEmoji: true, gateway.EventTypeChannelPinsUpdate: true, gateway.EventTypeInteractionCreate: true,
}

// dispatch hands an event on; it never waits for what is done about it.
func (l *link) dispatch(f frame) {
	if !told[f.T] {
		return
	}
	data, err := gateway.UnmarshalEventData(f.D, f.T)
	if err != nil {
		// One event that the library cannot read must not cost the others; a history read finds messages again.
		l.log.Warn("an event could not be read", "event", "event_unreadable", "type", string(f.T), "error", err)
		return
	}
	switch e := data.(type) {
	case gateway.EventReady:
		l.session, l.resume = e.SessionID, e.ResumeGatewayURL
		l.log.Info("connected", "event", "connected", "user", e.User.Username, "guilds", len(e.Guilds))
	case gateway.EventResumed:
		l.log.Info("connected again, nothing was missed", "event", "resumed")
	}
	l.bot.take(data)
}
