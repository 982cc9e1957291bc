package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// Conversation returns a history of n messages: prompts, calls, results, answers.
func Conversation(t testing.TB, n int) []*model.Message {
	t.Helper()
	var out []*model.Message
	for i := 0; len(out) < n; i++ {
		id := fmt.Sprintf("call-%d", i)
		for _, m := range []*model.Message{
			Message(t, model.User, chat.Text{Text: fmt.Sprintf("question %d, %s", i, strings.Repeat("and so on ", 20))}),
			Message(t, model.Assistant, chat.Text{Text: "let me look"}, chat.ToolUse{ID: id, Name: "read", Args: json.RawMessage(`{"path":"a.go"}`)}),
			Message(t, model.User, chat.ToolResult{Call: id, Name: "read", Blocks: chat.TextBlocks(strings.Repeat("func f() { return \"<x>\" }\n", 40))}),
			Message(t, model.Assistant, chat.Text{Text: fmt.Sprintf("answer %d", i)}),
		} {
			if len(out) < n {
				out = append(out, m)
			}
		}
	}
	return out
}

// promises checks what holds for the bytes of every request.
func promises(t *testing.T, m Maker) {
	head := m.head(&model.Head{System: "be kind", Tools: []model.ToolSpec{{Name: "read", Description: "reads"}}})
	t.Run("the same twice", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		r := b.request(m.conversation(t, 21)...)
		r.Head, r.Marks = head, []int{3, 20}
		first := b.prepare(r)
		if second := b.prepare(r); !bytes.Equal(first.Body, second.Body) || first.Estimate != second.Estimate {
			t.Error("the same request gave other bytes")
		}
		fresh := b.request(m.conversation(t, 21)...)
		fresh.Head, fresh.Marks = &model.Head{System: head.System, Tools: head.Tools}, r.Marks
		if other := b.prepare(fresh); !bytes.Equal(first.Body, other.Body) {
			t.Error("an equal request gave other bytes")
		}
		if !json.Valid(first.Body) || first.Model != m.Model || first.Estimate < len(first.Body)/8 {
			t.Errorf("prepared %s, estimate %d", first.Body, first.Estimate)
		}
	})
	t.Run("prefix", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		all := m.conversation(t, 41)
		var before []byte
		for n := 1; n <= len(all); n++ {
			r := b.request(all[:n]...)
			r.Head, r.Marks = head, []int{n / 2, n - 1}
			messages := messagesOf(t, m, b.prepare(r).Body)
			if len(messages) < 2 || !bytes.HasPrefix(messages, before) {
				t.Fatalf("the messages of request %d do not begin with those of request %d", n, n-1)
			}
			before = messages
		}
	})
	t.Run("marks", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		all := m.conversation(t, 9)
		for _, h := range []*model.Head{nil, {System: "s"}, head} {
			for _, marks := range [][]int{nil, {0}, {0, 4, 8}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, {-1, 99}} {
				r := b.request(all...)
				r.Head, r.Marks = h, marks
				out := b.must(r)
				_ = out
				n := bytes.Count(b.last().Body, m.mark())
				want := min(len(marks), 4)
				if h != nil && h.System != "" {
					want = min(len(marks), 3) + 1
				}
				if h == head && !m.NoToolMarks {
					want = min(len(marks), 2) + 2
				}
				if len(marks) == 2 { // neither exists
					want -= 2
				}
				if !m.CacheWrites {
					want = 0
				}
				if n != want {
					t.Errorf("marks %v under head %+v: %d in the request, want %d", marks, h != nil, n, want)
				}
			}
		}
	})
}

// messagesOf returns the list of messages in a body, by whichever name the
// format uses, without its end and without marks.
func messagesOf(t *testing.T, m Maker, body []byte) []byte {
	t.Helper()
	var b struct {
		Messages json.RawMessage `json:"messages"`
		Input    json.RawMessage `json:"input"`
		Contents json.RawMessage `json:"contents"`
		Prompt   json.RawMessage `json:"prompt"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	if b.Prompt != nil {
		return bytes.TrimSuffix(b.Prompt, []byte(`"`))
	}
	list := slices.Concat(b.Messages, b.Input, b.Contents) // one of them
	bare := bytes.ReplaceAll(list, m.mark(), nil)
	return bytes.TrimSuffix(bare, []byte("]"))
}

// BenchmarkPrepare measures assembling a request of n messages when all but the newest were sent before.
func BenchmarkPrepare(b *testing.B, m Maker, n int) {
	p := m.New(Config{Key: Key, BaseURL: "http://127.0.0.1:1"})
	all := m.conversation(b, n)
	r := model.Request{
		Model: m.Model, Messages: all, Marks: []int{n / 2, n - 1},
		Head: m.head(&model.Head{System: "be kind", Tools: []model.ToolSpec{{Name: "read", Description: "reads"}}}),
	}
	prep, err := p.Prepare(r)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(prep.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Prepare(r); err != nil {
			b.Fatal(err)
		}
	}
}
