package model_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// A digest does not depend on what was computed before it: requests grow, lose messages from anywhere, change their
// head and have prefills.
func TestDigestsAreThoseOfEachRequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		heads := []*model.Head{{System: "one"}, {System: "two"}}
		var digests model.Digests
		var last []*model.Message
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			messages := slices.Clone(last)
			if len(messages) > 0 && rapid.Bool().Draw(t, "loses one") {
				i := rapid.IntRange(0, len(messages)-1).Draw(t, "which")
				messages = slices.Delete(messages, i, i+1)
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				m, err := model.NewMessage(model.User, chat.Participant{}, chat.TextBlocks(rapid.String().Draw(t, "text")))
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, m)
			}
			known := len(last)
			if len(messages) < known || !slices.Equal(messages[:known], last) {
				known = 0
			}
			r := model.Request{Head: rapid.SampledFrom(heads).Draw(t, "head"), Messages: messages, Prefill: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "prefill")}
			got, err := digests.Next(r, known)
			want, wantErr := r.Digest()
			if err != nil || wantErr != nil || got != want {
				t.Fatalf("%q, %v; on its own %q, %v", got, err, want, wantErr)
			}
			last = messages
		}
	})
}

// What is looked for in every window is noted once.
func TestMessagesKnowTheirCallsAndPictures(t *testing.T) {
	t.Parallel()
	picture := chat.Image{MediaType: "image/png", Size: 3}
	m, err := model.NewMessage(model.Assistant, chat.Participant{}, chat.Blocks{chat.Text{Text: "x"}, chat.ToolUse{ID: "a", Name: "t"}, picture,
		chat.ToolUse{ID: "b", Name: "t"}, chat.ToolResult{Call: "a", Blocks: chat.Blocks{chat.Text{Text: "y"}, picture}}})
	if err != nil || !slices.Equal(m.Calls(), []string{"a", "b"}) || len(m.Pictures()) != 2 {
		t.Errorf("%v, %v, %v", m.Calls(), m.Pictures(), err)
	}
}
