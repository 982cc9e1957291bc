package modeltest

import (
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// oneText checks that a base model is sent the messages as one text,
// with nothing in between and nothing removed.
func oneText(t *testing.T, m Maker) {
	b := setup(t, m)
	for _, prefill := range []string{"", "eve:", "eve: ", "\n\n"} {
		r := b.request(
			Message(t, model.User, chat.Text{Text: "ada: hello\n\n"}),
			Message(t, model.Assistant, chat.Text{Text: "eve: good "}, chat.Text{Text: "day \"<ä>\"\n\n"}, chat.Text{}),
			Message(t, model.User, chat.Text{Text: "bob: \u2028 me too\n\n"}),
		)
		r.Prefill = prefill
		b.must(r)
		if got, want := b.last().Messages[0].Text, "ada: hello\n\neve: good day \"<ä>\"\n\nbob: \u2028 me too\n\n"+prefill; got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
}

// onlyText checks that a base model rejects everything else and says what to do.
func onlyText(t *testing.T, m Maker) {
	b := setup(t, m)
	b.blob["h1"] = []byte("\x89PNG fake picture")
	hello := Message(t, model.User, chat.Text{Text: "hello"})
	for name, change := range map[string]func(*model.Request){
		"picture": func(r *model.Request) {
			r.Messages = append(r.Messages, Message(t, model.User, chat.Image{Blob: "h1", MediaType: "image/png"}))
		},
		"tools": func(r *model.Request) { r.Head = &model.Head{Tools: []model.ToolSpec{{Name: "bash"}}} },
		"call": func(r *model.Request) {
			r.Messages = append(r.Messages, Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "bash"}))
		},
		"result": func(r *model.Request) {
			r.Messages = append(r.Messages, Message(t, model.User, chat.ToolResult{Call: "c-1", Blocks: chat.TextBlocks("ok")}))
		},
		"budget": func(r *model.Request) { r.Settings.ThinkingBudget = 2000 },
		"reasoning": func(r *model.Request) {
			r.Messages = append(r.Messages, Message(t, model.Assistant, chat.Thinking{Text: "hm"}))
		},
	} {
		r := b.request(hello)
		change(&r)
		_, err := b.p.Prepare(r)
		if model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), m.Model) || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
