package window

import (
	"testing"

	"pgregory.net/rapid"
)

// Pictures stand before the lasting cache mark only where that was asked for, and they leave
// it only with a roll, which breaks the cache anyway.
func TestPicturesAndTheMark(t *testing.T) {
	t.Parallel()
	items := make([]Item, 60)
	for i := range items {
		items[i] = Item{Size: 1, Images: []int64{1}}
	}
	for _, c := range []struct {
		name  string
		since int
		l     Limits
		want  Plan
	}{
		{"no roll, nothing changes", 0, Limits{Messages: 40, Threshold: 10}, Plan{Images: 60}},
		{"a roll puts the mark anew", 10, Limits{Messages: 40, Threshold: 10}, Plan{From: 20, Rolled: true, Images: 20, Dimmed: true}},
		{"a roll leaves the mark", 10, Limits{Messages: 40, Threshold: 10, Mark: 31}, Plan{From: 20, Rolled: true, Images: 30, Dimmed: true}},
		{"the mark went with the roll", 10, Limits{Messages: 40, Threshold: 10, Mark: 11}, Plan{From: 20, Rolled: true, Images: 20, Dimmed: true}},
		{"they may be cached", 10, Limits{Messages: 40, Threshold: 10, CacheImages: true}, Plan{From: 20, Rolled: true, Images: 40}},
		{"other limits hold too", 10, Limits{Messages: 40, Threshold: 10, Images: 5}, Plan{From: 20, Rolled: true, Images: 5, Dimmed: true}},
		{"a short window has its mark at its beginning", 10, Limits{Messages: 15, Threshold: 10}, Plan{From: 45, Rolled: true, Images: 15}},
	} {
		got := Build(items, c.since, c.l)
		got.Because = ""
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestCachedPicturesAreNeverFewer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := make([]Item, rapid.IntRange(0, 60).Draw(t, "items"))
		for i := range items {
			items[i] = Item{Size: rapid.IntRange(0, 20).Draw(t, "size"), Images: make([]int64, rapid.IntRange(0, 2).Draw(t, "images"))}
		}
		l := Limits{Messages: rapid.IntRange(0, 40).Draw(t, "messages"), Characters: rapid.IntRange(0, 300).Draw(t, "characters"), Threshold: 1,
			Images: rapid.IntRange(0, 30).Draw(t, "pictures"), Mark: rapid.IntRange(0, len(items)).Draw(t, "mark")}
		plain := Build(items, 5, l)
		l.CacheImages = true
		cached := Build(items, 5, l)
		if plain.From != cached.From || plain.Rolled != cached.Rolled || plain.Images > cached.Images || !plain.Rolled && plain != cached {
			t.Fatalf("%+v without, %+v with", plain, cached)
		}
	})
}
