package mark

import (
	"testing"
	"time"
)

func TestRespellTranslatesMarksOutsideOfCode(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 0)
	text := Person("7") + " in " + Channel("a/b") + " " + Ago(at) + " `" + Person("7") + "` <@&9>\n" + Small("tiny")
	got := Respell(text, Spelling{
		Person:  func(id string) string { return "@" + id },
		Role:    func(id string) string { return "@@" + id },
		Channel: func(id string) string { return "#" + id },
		Time:    func(at time.Time, ago bool) string { return at.UTC().Format("15:04") + map[bool]string{true: "!"}[ago] },
		Small:   func(line string) string { return "(" + line + ")" },
	})
	if want := "@7 in #a/b 22:13! `<@7>` @@9\n(tiny)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if Respell(text, Spelling{}) != text {
		t.Error("without a spelling the text changes")
	}
}
