package transcript

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// Files come later than the words they were attached to: before a run takes them, before a
// request shows them, or behind what the model has seen.
func TestFilesThatComeLater(t *testing.T) {
	t.Parallel()
	wanted := chat.Blocks{chat.Text{Text: "look"}, chat.File{Name: "a.png", Path: "attachments/1_a.png", Wanted: true}}
	come := chat.Edited{Seq: 1, Files: true, Blocks: chat.Blocks{chat.File{Name: "a.png", Path: "attachments/1_a.png"}, chat.Image{Blob: "h", Name: "a.png"}}}
	mended := chat.Edited{Seq: 1, Blocks: chat.TextBlocks("look here")}
	for name, c := range map[string]struct {
		bodies []chat.Body
		want   string
	}{
		"while it waits":   {[]chat.Body{come, chat.Took{Seqs: []int64{1}}}, "look [a.png wanted=false] (a.png)"},
		"taken, not shown": {[]chat.Body{chat.Took{Seqs: []int64{1}}, come}, "look [a.png wanted=false] (a.png)"},
		"shown": {[]chat.Body{chat.Took{Seqs: []int64{1}}, chat.Asked{Sees: 2}, chat.Said{Blocks: chat.TextBlocks("ok")}, come},
			"look [a.png wanted=true] | ok | <note about=\"files\">\nThe files of an earlier message of Ada have come:\n</note> [a.png wanted=false] (a.png)"},
		"words changed before":       {[]chat.Body{mended, come, chat.Took{Seqs: []int64{1}}}, "look here [a.png wanted=false] (a.png)"},
		"words changed after":        {[]chat.Body{come, mended, chat.Took{Seqs: []int64{1}}}, "look here [a.png wanted=false] (a.png)"},
		"taken back before it came":  {[]chat.Body{chat.Deleted{Seq: 1}, come}, ""},
		"shown, then the roll comes": {[]chat.Body{chat.Took{Seqs: []int64{1}}, chat.Asked{Sees: 2}, chat.Said{Blocks: chat.TextBlocks("ok")}, mended, come, chat.Asked{Sees: 6}, chat.Rolled{KeepFrom: 1}}, "look here [a.png wanted=false] (a.png) | ok"},
	} {
		l := New(nil)
		for i, body := range append([]chat.Body{chat.Received{From: chat.Participant{Name: "Ada"}, Prompt: true, Blocks: wanted}}, c.bodies...) {
			if err := l.Apply(chat.Event{Seq: int64(i + 1), Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		req, err := l.Request(&model.Head{}, l.Seq())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, m := range req.Messages {
			var parts []string
			for _, b := range m.Blocks {
				switch v := b.(type) {
				case chat.Text:
					parts = append(parts, v.Text)
				case chat.File:
					parts = append(parts, fmt.Sprintf("[%s wanted=%v]", v.Name, v.Wanted))
				case chat.Image:
					parts = append(parts, "("+v.Name+")")
				}
			}
			out = append(out, strings.Join(parts, " "))
		}
		if got := strings.Join(out, " | "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: the model sees %s", name, got)
		}
	}
}
