package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"chorus/internal/await"

	wire "github.com/disgoorg/disgo/gateway"
	"github.com/gorilla/websocket"
)

// Shard keeps one shard connected to the gateway: it identifies, sends heartbeats, resumes if it
// can and starts a new session otherwise. The library provides the wire format. The sequence of
// steps is ours, so that a stop stops, waits are bounded, and a silent connection is
// noticed.
type Shard struct {
	Token        string
	URL          string
	Index, Count int
	FirstBackoff time.Duration
	BackoffMax   time.Duration
	Log          *slog.Logger
	// Dispatch takes events in order; it must not block.
	Dispatch func(wire.EventData)

	mu     sync.Mutex
	resync func() // replaces the connection; nil: there is none

	session string // "": the next connection starts a new session
	resume  string
	seq     int64
}

// Resync drops the connection and starts a new session: events that this one did not report
// would not be reported after a resume either. It does not block.
func (l *Shard) Resync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resync != nil {
		l.resync()
	}
}

// frame is one message on the socket.
type frame struct {
	Op wire.Opcode     `json:"op"`
	S  *int64          `json:"s,omitempty"`
	T  wire.EventType  `json:"t,omitempty"`
	D  json.RawMessage `json:"d"`
}

// How long to wait for the gateway.
const (
	dialTime  = 15 * time.Second
	helloTime = 15 * time.Second
	writeTime = 10 * time.Second
)

// Our close codes.
const (
	closeGone   = websocket.CloseNormalClosure  // ends the session
	closeResume = websocket.CloseServiceRestart // keeps the session
)

// ErrToken means that the token is not accepted.
var ErrToken = errors.New("the token is not accepted by Discord; create a new one under Bot in the developer portal and set DISCORD_BOT_TOKEN (or discordToken)")

// errAgain means that the connection ended and a new one should be made at once.
var errAgain = errors.New("the gateway asked for a new connection")

// Run keeps the shard connected until ctx ends. It only returns errors that a retry cannot fix.
func (l *Shard) Run(ctx context.Context) error {
	wait := l.FirstBackoff
	for {
		began := time.Now()
		err := l.connection(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if fatal := permanent(err); fatal != nil {
			return fatal
		}
		if websocket.IsCloseError(err, wire.CloseEventCodeInvalidSeq.Code, wire.CloseEventCodeSessionTimed.Code) {
			l.session = ""
		}
		if time.Since(began) > time.Minute || errors.Is(err, errAgain) {
			wait = l.FirstBackoff
		}
		l.Log.Warn("the connection is lost; trying again", "event", "disconnected", "error", err, "wait", wait, "resume", l.session != "")
		if !errors.Is(err, errAgain) || l.session == "" {
			// Random, so that many bots do not return at the same moment.
			if !await.For(ctx, wait/2+rand.N(wait/2+1)) {
				return nil
			}
			wait = min(2*wait, l.BackoffMax)
		}
	}
}

// permanent returns the error for people if a retry cannot help.
func permanent(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return nil
	}
	switch closed.Code {
	case wire.CloseEventCodeAuthenticationFailed.Code:
		return ErrToken
	case wire.CloseEventCodeDisallowedIntent.Code:
		return fmt.Errorf("an intent is refused (%d): turn on \"Message Content Intent\" under Bot, Privileged Gateway Intents, in the developer portal, "+
			"and start again; without it a bot sees no text", closed.Code)
	case wire.CloseEventCodeInvalidIntent.Code, wire.CloseEventCodeInvalidAPIVersion.Code, wire.CloseEventCodeInvalidShard.Code, wire.CloseEventCodeShardingRequired.Code:
		return fmt.Errorf("the connection was closed for good: %d %s", closed.Code, closed.Text)
	default:
		return nil
	}
}

// intents are only what is needed. Only message content is privileged.
const intents = wire.IntentGuilds | wire.IntentGuildMessages | wire.IntentGuildMessageReactions |
	wire.IntentDirectMessages | wire.IntentDirectMessageReactions | wire.IntentMessageContent

// connection runs one socket from dial to close.
func (l *Shard) connection(ctx context.Context) error {
	at := l.URL
	if l.session != "" && l.resume != "" {
		at = l.resume
	}
	target, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("the gateway's address %q: %w", at, err)
	}
	target.Path = cmp.Or(target.Path, "/")
	target.RawQuery = url.Values{"v": {"10"}, "encoding": {"json"}}.Encode()
	dialer := websocket.Dialer{HandshakeTimeout: dialTime, Proxy: http.ProxyFromEnvironment}
	conn, answer, err := dialer.DialContext(ctx, target.String(), nil)
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		l.resume = "" // this address may be gone
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
	err = l.serve(ctx, conn, frames)
	code := closeResume
	if l.session == "" || errors.Is(context.Cause(ctx), context.Canceled) {
		code = closeGone
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) // the connection may be gone
	_ = conn.Close()
	cancel(err)
	<-ended
	return err
}

