package discordsim

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"

	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/ratelimit"
)

// The gateway's operations.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opPresence       = 3
	opVoice          = 4
	opResume         = 6
	opReconnect      = 7
	opMembers        = 8
	opInvalidSession = 9
	opHello          = 10
	opAck            = 11
)

// The gateway's close codes.
const (
	closeUnknownOp    = 4001
	closeDecode       = 4002
	closeNotAuth      = 4003
	closeAuthFailed   = 4004
	closeAlreadyAuth  = 4005
	closeInvalidSeq   = 4007
	closeRate         = 4008
	closeTimedOut     = 4009
	closeShard        = 4010
	closeVersion      = 4012
	closeIntents      = 4013
	closeDisallowed   = 4014
	heartbeatEvery    = 41250 * time.Millisecond
	heartbeatAtLeast  = 250 * time.Millisecond // a faster heartbeat would only measure the machine
	commandsPerMinute = 120
	writeWithin       = 10 * time.Second
)

// socket is one connection. Outgoing data waits in out and in its session, guarded by Sim's lock.
type socket struct {
	sim     *Sim
	ws      *websocket.Conn
	session *session
	sent    int      // the number of the last event that went out
	out     [][]byte // non-events: HELLO, acks
	wake    chan struct{}
	beat    chan struct{}
	code    int // set: close with this
	reason  string
	rate    ratelimit.Bucket
	cancel  context.CancelFunc
	zip     *zlib.Writer // one per connection, if it is compressed; only the writer uses it
	zipped  bytes.Buffer
}

// frame is a payload as sent: as it is, or as the next piece of the compressed stream, which ends with an empty block
// (00 00 ff ff) so that the client can read it at once.
func (k *socket) frame(raw []byte) (websocket.MessageType, []byte, error) {
	if k.zip == nil {
		return websocket.MessageText, raw, nil
	}
	k.zipped.Reset()
	if _, err := k.zip.Write(raw); err != nil {
		return 0, nil, err
	}
	err := k.zip.Flush()
	return websocket.MessageBinary, k.zipped.Bytes(), err
}

// wakeWriter makes the writer check for data to send.
func (k *socket) wakeWriter() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// heartbeat is the interval of clients' heartbeats.
func (s *Sim) heartbeat() time.Duration { return max(s.guild.Scale(heartbeatEvery), heartbeatAtLeast) }

// socket accepts a client's connection and serves it to its end.
func (s *Sim) socket(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	zlibStream := q.Get("compress") == "zlib-stream"
	if q.Get("compress") != "" && !zlibStream || q.Get("encoding") == "etf" {
		http.Error(w, "this gateway speaks JSON, plain or as zlib-stream; ask for one of them", http.StatusBadRequest)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(1 << 16) // Discord's is 4096; decode reports it to clients with a close code
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	k := &socket{sim: s, ws: ws, wake: make(chan struct{}, 1), beat: make(chan struct{}, 1), cancel: cancel}
	if zlibStream {
		k.zip = zlib.NewWriter(&k.zipped)
	}
	s.mu.Lock()
	if v := q.Get("v"); v != "" && v != "10" && v != "9" {
		k.shut(closeVersion, "Invalid API version.")
	}
	k.send(opHello, object{"heartbeat_interval": s.heartbeat().Milliseconds(), "_trace": []string{"discordsim"}})
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.write(ctx)
	}()
	k.read(ctx)
	cancel()
	<-done
	s.mu.Lock()
	if k.session != nil && k.session.socket == k {
		k.session.socket = nil
		s.connectionsChanged()
	}
	s.mu.Unlock()
	_ = ws.CloseNow() // mostly closed already
}

// send queues a non-event. The caller holds the lock.
func (k *socket) send(op int, data any) {
	raw, err := json.Marshal(object{"op": op, "d": data, "s": nil, "t": nil})
	if err != nil {
		return
	}
	k.out = append(k.out, raw)
	k.wakeWriter()
}

// shut closes with a code after the queued data. The caller holds the lock.
func (k *socket) shut(code int, reason string) {
	if k.code == 0 {
		k.code, k.reason = code, reason
	}
	k.wakeWriter()
}

// next takes data to send. A deaf gateway sends nothing.
func (k *socket) next() (list [][]byte, code int, reason string) {
	k.sim.mu.Lock()
	defer k.sim.mu.Unlock()
	if k.session != nil && k.sim.deaf(k.session.who) {
		k.out = nil
		return nil, k.code, k.reason
	}
	list, k.out = k.out, nil
	if k.session != nil && k.session.socket == k {
		frames, _ := k.session.since(k.sent)
		for _, f := range frames {
			list = append(list, f.raw)
			k.sent = f.seq
		}
	}
	return list, k.code, k.reason
}

