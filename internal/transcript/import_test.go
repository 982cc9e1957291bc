package transcript

import (
	"slices"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// twoLines is what every import brings here.
func twoLines(string) ([]byte, error) {
	return []byte(`[{"role":"user","from":{"name":"Cy"},"blocks":[{"type":"text","text":"from elsewhere"}]},
		{"role":"assistant","blocks":[{"type":"text","text":"said there"}]}]`), nil
}

func shown(t *testing.T, l *Log) []string {
	t.Helper()
	req, err := l.Request(&model.Head{}, l.Seq())
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckPairs(req.Messages); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range req.Messages {
		out = append(out, m.Blocks.Text())
	}
	return out
}

func TestAnImportInsteadOfEverything(t *testing.T) {
	t.Parallel()
	heard := func(text string) chat.Body {
		return chat.Received{From: chat.Participant{Name: "Ada"}, Blocks: chat.TextBlocks(text)}
	}
	run := []chat.Body{
		chat.Received{Blocks: chat.TextBlocks("asked"), Prompt: true}, chat.RunStarted{Run: "r"}, chat.Took{Run: "r", Seqs: []int64{2}}, chat.Asked{Sees: 4},
	}
	instead := chat.Imported{Blob: "x", Count: 2, Instead: true}
	answer := []chat.Body{chat.Said{Blocks: chat.TextBlocks("answer"), Stop: chat.StopEnd}, chat.RunEnded{Run: "r", Reason: chat.EndDone}}
	for name, c := range map[string]struct {
		events []chat.Body
		want   []string
	}{
		"at rest": {slices.Concat([]chat.Body{heard("old")}, run, answer, []chat.Body{instead, heard("new")}), []string{"from elsewhere", "said there", "new"}},
		"a clear": {[]chat.Body{heard("old"), chat.Imported{Instead: true}, heard("new")}, []string{"new"}},
		"while a run is on, that keeps what it has": {slices.Concat([]chat.Body{heard("old")}, run, []chat.Body{instead, heard("meanwhile")}), []string{"old", "asked", "meanwhile"}},
		"and changes places when it ends": {slices.Concat([]chat.Body{heard("old")}, run, []chat.Body{instead, heard("meanwhile")}, answer, []chat.Body{heard("new")}),
			[]string{"from elsewhere", "said there", "answer", "meanwhile", "new"}},
		"the last one holds": {[]chat.Body{heard("old"), instead, heard("between"), chat.Imported{Instead: true}, heard("new")}, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &folder{fatal: t.Fatal, log: New(twoLines)}
			for _, body := range c.events {
				f.tell(body)
			}
			if got := shown(t, f.log); !slices.Equal(got, c.want) {
				t.Errorf("the model sees %q, not %q", got, c.want)
			}
			data, err := f.log.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			again, err := Restore(data, twoLines)
			if err != nil {
				t.Fatal(err)
			}
			if again.Run() != nil {
				if err := again.Apply(chat.Event{Seq: again.Seq() + 1, Body: chat.RunEnded{Run: "r"}}); err != nil {
					t.Fatal(err)
				}
				if got := shown(t, again)[0]; got != "from elsewhere" {
					t.Errorf("a restart forgot the import: %q", got)
				}
			}
		})
	}
}
