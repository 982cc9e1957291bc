package pages

import (
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/operations"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{ago(noon, noon.Add(10*time.Second)), "just now"},
		{ago(noon, noon.Add(time.Minute)), "1 minute ago"},
		{ago(noon, noon.Add(3*time.Hour)), "3 hours ago"},
		{ago(noon, noon.Add(-2*time.Hour)), "in 2 hours"},
		{ago(noon, noon.AddDate(0, 1, 0)), "4 May"},
		{ago(noon, noon.AddDate(1, 0, 0)), "4 May 2026"},
		{ago(time.Time{}, noon), ""},
		{dollars(0), "$0"}, {dollars(0.00001), "< $0.0001"}, {dollars(0.0123), "$0.0123"}, {dollars(12.345), "$12.35"},
		{count(999), "999"}, {count(1234), "1.2 k"}, {count(56_789), "56 k"}, {count(1_250_000), "1.2 M"}, {count(25_000_000), "25 M"},
		{short("a  b\nc", 10), "a b c"}, {short("äöüß", 3), "äö…"},
		{person("user:ada"), "ada"}, {person("ada"), "ada"},
		{who(map[string]string{"01": "phone"}, "token:01"), "phone"}, {who(nil, "user:ada"), "ada"}, {who(nil, ""), "—"},
		{modelOf(operations.Session{Provider: "demo", Model: "guide"}), "demo/guide"}, {modelOf(operations.Session{Model: "demo/guide"}), "demo/guide"},
		{actions([]string{"tool:bash:ls", "tool:write:x"}), "ls\ntool:write:x"},
		{initial(" ada"), "A"}, {initial(""), "?"},
		{pretty(`{"a":1}`), "{\n  \"a\": 1\n}"}, {pretty("no json"), "no json"},
		{place("/home/x/threads/y/scratch"), "a folder of its own"}, {place("/src"), "/src"},
		{string(marked("<b>\x01x\x02")), "&lt;b&gt;<mark>x</mark>"},
		{statusWords("idle"), "ready"}, {statusWords("running"), "working"}, {statusWords("waiting"), "waiting for approval"}, {statusWords("odd"), "odd"},
	} {
		if c.got != c.want {
			t.Errorf("%q instead of %q", c.got, c.want)
		}
	}
	for _, c := range []struct{ part, whole, want int }{{1, 0, 0}, {1, 3, 33}, {5, 3, 100}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %d", c.part, c.whole, got)
		}
	}
}

func TestDayChart(t *testing.T) {
	t.Parallel()
	since := noon.AddDate(0, 0, -6)
	if got := dayChart(operations.Costs{Since: since}, chartWidth, noon); got != "" {
		t.Errorf("nothing spent gives %s", got)
	}
	if got := string(dayChart(operations.Costs{Since: since, Rows: []operations.Cost{{Key: "2026-05-01", InputTokens: 300, OutputTokens: 20}}}, chartWidth, noon)); !strings.Contains(got, "Tokens by day") || !strings.Contains(got, "2026-05-01: 320") {
		t.Errorf("free models give %s", got)
	}
	got := string(dayChart(operations.Costs{Since: since, Rows: []operations.Cost{{Key: "2026-05-01", Dollars: 2}, {Key: "2026-05-04", Dollars: 4}}}, chartWidth, noon))
	if n := strings.Count(got, "<rect"); n != 2 {
		t.Errorf("%d bars: %s", n, got)
	}
	for _, want := range []string{"2026-05-01: $2.00", "2026-05-04: $4.00", "$4.00</text>", "28 Apr", "4 May"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing: %s", want, got)
		}
	}
}

func TestFilesAreTakenApart(t *testing.T) {
	t.Parallel()
	one := "<attachment filename=\"a.txt\">\nalpha\nbeta\n</attachment>"
	for _, c := range []struct {
		text, said string
		files      []inlineFile
	}{
		{"just words", "just words", nil},
		{"look\n" + one, "look", []inlineFile{{"a.txt", "alpha\nbeta"}}},
		{"look" + one + one, "look", []inlineFile{{"a.txt", "alpha\nbeta"}, {"a.txt", "alpha\nbeta"}}},
		{one + " and words after it", one + " and words after it", nil},
		{"no beginning\n</attachment>", "no beginning\n</attachment>", nil},
		{one, "", []inlineFile{{"a.txt", "alpha\nbeta"}}},
	} {
		said, files := splitFiles(c.text)
		if said != c.said || !slices.Equal(files, c.files) {
			t.Errorf("%q gives %q and %q", c.text, said, files)
		}
	}
}
