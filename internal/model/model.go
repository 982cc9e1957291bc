// Package model is the contract between Chorus and whatever answers: how a request is
// assembled, what comes back piece by piece, and how it can fail.
//
// It promises that what was encoded once is sent again byte for byte: a Message is immutable, its digest and
// its wire form are computed once and kept with it, and a request is the concatenation of its messages' wire
// forms. Provider packages do not expose their SDK's types. modeltest is the suite that all of them pass.
package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"iter"
	"sync"

	"chorus/internal/chat"
)

// Model answers requests. Implementations are safe for concurrent use.
type Model interface {
	// Prepare makes the body that Stream would send. It is pure: no network, no
	// clock, and the same request gives the same bytes.
	Prepare(Request) (Prepared, error)
	// Stream sends the body and yields one assistant message in pieces. It ends after Done or
	// after the first error, which is always an *Error. Breaking out of the loop or
	// cancelling ctx cancels the call. It never retries by itself.
	Stream(context.Context, Prepared) iter.Seq2[Chunk, error]
}

// Role says whose turn a message is.
type Role string

// The roles. Tool results are user messages that contain only ToolResult blocks.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of the conversation. Create it with NewMessage
// and do not change it: its encodings are cached.
type Message struct {
	Role   Role
	From   chat.Participant // who spoke, for transforms that show names
	Blocks chat.Blocks

	sum      [sha256.Size]byte
	calls    []string
	pictures []chat.Image

	mu    sync.Mutex
	wires []*Wire
}

// Wire is a message as one provider sends it: its bytes, and the position
// at which a cache mark may be inserted (0: nowhere).
type Wire struct {
	Bytes  []byte
	MarkAt int

	form string
}

// NewMessage returns a message with its fingerprint.
func NewMessage(role Role, from chat.Participant, blocks chat.Blocks) (*Message, error) {
	m := &Message{Role: role, From: from, Blocks: blocks}
	fragment, err := m.Fragment()
	if err != nil {
		return nil, err
	}
	m.sum = sha256.Sum256(fragment)
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.ToolUse:
			m.calls = append(m.calls, b.ID)
		case chat.Image:
			m.pictures = append(m.pictures, b)
		case chat.ToolResult:
			for _, inner := range b.Blocks {
				if picture, ok := inner.(chat.Image); ok {
					m.pictures = append(m.pictures, picture)
				}
			}
		}
	}
	return m, nil
}

// Calls returns the ids of the message's tool calls. Every request looks for them in the whole window.
func (m *Message) Calls() []string { return m.calls }

// Pictures returns the message's images, including those in results.
func (m *Message) Pictures() []chat.Image { return m.pictures }

// Fragment returns the message in our canonical form, which does not depend on any SDK's version.
func (m *Message) Fragment() ([]byte, error) {
	data, err := json.Marshal(struct {
		Role   Role        `json:"role"`
		From   string      `json:"from,omitempty"`
		Blocks chat.Blocks `json:"blocks"`
	}{m.Role, m.From.Name, m.Blocks})
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return data, nil
}

// Encoded returns the message in the given wire form. It calls make, which must be pure, on first use. Nobody
// may change what it returns.
func (m *Message) Encoded(form string, make func(*Message) (Wire, error)) (*Wire, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.wires { // hardly ever more than one
		if w.form == form {
			return w, nil
		}
	}
	w, err := make(m)
	if err != nil {
		return nil, err
	}
	w.form = form
	m.wires = append(m.wires, &w)
	return &w, nil
}

// ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Head is what precedes the messages and stays the same: the system prompt and the tools,
// sorted by name. Like a Message it is immutable and caches its encodings.
type Head struct {
	System string     `json:"system"`
	Tools  []ToolSpec `json:"tools"`
	// Base identifies everything except the files that the system prompt quotes. Documents holds their
	// digests by name. Neither is sent. Heads of earlier versions have neither.
	Base      string            `json:"base,omitempty"`
	Documents map[string]string `json:"documents,omitempty"`

	mu   sync.Mutex
	wire map[string][]byte
}

// Bytes returns the head as it is stored in the journal, whatever the provider.
func (h *Head) Bytes() ([]byte, error) {
	data, err := json.Marshal(struct {
		System    string            `json:"system"`
		Tools     []ToolSpec        `json:"tools"`
		Base      string            `json:"base,omitempty"`
		Documents map[string]string `json:"documents,omitempty"`
	}{h.System, h.Tools, h.Base, h.Documents})
	if err != nil {
		return nil, fmt.Errorf("encode head: %w", err)
	}
	return data, nil
}

