package transcript

import (
	"fmt"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// A room with a picture in every message: after a roll the ones before the lasting cache
// mark are words, unless they may be cached.
func TestPicturesBeforeTheCacheMark(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{false, true} {
		l := New(nil)
		seq := int64(0)
		tell := func(body chat.Body) {
			t.Helper()
			seq++
			if err := l.Apply(chat.Event{Seq: seq, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		settings := chat.Settings{Window: chat.Window{Messages: 30, Threshold: 10, CacheImages: cached}}
		for i := range 50 {
			tell(chat.Received{From: chat.Participant{Name: "Ada"}, Blocks: chat.Blocks{chat.Text{Text: "look"}, chat.Image{Blob: fmt.Sprint(i), Name: "p"}}})
		}
		roll, due := l.RollDue(settings, time.Now())
		if !due {
			t.Fatal("fifty messages in a window of thirty, and no roll")
		}
		tell(roll)
		if again, due := l.RollDue(settings, time.Now()); due {
			t.Errorf("a roll behind a roll: %+v", again)
		}
		req, err := l.Request(&model.Head{}, l.Seq())
		if err != nil {
			t.Fatal(err)
		}
		var shown []int
		for i, m := range req.Messages {
			if _, ok := m.Blocks[len(m.Blocks)-1].(chat.Image); ok {
				shown = append(shown, i)
			}
		}
		want := 20
		if cached {
			want = 30
		}
		if len(req.Messages) != 30 || len(shown) != want || !cached && shown[0] < req.Marks[0] {
			t.Errorf("cached %v: %d messages, pictures in %v, marks %v", cached, len(req.Messages), shown, req.Marks)
		}
	}
}