func (k *socket) write(ctx context.Context) {
	defer k.cancel()
	dead := time.NewTimer(k.sim.heartbeat() * 3 / 2)
	defer dead.Stop()
	for {
		list, code, reason := k.next()
		for _, raw := range list {
			kind, data, err := k.frame(raw)
			if err != nil {
				return
			}
			within, cancel := context.WithTimeout(ctx, writeWithin)
			err = k.ws.Write(within, kind, data)
			cancel()
			if err != nil {
				return
			}
		}
		if code != 0 {
			_ = k.ws.Close(websocket.StatusCode(code), reason) // the other side may be gone
			return
		}
		select {
		case <-k.wake:
		case <-k.beat:
			dead.Reset(k.sim.heartbeat() * 3 / 2)
		case <-dead.C:
			k.sim.mu.Lock()
			k.sim.forget(k.session)
			k.shut(closeTimedOut, "Session timed out.")
			k.sim.mu.Unlock()
		case <-k.sim.quit:
			_ = k.ws.Close(websocket.StatusGoingAway, "the simulator ends")
			return
		case <-ctx.Done():
			return
		}
	}
}

// payload is what a client sends.
type payload struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
}

func (k *socket) read(ctx context.Context) {
	for {
		kind, raw, err := k.ws.Read(ctx)
		if err != nil {
			var closed websocket.CloseError
			if errors.As(err, &closed) && (closed.Code == 1000 || closed.Code == 1001) {
				k.sim.mu.Lock()
				k.sim.forget(k.session) // a client that closes cleanly cannot resume
				k.sim.mu.Unlock()
			}
			return
		}
		p := payload{}
		k.sim.mu.Lock()
		switch err := json.Unmarshal(raw, &p); {
		case kind != websocket.MessageText || err != nil || len(raw) > 4096:
			k.shut(closeDecode, "Error while decoding payload.")
		case !k.rate.Take(k.sim.guild.Now(), commandsPerMinute, k.sim.guild.Scale(time.Minute)):
			k.shut(closeRate, "Rate limited.")
		default:
			k.sim.handle(k, p)
		}
		k.sim.mu.Unlock()
	}
}

// handle answers one payload. The caller holds the lock.
func (s *Sim) handle(k *socket, p payload) {
	if k.session == nil && p.Op != opHeartbeat && p.Op != opIdentify && p.Op != opResume {
		if p.Op == opPresence || p.Op == opVoice || p.Op == opMembers {
			k.shut(closeNotAuth, "Not authenticated.")
		} else {
			k.shut(closeUnknownOp, "Unknown opcode.")
		}
		return
	}
	switch p.Op {
	case opHeartbeat:
		select {
		case k.beat <- struct{}{}:
		default:
		}
		k.send(opAck, nil) // which a deaf gateway does not send
	case opIdentify:
		s.identify(k, p.D)
	case opResume:
		s.resume(k, p.D)
	case opMembers:
		s.members(k, p.D)
	case opPresence, opVoice:
	default:
		k.shut(closeUnknownOp, "Unknown opcode.")
	}
}

type identifyBody struct {
	Token   string  `json:"token"`
	Intents *int    `json:"intents"`
	Shard   *[2]int `json:"shard"`
}

func (s *Sim) identify(k *socket, raw json.RawMessage) {
	var b identifyBody
	if err := json.Unmarshal(raw, &b); err != nil {
		k.shut(closeDecode, "Error while decoding payload.")
		return
	}
	who := s.guild.AccountByToken(trimBot(b.Token))
	shard := [2]int{0, 1}
	if b.Shard != nil {
		shard = *b.Shard
	}
	switch {
	case k.session != nil:
		k.shut(closeAlreadyAuth, "Already authenticated.")
	case who == nil:
		k.shut(closeAuthFailed, "Authentication failed.")
	case shard[1] < 1 || shard[0] < 0 || shard[0] >= shard[1]:
		k.shut(closeShard, "Invalid shard.")
	case who.Bot && (b.Intents == nil || *b.Intents&^guild.IntentsKnown != 0):
		k.shut(closeIntents, "Invalid intent(s).")
	case who.Bot && *b.Intents&guild.IntentsPrivileged&^who.Privileged != 0:
		k.shut(closeDisallowed, "Disallowed intent(s).")
	default:
		intents := guild.IntentsAll
		if who.Bot {
			intents = *b.Intents
		}
		s.open(k, who, intents, shard)
	}
}

func trimBot(token string) string {
	if len(token) > 4 && token[:4] == "Bot " {
		return token[4:]
	}
	return token
}

// open starts a session: READY, and the guild if requested.
func (s *Sim) open(k *socket, who *guild.Account, intents int, shard [2]int) {
	n := &session{id: fmt.Sprintf("%x", uint64(s.guild.NewID())), who: who, intents: intents, shard: shard, keep: s.opts.Replay, socket: k}
	s.forgetOldest(who)
	s.sessions = append(s.sessions, n)
	k.session = n
	guilds := []object{}
	here := who.Member != nil && n.mine(s.guild.ID)
	if here {
		guilds = append(guilds, object{"id": s.guild.ID, "unavailable": true})
	}
	ready := object{
		"v": 10, "user": who.User, "session_id": n.id, "resume_gateway_url": s.Gateway() + "/resume", "shard": shard,
		"guilds": guilds, "private_channels": []any{}, "relationships": []any{},
		"_trace": []string{"discordsim"}, "application": object{"id": who.ID, "flags": applicationView(who)["flags"]},
	}
	s.tell(n, "READY", ready)
	if intents&guild.IntentGuilds != 0 && here && s.pick(FaultAway, who.Username, "GUILD_CREATE", false) == nil {
		s.tell(n, "GUILD_CREATE", s.guild.ViewFor(who, intents&guild.IntentMembers != 0))
	}
	s.connectionsChanged()
}