// ParseHead parses what Bytes wrote.
func ParseHead(data []byte) (*Head, error) {
	h := new(Head)
	if err := json.Unmarshal(data, h); err != nil {
		return nil, fmt.Errorf("read head: %w", err)
	}
	return h, nil
}

// Encoded returns the head in the wire form called name. It calls make on first use.
func (h *Head) Encoded(name string, make func(*Head) ([]byte, error)) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w, ok := h.wire[name]; ok {
		return w, nil
	}
	w, err := make(h)
	if err != nil {
		return nil, err
	}
	if h.wire == nil {
		h.wire = map[string][]byte{}
	}
	h.wire[name] = w
	return w, nil
}

// Request is everything that a call consists of.
type Request struct {
	Model    string // the provider's name for it
	Head     *Head
	Messages []*Message
	Marks    []int // indexes into Messages after which the prefix is worth caching; the head always is
	Settings chat.Settings
	// Prefill is how the answer must begin. The returned answer does not repeat it.
	// Models that do not support it reject it with BadRequest.
	Prefill string
	// Blob loads the bytes of an image; nil if there are none.
	Blob func(hash string) ([]byte, error)
	// Scratch is a buffer into which Prepare may write the body; may be nil.
	Scratch []byte
}

// Room returns an empty buffer for n bytes: Scratch if it is large enough, or else a new
// one with room to grow, because the next request will be longer.
func (r Request) Room(n int) []byte {
	if cap(r.Scratch) >= n {
		return r.Scratch[:0]
	}
	return make([]byte, 0, n+n/4)
}

// Digest returns the fingerprint of the canonical fragments: head, then messages. Marks are not part of it.
func (r Request) Digest() (string, error) { return new(Digests).Next(r, 0) }

// Digests computes the digests of successive requests, most of which begin with all messages of the last one.
type Digests struct {
	head  *Head
	n     int       // messages that state covers
	state hash.Hash // of head and messages
}

// Next returns the digest of a request whose first known messages are those of the last request.
func (d *Digests) Next(r Request, known int) (string, error) {
	if known == 0 || known != d.n || r.Head != d.head {
		sum, err := r.Head.Encoded("sha256", func(h *Head) ([]byte, error) {
			data, err := h.Bytes()
			sum := sha256.Sum256(data)
			return sum[:], err
		})
		if err != nil {
			return "", err
		}
		d.head, d.n, d.state = r.Head, 0, sha256.New()
		d.state.Write(sum)
	}
	for _, m := range r.Messages[d.n:] {
		d.state.Write(m.sum[:])
	}
	d.n = len(r.Messages)
	return hex.EncodeToString(sumWith(d.state, r.Prefill)), nil
}

// sumWith returns the hash of what was written and more, and keeps the state.
func sumWith(state hash.Hash, more string) []byte {
	if more == "" {
		return state.Sum(nil)
	}
	longer, err := state.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // sha256 can be cloned
	}
	longer.Write([]byte(more))
	return longer.Sum(nil)
}

// Prepared is a request that is ready to send.
type Prepared struct {
	Model    string // the provider's name for it
	Body     []byte
	Estimate int // approximate input tokens
	Prefill  string
	// Dropped are the settings that the body does not contain because the model or
	// the interface does not accept them, each with the reason.
	Dropped []string
	// Reading is what a model that wraps another one needs to read the answer; nil for
	// all others. It must be kept together with the Prepared.
	Reading any
}

// Chunk is a piece of an answer: TextDelta, ThinkingDelta, ArgsDelta, Unreadable or Done.
type Chunk interface{ chunk() }

// TextDelta is more text.
type TextDelta struct{ Text string }

// ThinkingDelta is more reasoning.
type ThinkingDelta struct{ Text string }

// ArgsDelta is more of a tool call's arguments. The first one of a call may be empty.
type ArgsDelta struct{ Call, Text string }

// Unreadable is an event of the stream that could not be parsed. The answer continues without it.
type Unreadable struct{ Data string }

// Done is the whole answer. Blocks contains everything in the order in which the model gave it: Text,
// Thinking and ToolUse. It includes a call that was cut off by the length limit, with whatever arguments
// there were.
type Done struct {
	Blocks chat.Blocks
	Usage  chat.Usage
	Stop   chat.Stop
	ID     string // the provider's id of the answer, for support
}

func (TextDelta) chunk()     {}
func (ThinkingDelta) chunk() {}
func (ArgsDelta) chunk()     {}
func (Unreadable) chunk()    {}
func (Done) chunk()          {}

// Tokens estimates the number of tokens in n bytes of text: four bytes each, rounded up.
func Tokens(n int) int { return (n + 3) / 4 }
