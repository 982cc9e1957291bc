package window

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// talk is n messages of ten characters.
func talk(n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{Text: "0123456789", Size: 10, Heard: true}
	}
	return items
}

func with(items []Item, change func([]Item)) []Item {
	change(items)
	return items
}

// The letters are the cases of the behaviour research on Chapter3.
func TestBuild(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		items  []Item
		since  int
		limits Limits
		want   Plan
	}{
		{"B38 the threshold is reached", talk(100), 50, Limits{Messages: 30, Threshold: 50}, Plan{From: 70, Rolled: true}},
		{"B39 one message before it", talk(100), 49, Limits{Messages: 30, Threshold: 50}, Plan{}},
		{"B41 characters wait for the threshold too", talk(100), 0, Limits{Characters: 95, Threshold: 50}, Plan{}},
		{"B42 the hard maximum does not wait", talk(100), 0, Limits{Characters: 95, HardMax: 500, Threshold: 50}, Plan{From: 91, Rolled: true}},
		{"both limits hold", talk(100), 50, Limits{Messages: 30, Characters: 95, Threshold: 50}, Plan{From: 91, Rolled: true}},
		{"a hard maximum alone", talk(100), 0, Limits{HardMax: 500}, Plan{From: 50, Rolled: true}},
		{"B8 no threshold means at once", talk(31), 1, Limits{Messages: 30}, Plan{From: 1, Rolled: true}},
		{"nothing is over", talk(30), 99, Limits{Messages: 30, Characters: 300, Threshold: 50}, Plan{}},
		{"no limits", talk(1000), 1000, Limits{}, Plan{}},
		{"nobody spoke", nil, 100, Limits{Messages: 1, HardMax: 1}, Plan{}},
		{"never empty: the newest is larger than the limit",
			with(talk(5), func(it []Item) { it[4].Size = 1000 }), 50, Limits{Characters: 95, Threshold: 50}, Plan{From: 4, Rolled: true}},
		{"never empty: with its call",
			with(talk(5), func(it []Item) { it[3].Own, it[4].Result, it[4].Size = true, true, 1000 }), 50, Limits{Characters: 95, Threshold: 50}, Plan{From: 3, Rolled: true}},
		{"a result does not lose its call",
			with(talk(10), func(it []Item) { it[6].Own, it[7].Result = true, true }), 50, Limits{Messages: 3, Threshold: 50}, Plan{From: 8, Rolled: true}},
		{"B32 own messages in a row are one",
			with(talk(10), func(it []Item) { it[7].Own, it[8].Own, it[9].Own = true, true, true }), 50, Limits{Messages: 3, Threshold: 50}, Plan{From: 5, Rolled: true}},
		{"pictures, the newest first",
			with(talk(4), func(it []Item) {
				it[0].Images = []int64{1}
				it[1].Images = []int64{1, 1, 1}
				it[3].Images = []int64{1, 1}
			}), 0,
			Limits{Images: 4}, Plan{Images: 4, Dimmed: true}},
		{"pictures by size",
			with(talk(3), func(it []Item) { it[0].Images = []int64{60}; it[2].Images = []int64{50, 40} }), 0, Limits{Images: 9, ImageBytes: 100}, Plan{Images: 2, Dimmed: true}},
		{"pictures that all fit", with(talk(3), func(it []Item) { it[0].Images = []int64{60} }), 0, Limits{Images: 1}, Plan{Images: 1}},
		{"pictures that a roll takes away need no dimming",
			with(talk(3), func(it []Item) { it[0].Images = []int64{1, 1} }), 9, Limits{Messages: 1, Images: 1}, Plan{From: 2, Rolled: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Build(c.items, c.since, c.limits)
			if (got.Because != "") != (got.Rolled || got.Dimmed) {
				t.Errorf("says %q", got.Because)
			}
			got.Because = ""
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	if got := Mark(100); got != 80 { // B35
		t.Errorf("of 100: %d", got)
	}
	if got := Mark(5); got != 0 { // B36
		t.Errorf("of 5: %d", got)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		".x": true, "<reply:@bob> .x": true, "  .x": true, "...three": true, // B30
		"x": false, "a.b": false, "<reply:@bob> x": false, "<reply:": false, "": false, "\U0001F643": false,
	} {
		if got := Hidden(Item{Text: text, Heard: true}); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if Hidden(Item{Text: text}) {
			t.Errorf("%q was said to the agent", text)
		}
	}
	if !Hidden(Item{Text: "x", Faced: true}) || !IsFace("\U0001FAE5") || !IsFace(":dotted_line_face:") || IsFace("\U0001F643") {
		t.Error("the dotted face hides, no other does")
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	if got := Clip("grüße", 5); got != "grüße" {
		t.Error(got)
	}
	if got := Clip("grüße an alle", 5); got != "grüße\n[cut here: the message has 13 characters, 5 are shown]" {
		t.Error(got)
	}
	if got := Attachment(`a"<b>.txt`, "äää</attachment>\n", 5); got != "<attachment filename=\"a'(b).txt\" [truncated]>\nää\n</attachment>" {
		t.Error(got)
	}
	if got := Attachment("a", "x</attachment>y", 0); strings.Count(got, "</attachment>") != 1 {
		t.Error(got)
	}
}

// Whatever the conversation: whole pairs, within the limits or a single message, and
// a second look at what is left changes nothing.
func TestBuildProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			return Item{Size: rapid.IntRange(0, 200).Draw(t, "size"), Own: kind == 1, Result: kind == 2,
				Images: rapid.SliceOfN(rapid.Int64Range(0, 100), 0, 3).Draw(t, "images")}
		}), 0, 60).Draw(t, "items")
		l := Limits{Messages: rapid.IntRange(0, 30).Draw(t, "messages"), Characters: rapid.IntRange(0, 2000).Draw(t, "characters"),
			HardMax: rapid.IntRange(0, 4000).Draw(t, "hard"), Threshold: rapid.IntRange(0, 20).Draw(t, "threshold"),
			Images: rapid.IntRange(0, 5).Draw(t, "pictures"), ImageBytes: rapid.Int64Range(0, 300).Draw(t, "bytes")}
		p := Build(items, rapid.IntRange(0, 40).Draw(t, "since"), l)
		kept := items[p.From:]
		if len(items) > 0 && len(kept) == 0 {
			t.Fatal("nothing is left")
		}
		if p.From > 0 && (kept[0].Result || joined(items, p.From)) {
			t.Fatalf("cut inside of a message at %d", p.From)
		}
		count, size := measure(kept)
		if again := Build(kept, 0, l); again.Rolled && count > 1 && !(l.HardMax > 0 && size > l.HardMax) {
			t.Fatalf("rolls again at once: %+v", again)
		}
		if l.Images > 0 && p.Images > l.Images {
			t.Fatalf("%d pictures", p.Images)
		}
	})
}
