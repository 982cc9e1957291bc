package connector

import (
	"context"
	"errors"
	"testing"
	"time"

	"chorus/internal/journal"
	"chorus/internal/platform"
)

// mortal is a store that a process dies on: after so many writes every other one fails.
type mortal struct {
	Agents
	Pins
	Files
	ReadState
	Outbox
	Conversations
	memos   map[string]string
	cursors map[string]string
	wanted  map[string]int // by lane and key
	left    int
}

func (m *mortal) write() error {
	if m.left--; m.left < 0 {
		return errors.New("killed")
	}
	return nil
}

func (m *mortal) Recall(_ context.Context, kind, key string) ([]byte, error) {
	if v, ok := m.memos[kind+" "+key]; ok {
		return []byte(v), nil
	}
	return nil, nil
}

func (m *mortal) Remember(_ context.Context, kind, key string, value []byte) error {
	if err := m.write(); err != nil {
		return err
	}
	m.memos[kind+" "+key] = string(value)
	return nil
}

func (m *mortal) Cursors(context.Context, string, string) (map[string]string, error) {
	return m.cursors, nil
}

func (m *mortal) SetDesired(_ context.Context, list ...journal.Desired) error {
	if err := m.write(); err != nil {
		return err
	}
	for _, d := range list {
		m.wanted[d.Lane.Channel+" "+d.Key]++
	}
	return nil
}

func (m *mortal) Redact(text string) string { return text }

func (m *mortal) Greets(string) bool { return true }

// Whichever write is the last before the process dies, the greeting is wanted under one name, and not again once it was.
func TestWelcomeOnceWheneverItDies(t *testing.T) {
	t.Parallel()
	for writes := range 6 {
		m := &mortal{memos: map[string]string{}, wanted: map[string]int{}, left: writes}
		b := fakeBot(t, Backend{Agents: m, Pins: m, Files: m, ReadState: m, Outbox: m, Conversations: m})
		joined := platform.Joined{Guild: "9", Name: "Workshop", At: time.Now(), Greet: "100"}
		died := b.joined(t.Context(), joined) != nil
		if died != (writes < 4) {
			t.Fatalf("after %d writes: %v", writes, died)
		}
		m.left = 100
		joined.Greet = "200" // meanwhile another channel would be chosen
		if err := b.joined(t.Context(), joined); err != nil {
			t.Fatal(err)
		}
		if len(m.wanted) != 1 {
			t.Errorf("after %d writes it is wanted as %v", writes, m.wanted)
		}
		m.wanted = map[string]int{} // rows are forgotten after a time
		if err := b.joined(t.Context(), joined); err != nil || len(m.wanted) > 0 {
			t.Errorf("it is wanted again: %v, %v", m.wanted, err)
		}
	}
}

// A home that knows the bot from before does not greet where it was added long ago, and a new one not where it has been for a month.
func TestWelcomeOnlyWhereItIsNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		known bool
		ago   time.Duration
		want  int
	}{{false, time.Hour, 1}, {false, 30 * 24 * time.Hour, 0}, {true, time.Hour, 0}, {true, -time.Hour, 1}} {
		m := &mortal{memos: map[string]string{}, wanted: map[string]int{}, left: 100}
		if c.known {
			m.cursors = map[string]string{"100": "1"}
		}
		b := fakeBot(t, Backend{Agents: m, Pins: m, Files: m, ReadState: m, Outbox: m, Conversations: m})
		if err := b.joined(t.Context(), platform.Joined{Guild: "9", At: time.Now().Add(-c.ago), Greet: "100"}); err != nil || len(m.wanted) != c.want {
			t.Errorf("%+v: %v, %v", c, m.wanted, err)
		}
	}
}