// read reads frames from the socket until it ends.
func (l *Shard) read(ctx context.Context, conn *websocket.Conn, out chan<- frame) error {
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

// serve runs the protocol on one socket.
func (l *Shard) serve(ctx context.Context, conn *websocket.Conn, frames <-chan frame) error {
	resync := make(chan struct{}, 1)
	l.mu.Lock()
	l.resync = func() {
		select {
		case resync <- struct{}{}:
		default:
		}
	}
	l.mu.Unlock()
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
			l.session = "" // a resume would not report the missing events either
			return errAgain
		case <-beats:
			if !acked {
				return errors.New("the gateway does not answer heartbeats")
			}
			acked = false
			if err := l.send(conn, wire.OpcodeHeartbeat, l.last()); err != nil {
				return err
			}
		case f := <-frames:
			if f.S != nil && f.Op == wire.OpcodeDispatch {
				l.seq = *f.S
			}
			switch f.Op {
			case wire.OpcodeHello:
				var h struct {
					Every int64 `json:"heartbeat_interval"`
				}
				if err := json.Unmarshal(f.D, &h); err != nil || h.Every <= 0 {
					return fmt.Errorf("the gateway's hello cannot be read: %s", f.D)
				}
				beat = time.NewTicker(time.Duration(h.Every) * time.Millisecond)
				beats = beat.C
				if err := l.identify(conn); err != nil {
					return err
				}
			case wire.OpcodeDispatch:
				hello.Stop()
				l.dispatch(f)
			case wire.OpcodeHeartbeatACK:
				acked = true
			case wire.OpcodeHeartbeat:
				if err := l.send(conn, wire.OpcodeHeartbeat, l.last()); err != nil {
					return err
				}
			case wire.OpcodeReconnect:
				return errAgain
			case wire.OpcodeInvalidSession:
				if string(f.D) != "true" {
					l.session = ""
				}
				return errors.New("the gateway has forgotten the session")
			}
		}
	}
}

func (l *Shard) last() any {
	if l.seq == 0 {
		return nil
	}
	return l.seq
}

// identify starts a new session or resumes the previous one.
func (l *Shard) identify(conn *websocket.Conn) error {
	if l.session != "" {
		return l.send(conn, wire.OpcodeResume, wire.MessageDataResume{Token: l.Token, SessionID: l.session, Seq: int(l.seq)})
	}
	l.seq = 0
	return l.send(conn, wire.OpcodeIdentify, wire.MessageDataIdentify{Token: l.Token, LargeThreshold: 50, Intents: intents, Shard: &[2]int{l.Index, l.Count},
		Properties: wire.IdentifyCommandDataProperties{OS: runtime.GOOS, Browser: "chorus", Device: "chorus"}})
}

func (l *Shard) send(conn *websocket.Conn, op wire.Opcode, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
	return conn.WriteJSON(frame{Op: op, D: raw})
}

// handled are the events that are used; others are not even decoded.
var handled = map[wire.EventType]bool{
	wire.EventTypeReady: true, wire.EventTypeResumed: true, wire.EventTypeGuildCreate: true, wire.EventTypeGuildUpdate: true, wire.EventTypeGuildDelete: true,
	wire.EventTypeChannelCreate: true, wire.EventTypeChannelUpdate: true, wire.EventTypeChannelDelete: true,
	wire.EventTypeThreadCreate: true, wire.EventTypeThreadUpdate: true, wire.EventTypeThreadDelete: true,
	wire.EventTypeGuildRoleCreate: true, wire.EventTypeGuildRoleUpdate: true, wire.EventTypeGuildRoleDelete: true,
	wire.EventTypeMessageCreate: true, wire.EventTypeMessageUpdate: true, wire.EventTypeMessageDelete: true, wire.EventTypeMessageDeleteBulk: true,
	wire.EventTypeMessageReactionAdd: true, wire.EventTypeMessageReactionRemove: true,
	wire.EventTypeMessageReactionRemoveAll: true, wire.EventTypeMessageReactionRemoveEmoji: true, wire.EventTypeChannelPinsUpdate: true, wire.EventTypeInteractionCreate: true,
}

// dispatch passes an event on; it never waits for its handling.
func (l *Shard) dispatch(f frame) {
	if !handled[f.T] {
		return
	}
	data, err := wire.UnmarshalEventData(f.D, f.T)
	if err != nil {
		// One event that the library cannot read must not cost the others; a history read finds messages again.
		l.Log.Warn("an event could not be read", "event", "event_unreadable", "type", string(f.T), "error", err)
		return
	}
	switch e := data.(type) {
	case wire.EventReady:
		l.session, l.resume = e.SessionID, e.ResumeGatewayURL
		l.Log.Info("connected", "event", "connected", "user", e.User.Username, "guilds", len(e.Guilds))
	case wire.EventResumed:
		l.Log.Info("connected again, nothing was missed", "event", "resumed")
	}
	l.Dispatch(data)
}
