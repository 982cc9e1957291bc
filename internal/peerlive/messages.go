package peerlive

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"chorus/internal/await"
	"chorus/internal/chat"
)

// Carrier carries messages between nodes. They may be lost, but messages
// of one node are never reordered or duplicated.
type Carrier interface {
	// Reachable reports whether it currently works.
	Reachable() bool
	// Publish sends a message to the listeners, without waiting for them.
	Publish(subject string, data []byte) error
	// Listen calls hear for each message, one after the other, until stop is
	// called; it calls hear with nil when some may have been lost. hear must not
	// block. A subject may end in ".*" for any last word.
	Listen(subject string, hear func(subject string, data []byte)) (stop func())
}

// A stream of messages works like this. The watching node asks the owner's node, under a subject
// with its id, and names a subject of its own, to which the owner sends lines numbered from 1.
// It repeats the request every renewEvery, and the owner stops when it no longer does. The owner
// sends a line at least every messageAlive. After messageSilence, or when a number is missing,
// the watching node switches to HTTP.
const (
	asks, answers  = "live.ask.", "live.to."
	renewEvery     = 2 * time.Second
	lease          = 4 * renewEvery
	messageAlive   = time.Second
	messageSilence = 3 * messageAlive
	// maxText is how much text one message has; servers accept 1 MB.
	maxText = 64 << 10
	// maxInbox is how many messages may wait for a slow node.
	maxInbox = 1024
)

// errCarrier means that messages do not arrive; HTTP may work.
var errCarrier = errors.New("the owner's messages do not come")

// ask is a request for a thread.
type ask struct {
	Thread chat.ThreadID `json:"thread"`
	Reply  string        `json:"reply"`
	At     int64         `json:"at"` // Unix seconds
	Stop   bool          `json:"stop,omitempty"`
}

// Messages are encrypted, so others on the server can neither read nor forge them. Requests
// share a key and have random nonces. A stream has a key of its own, derived from the
// subject's word and a salt that the owner chooses, and its nonce is the number. So a
// replayed request begins a stream under a different key.
const saltSize = 16

func sealer(secret, purpose string) (cipher.AEAD, error) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("messages\n" + purpose))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func sealAsk(secret, subject string, a ask) ([]byte, error) {
	aead, err := sealer(secret, asks)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, text, []byte(subject)), nil
}

// openAsk reads a request that a node on the same database made recently.
func openAsk(secret, subject string, data []byte, now time.Time) (a ask, ok bool) {
	aead, err := sealer(secret, asks)
	if err != nil || secret == "" || len(data) < aead.NonceSize() {
		return a, false
	}
	text, err := aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], []byte(subject))
	if err != nil || json.Unmarshal(text, &a) != nil {
		return a, false
	}
	_, err = chat.ParseThreadID(string(a.Thread))
	return a, err == nil && a.Reply != "" && !strings.ContainsAny(a.Reply, ".*> ") && now.Sub(time.Unix(a.At, 0)).Abs() <= skew
}

// numbered encrypts and decrypts the lines of one stream.
type numbered struct {
	salt  []byte
	aead  cipher.AEAD
	count uint64
}

func newNumbered(secret, reply string, salt []byte) (*numbered, error) {
	aead, err := sealer(secret, answers+reply+"\n"+string(salt))
	return &numbered{salt: salt, aead: aead}, err
}

func nonce(count uint64, size int) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, size-8), count)
}

func (n *numbered) seal(line []byte) []byte {
	n.count++
	head := binary.BigEndian.AppendUint64(append([]byte(nil), n.salt...), n.count)
	return n.aead.Seal(head, nonce(n.count, n.aead.NonceSize()), line, nil)
}

// open reads the next line. ok is false if the data is not from this stream.
// gap means that it is, but earlier lines are missing.
func (n *numbered) open(data []byte) (line []byte, ok, gap bool) {
	count := binary.BigEndian.Uint64(data[saltSize:])
	line, err := n.aead.Open(nil, nonce(count, n.aead.NonceSize()), data[saltSize+8:], nil)
	if err != nil || count <= n.count {
		return nil, false, false
	}
	gap = count != n.count+1
	n.count = count
	return line, true, gap
}

// ServeMessages answers other nodes over a carrier until ctx ends, like
// ServeHTTP over HTTP. self returns this node's current id.
func (s *Server) ServeMessages(ctx context.Context, carrier Carrier, self func() string) {
	ctx, cancel := context.WithCancel(ctx)
	m := &messenger{server: s, ctx: ctx, carrier: carrier, streams: map[string]*messageStream{}}
	stop := carrier.Listen(asks+"*", func(subject string, data []byte) {
		if me := self(); data != nil && me != "" && subject == asks+me {
			if a, ok := openAsk(s.Secret, subject, data, time.Now()); ok {
				m.asked(a)
			}
		}
	})
	select {
	case <-ctx.Done():
	case <-s.Stopping:
	}
	stop()
	m.end()
	cancel()
	m.on.Wait()
}

