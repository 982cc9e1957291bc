// Package model is the contract between Chorus and whatever answers: how a request
// is put together, what comes back piece by piece, and how it can fail.
//
// It promises that what was encoded once is sent again byte for byte: a Message is
// immutable, its digest and its wire form are made once and kept with it, and a
// request is its messages' wire forms one after the other. Provider packages keep
// their SDK's types to themselves; modeltest is the suite all of them pass.
package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"chorus/internal/chat"
)

// Model answers requests. Implementations are safe for concurrent use.
type Model interface {
	// Prepare makes the body that Stream would send. It is pure: no network, no
	// clock, the same request gives the same bytes.
	Prepare(Request) (Prepared, error)
	// Stream sends it and yields one assistant message in pieces. It ends after
	// Done or after the first error, which is always an *Error; breaking out of
	// the loop or cancelling ctx cancels the call. It never retries by itself.
	Stream(context.Context, Prepared) iter.Seq2[Chunk, error]
}

// Role is whose turn a message is.
type Role string

// The roles. Results of tools are user messages made of ToolResult blocks only.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of the conversation. Make it with NewMessage and do not
// change it: its encodings are remembered.
type Message struct {
	Role   Role
	From   chat.Participant // who spoke, for transforms that show names
	Blocks chat.Blocks

	sum [sha256.Size]byte

	mu   sync.Mutex
	wire map[string]Wire
}

// Wire is a message as one provider sends it: its bytes, and where in them a
// cache mark may be inserted (0: nowhere).
type Wire struct {
	Bytes  []byte
	MarkAt int
}

// NewMessage makes a message and its fingerprint.
func NewMessage(role Role, from chat.Participant, blocks chat.Blocks) (*Message, error) {
	m := &Message{Role: role, From: from, Blocks: blocks}
	fragment, err := m.Fragment()
	if err != nil {
		return nil, err
	}
	m.sum = sha256.Sum256(fragment)
	return m, nil
}

// Fragment is the message in our canonical form, which no SDK's version changes.
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

// Encoded gives the message in the wire form called name, making it on first
// use. make must be pure.
func (m *Message) Encoded(name string, make func(*Message) (Wire, error)) (Wire, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w, ok := m.wire[name]; ok {
		return w, nil
	}
	w, err := make(m)
	if err != nil {
		return Wire{}, err
	}
	if m.wire == nil {
		m.wire = map[string]Wire{}
	}
	m.wire[name] = w
	return w, nil
}

// ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Head is what stands before the messages and stays: the system prompt and the
// tools, sorted by name. Like a Message it is immutable and remembers its encodings.
type Head struct {
	System string     `json:"system"`
	Tools  []ToolSpec `json:"tools"`
	// Base names all of it but the files that the system prompt quotes; Documents are digests of these, by their names. They
	// are not sent. Heads of earlier versions have neither.
	Base      string            `json:"base,omitempty"`
	Documents map[string]string `json:"documents,omitempty"`

	mu   sync.Mutex
	wire map[string][]byte
}

// Bytes is the head as it is kept in the journal, whatever the provider.
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

// ParseHead reads what Bytes wrote.
func ParseHead(data []byte) (*Head, error) {
	h := new(Head)
	if err := json.Unmarshal(data, h); err != nil {
		return nil, fmt.Errorf("read head: %w", err)
	}
	return h, nil
}

// Encoded gives the head in the wire form called name, making it on first use.
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

// Request is everything a call is made of.
type Request struct {
	Model    string // as the provider calls it
	Head     *Head
	Messages []*Message
	Marks    []int // indexes into Messages behind which the prefix is worth caching; the head always is
	Settings chat.Settings
	// Prefill is how the answer must begin; the answer that comes back does not
	// repeat it. Refused with BadRequest by models that cannot.
	Prefill string
	// Blob loads the bytes of an image; nil when there are none.
	Blob func(hash string) ([]byte, error)
	// Scratch is room that Prepare may write the body into; may be nil.
	Scratch []byte
}

// Room is an empty buffer for n bytes: the scratch if that is enough, else a new
// one with room to grow, since the next request will be longer.
func (r Request) Room(n int) []byte {
	if cap(r.Scratch) >= n {
		return r.Scratch[:0]
	}
	return make([]byte, 0, n+n/4)
}

// Digest is the fingerprint of the canonical fragments: head, then messages.
// Marks are not part of it.
func (r Request) Digest() (string, error) {
	sum, err := r.Head.Encoded("sha256", func(h *Head) ([]byte, error) {
		data, err := h.Bytes()
		sum := sha256.Sum256(data)
		return sum[:], err
	})
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(sum)
	for _, m := range r.Messages {
		h.Write(m.sum[:])
	}
	if r.Prefill != "" {
		h.Write([]byte(r.Prefill))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Prepared is a request ready to be sent.
type Prepared struct {
	Model    string // as the provider calls it
	Body     []byte
	Estimate int // input tokens, roughly
	Prefill  string
	// Dropped are the settings that the body does not carry, each with the reason, because the
	// model or the interface does not take them.
	Dropped []string
	// Reading is what a model that stands before another one must know to read the
	// answer; nil for everybody else. Whoever keeps a Prepared keeps it too.
	Reading any
}

// Chunk is a piece of an answer: TextDelta, ThinkingDelta, ArgsDelta, Unreadable or Done.
type Chunk interface{ chunk() }

// TextDelta is more text.
type TextDelta struct{ Text string }

// ThinkingDelta is more reasoning.
type ThinkingDelta struct{ Text string }

// ArgsDelta is more of a tool call's arguments. The first one of a call may be empty.
type ArgsDelta struct{ Call, Name, Text string }

// Unreadable is an event of the stream that could not be read; the answer goes on without it.
type Unreadable struct{ Data string }

// Done is the whole answer. Blocks has everything in the order the model gave it:
// Text, Thinking and ToolUse; a call cut off by the length limit is in it too, with
// whatever arguments there were.
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

// Tokens is a rough count of tokens in n bytes of text: four bytes each, rounded up.
func Tokens(n int) int { return (n + 3) / 4 }