// connectionsChanged wakes those who wait for a connection.
func (s *Sim) connectionsChanged() {
	for stream := range s.streams {
		stream.push("SIM_CONNECTION", []byte("null")) // the page shows who is online
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// tell sends something to one session only, bypassing faults.
func (s *Sim) tell(n *session, name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		return
	}
	n.push(name, raw)
}

func (s *Sim) resume(k *socket, raw json.RawMessage) {
	var b struct {
		Token string `json:"token"`
		ID    string `json:"session_id"`
		Seq   int    `json:"seq"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		k.shut(closeDecode, "Error while decoding payload.")
		return
	}
	var n *session
	if i := slices.IndexFunc(s.sessions, func(n *session) bool { return n.id == b.ID }); i >= 0 {
		n = s.sessions[i]
	}
	switch {
	case k.session != nil:
		k.shut(closeAlreadyAuth, "Already authenticated.")
		return
	case n == nil || n.who.Token != trimBot(b.Token):
		k.send(opInvalidSession, false)
		return
	case b.Seq > n.seq:
		k.shut(closeInvalidSeq, "Invalid seq.")
		return
	}
	if _, whole := n.since(b.Seq); !whole {
		s.forget(n)
		k.send(opInvalidSession, false)
		return
	}
	if old := n.socket; old != nil {
		old.shut(closeTimedOut, "Resumed elsewhere.")
	}
	n.socket, k.session, k.sent = k, n, b.Seq
	s.tell(n, "RESUMED", object{"_trace": []string{"discordsim"}})
	s.connectionsChanged()
}

// awayMost limits a bot's disconnected sessions; a bot that is killed often would leave any number.
const awayMost = 4

// forgetOldest ends a bot's oldest disconnected sessions.
func (s *Sim) forgetOldest(who *guild.Account) {
	var away []*session
	for _, n := range s.sessions {
		if n.who == who && n.socket == nil {
			away = append(away, n)
		}
	}
	for i := 0; i < len(away)-awayMost; i++ {
		s.forget(away[i])
	}
}

// forget ends a session: it cannot be resumed.
func (s *Sim) forget(n *session) {
	for i, have := range s.sessions {
		if have == n && n != nil {
			s.sessions = append(s.sessions[:i:i], s.sessions[i+1:]...)
			s.connectionsChanged()
			return
		}
	}
}

// mostFound is the maximum number of members in a search result.
const mostFound = 100

// members answers a request for members: all, those with a name prefix, or some by their ids.
func (s *Sim) members(k *socket, raw json.RawMessage) {
	var b struct {
		Guild guild.ID        `json:"guild_id"`
		Query *string         `json:"query"`
		Limit int             `json:"limit"`
		Users json.RawMessage `json:"user_ids"`
		Nonce string          `json:"nonce,omitempty"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		k.shut(closeDecode, "Error while decoding payload.")
		return
	}
	var ids []guild.ID
	if one := (guild.ID(0)); len(b.Users) > 0 && json.Unmarshal(b.Users, &ids) != nil {
		if json.Unmarshal(b.Users, &one) != nil {
			k.shut(closeDecode, "Error while decoding payload.")
			return
		}
		ids = []guild.ID{one}
	}
	if b.Guild != s.guild.ID {
		return // Discord ignores guilds that the bot is not in
	}
	found, missing := []*guild.Member{}, []guild.ID{}
	for _, id := range ids {
		if a := s.guild.Account(id); a != nil {
			found = append(found, s.guild.MemberOf(a, true))
		} else {
			missing = append(missing, id)
		}
	}
	if b.Users == nil {
		query, limit := "", b.Limit
		if b.Query != nil {
			query = *b.Query
		}
		if query != "" {
			limit = min(cmp.Or(limit, mostFound), mostFound)
		}
		for _, a := range s.guild.Accounts {
			if a.Named(query) && (limit == 0 || len(found) < limit) {
				found = append(found, s.guild.MemberOf(a, true))
			}
		}
	}
	// A piece has a thousand members at most.
	pieces := slices.Collect(slices.Chunk(found, 1000))
	if len(pieces) == 0 {
		pieces = [][]*guild.Member{{}}
	}
	for i, piece := range pieces {
		data := object{"guild_id": s.guild.ID, "members": piece, "chunk_index": i, "chunk_count": len(pieces)}
		if b.Nonce != "" {
			data["nonce"] = b.Nonce
		}
		if len(missing) > 0 {
			data["not_found"] = missing
		}
		s.tell(k.session, "GUILD_MEMBERS_CHUNK", data)
	}
}