// messenger holds the streams of one node.
type messenger struct {
	server  *Server
	ctx     context.Context
	carrier Carrier
	on      sync.WaitGroup

	mu      sync.Mutex
	streams map[string]*messageStream // by the word in their subject
	ended   bool
}

type messageStream struct {
	cancel context.CancelFunc
	lease  *time.Timer // ends the stream unless it is requested again
}

// asked begins, renews or ends a stream.
func (m *messenger) asked(a ask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.streams[a.Reply]
	switch {
	case was != nil && a.Stop:
		was.cancel()
	case was != nil:
		was.lease.Reset(lease)
	case !a.Stop && !m.ended:
		ctx, cancel := context.WithTimeout(m.ctx, longestStream)
		m.streams[a.Reply] = &messageStream{cancel: cancel, lease: time.AfterFunc(lease, cancel)}
		m.on.Go(func() {
			defer m.left(a.Reply)
			m.stream(ctx, cancel, a)
		})
	}
}

func (m *messenger) left(reply string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.streams[reply]
	was.lease.Stop()
	was.cancel()
	delete(m.streams, reply)
}

// end prevents new streams. Current ones end with the server.
func (m *messenger) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}

func (m *messenger) stream(ctx context.Context, cancel context.CancelFunc, a ask) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt)
	lines, err := newNumbered(m.server.Secret, a.Reply, salt)
	if err != nil {
		return
	}
	write := func(l line) bool {
		for _, part := range l.parts(maxText) {
			if m.carrier.Publish(answers+a.Reply, lines.seal(part.encode())) != nil {
				return false
			}
		}
		return true
	}
	if !m.server.enter() {
		return // the other node tries HTTP
	}
	defer m.server.leave()
	pieces, ok := m.server.Source(ctx, a.Thread)
	if !ok {
		write(line{Gone: true})
		return
	}
	m.server.pump(ctx, cancel, pieces, messageAlive, write)
}

// parts splits a line into lines whose texts are at most most bytes long, cut between characters.
func (l line) parts(most int) (out []line) {
	if l.Delta == nil || len(l.Delta.Text) <= most {
		return []line{l}
	}
	for rest := *l.Delta; rest.Text != ""; {
		cut := min(most, len(rest.Text))
		for cut > 1 && cut < len(rest.Text) && !utf8.RuneStart(rest.Text[cut]) {
			cut--
		}
		part := rest
		part.Text = rest.Text[:cut]
		out = append(out, line{Delta: &part})
		rest.Offset, rest.Text = rest.Offset+cut, rest.Text[cut:]
	}
	return out
}

// overMessages publishes what a node sends over the carrier until that ends.
func (c *Client) overMessages(ctx context.Context, from Node, thread chat.ThreadID, publish func(chat.Live)) (came bool, err error) {
	reply := rand.Text()
	inbox, lost := make(chan []byte, maxInbox), make(chan struct{}, 1)
	stop := c.Carrier.Listen(answers+reply, func(_ string, data []byte) {
		if len(data) > saltSize+8 {
			select {
			case inbox <- data:
				return
			default: // too many are waiting
			}
		}
		await.Notify(lost)
	})
	defer stop()
	say := func(stop bool) {
		subject := asks + from.ID
		if data, err := sealAsk(c.Secret, subject, ask{Thread: thread, Reply: reply, At: time.Now().Unix(), Stop: stop}); err == nil {
			_ = c.Carrier.Publish(subject, data) // missing messages are noticed
		}
	}
	say(false)
	defer say(true)
	renew, quiet := time.NewTicker(renewEvery), time.NewTimer(messageAlive)
	defer renew.Stop()
	defer quiet.Stop()
	var lines *numbered
	for {
		select {
		case <-ctx.Done():
			return came, context.Cause(ctx)
		case <-lost:
			return came, errCarrier
		case <-quiet.C:
			return came, errCarrier
		case <-renew.C:
			say(false)
		case data := <-inbox:
			if lines == nil || string(data[:saltSize]) != string(lines.salt) {
				if lines != nil {
					continue // from another stream to this subject, which somebody else requested
				}
				if lines, err = newNumbered(c.Secret, reply, data[:saltSize]); err != nil {
					return came, err
				}
			}
			text, ok, gap := lines.open(data)
			switch {
			case !ok && lines.count == 0:
				lines = nil // no node sent that
				continue
			case !ok:
				continue
			case gap:
				return came, errCarrier
			}
			quiet.Reset(messageSilence)
			l, err := decode(text)
			switch {
			case err != nil:
				return came, err
			case l.Gone:
				return came, errNotThere
			case l.End:
				return came, nil
			case l.piece() != nil:
				came = true
				publish(l.piece())
			}
		}
	}
}
