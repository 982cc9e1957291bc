package digest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

// said are messages with the numbers from a to b.
func said(a, b int) []Message {
	var out []Message
	for i := a; i <= b; i++ {
		out = append(out, Message{ID: strconv.Itoa(i), From: chat.Participant{Name: "ada"}, Ours: i%3 == 0, Text: fmt.Sprint("m", i)})
	}
	return out
}

func TestMake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		list   []Message
		kept   Kept
		older  string // first and last
		recent string
		sum    string
	}{
		{"nothing yet", nil, Kept{}, "", "", ""},
		{"few", said(1, 20), Kept{}, "", "1-20", ""},
		{"one too many", said(1, 21), Kept{}, "1-7", "8-21", ""},
		{"as many as are read", said(51, 100), Kept{}, "51-86", "87-100", ""},
		{"right behind a summary", said(1, 21), Kept{"7", "s"}, "", "8-21", "s"},
		{"some more", said(1, 27), Kept{"7", "s"}, "", "8-27", "s"},
		{"too many again", said(1, 28), Kept{"7", "s"}, "8-14", "15-28", "s"},
		{"long away", said(951, 1000), Kept{"7", "s"}, "951-986", "987-1000", "s"},
		{"the boundary was deleted", append(said(1, 6), said(8, 21)...), Kept{"7", "s"}, "", "8-21", "s"},
		{"nothing since", said(1, 7), Kept{"7", "s"}, "", "", "s"},
		{"numbers, not words", said(8, 12), Kept{"9", "s"}, "", "10-12", "s"},
	} {
		p := Make(c.list, c.kept)
		if span(p.Older) != c.older || span(p.Recent) != c.recent || p.Summary != c.sum {
			t.Errorf("%s: sum up %s, tell %s, on top of %q", c.name, span(p.Older), span(p.Recent), p.Summary)
		}
	}
}

func span(list []Message) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].ID + "-" + list[len(list)-1].ID
}

// In a channel that is talked in all the time, and asked in at any time: a summary serves at
// least until seven more messages have come, nothing is told twice, nothing is left out.
func TestTheBoundaryIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var kept Kept
		covered := 0 // by the summary
		paid, last := 0, 0
		for last < 300 {
			last += rapid.IntRange(1, 30).Draw(t, "messages")
			list := said(max(1, last-Fetched+1), last)
			p := Make(list, kept)
			if p.Summary != kept.Summary || len(p.Recent) > Threshold {
				t.Fatalf("tells %d messages, on top of %q", len(p.Recent), p.Summary)
			}
			all := slices.Concat(p.Older, p.Recent)
			from, _ := strconv.Atoi(list[0].ID)
			if want := said(max(from, covered+1), last); !slices.Equal(all, want) {
				t.Fatalf("after %d: %s, want %s", covered, span(all), span(want))
			}
			if len(p.Older) > 0 {
				paid++
				kept = p.Boundary(fmt.Sprint("up to ", p.Older[len(p.Older)-1].ID))
				covered, _ = strconv.Atoi(kept.UpTo)
				if again := Make(list, kept); len(again.Older) > 0 || len(again.Recent) != Recent {
					t.Fatalf("the same again is paid for again: %+v", again)
				}
			}
		}
		if most := last/(Threshold-Recent+1) + 1; paid > most {
			t.Fatalf("%d summaries for %d messages", paid, last)
		}
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	p := Plan{Summary: "they talked", Recent: []Message{
		{ID: "1", Ours: true, Text: "hello"}, {ID: "2", From: chat.Participant{Name: "ada"}, Text: "one"}, {ID: "3", From: chat.Participant{Name: "bob"}, Text: "two"}, {ID: "4", Text: " "},
	}}
	show := func(list []chat.Line) string {
		var out []string
		for _, l := range list {
			out = append(out, l.Role+": "+l.Blocks.Text())
		}
		return strings.Join(out, " | ")
	}
	if got, want := show(p.Lines(false)), "user: [CONVERSATION SUMMARY — earlier messages]\nthey talked | assistant: Understood, I have the conversation context.\nhello | "+
		"user: [from ada]: one\n[from bob]: two"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := p.Lines(true); len(got) != 5 || got[3].From.Name != "ada" || got[3].Blocks.Text() != "one" {
		t.Errorf("got %s", show(got))
	}
	if got := show(Plan{Recent: p.Recent}.Lines(false)); got != "assistant: hello | user: [from ada]: one\n[from bob]: two" {
		t.Errorf("without a summary it begins %s", got)
	}
	p.Older = said(1, 2)
	if got := show(p.Excerpt()); got != "user: they talked | user: m1 | user: m2" {
		t.Errorf("summed up is %s", got)
	}
	if got := (Plan{}).Lines(false); got != nil {
		t.Errorf("nothing becomes %s", show(got))
	}
}
