package display

import (
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{Ago(noon, noon.Add(10*time.Second)), "just now"},
		{Ago(noon, noon.Add(time.Minute)), "1 minute ago"},
		{Ago(noon, noon.Add(3*time.Hour)), "3 hours ago"},
		{Ago(noon, noon.Add(-2*time.Hour)), "in 2 hours"},
		{Ago(noon, noon.AddDate(0, 1, 0)), "4 May"},
		{Ago(noon, noon.AddDate(1, 0, 0)), "4 May 2026"},
		{Ago(time.Time{}, noon), ""},
		{Count(999), "999"}, {Count(1234), "1.2 k"}, {Count(56_789), "56 k"}, {Count(1_250_000), "1.2 M"}, {Count(25_000_000), "25 M"},
		{Short("a  b\nc", 10), "a b c"}, {Short("äöüß", 3), "äö…"},
		{Person("user:ada"), "ada"}, {Person("ada"), "ada"},
		{Who(map[string]string{"01": "phone"}, "token:01"), "phone"}, {Who(nil, "user:ada"), "ada"}, {Who(nil, ""), "—"},
		{Actions([]string{"tool:bash:ls", "tool:write:x", "tool:web_search", "question:shop"}), "ls\nwrite x\nweb_search\nquestion:shop"},
		{Initial(" ada"), "A"}, {Initial(""), "?"},
		{JSON(`{"a":1}`), "{\n  \"a\": 1\n}"}, {JSON("no json"), "no json"},
		{Folder("/home/x/threads/y/scratch"), "a folder of its own"}, {Folder("/src"), "/src"},
		{Status("idle"), "ready"}, {Status("running"), "working"}, {Status("waiting"), "waiting for approval"}, {Status("odd"), "odd"},
		{TaskState("AWAITING_APPROVAL"), "awaiting approval"}, {TaskState(""), ""},
		{FirstSentence("Change several\nfiles at once. Takes a diff."), "Change several files at once."}, {FirstSentence("One line\n\nanother"), "One line"}, {FirstSentence(" a.b "), "a.b"},
	} {
		if c.got != c.want {
			t.Errorf("%q instead of %q", c.got, c.want)
		}
	}
	for _, c := range []struct{ part, whole, want int }{{1, 0, 0}, {1, 3, 33}, {5, 3, 100}} {
		if got := Percent(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %d", c.part, c.whole, got)
		}
	}
}

func TestFilesAreTakenApart(t *testing.T) {
	t.Parallel()
	one := "<attachment filename=\"a.txt\">\nalpha\nbeta\n</attachment>"
	for _, c := range []struct {
		text, said string
		files      []InlineFile
	}{
		{"just words", "just words", nil},
		{"look\n" + one, "look", []InlineFile{{"a.txt", "alpha\nbeta"}}},
		{"look" + one + one, "look", []InlineFile{{"a.txt", "alpha\nbeta"}, {"a.txt", "alpha\nbeta"}}},
		{one + " and words after it", one + " and words after it", nil},
		{"no beginning\n</attachment>", "no beginning\n</attachment>", nil},
		{one, "", []InlineFile{{"a.txt", "alpha\nbeta"}}},
	} {
		said, files := SplitFiles(c.text)
		if said != c.said || !slices.Equal(files, c.files) {
			t.Errorf("%q gives %q and %q", c.text, said, files)
		}
	}
}
