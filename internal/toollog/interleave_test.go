package toollog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// made is a call for a message that led to an answer.
func made(id, message, answer string) Entry {
	e := Entry{Call: Call{ID: id, Name: "read", MessageID: message, Text: "text of " + id}, Result: Result{Output: quote("result of " + id)}}
	if answer != "" {
		e.Call.BotMessageIDs = strings.Split(answer, "+")
	}
	return e
}

func TestInterleave(t *testing.T) {
	t.Parallel()
	seven := []Entry{made("1", "a", "A"), made("2", "a", "A"), made("3", "b", "B"), made("4", "b", "B"), made("5", "b", "B"), made("6", "c", "C"), made("7", "c", "C")}
	same := []Entry{made("1", "a", "A"), made("2", "a", "A"), made("3", "a", "A")}
	same[1].Call.Text = same[0].Call.Text
	failed := made("1", "a", "A")
	failed.Result.Error = "no such file"
	window := []string{"x", "a", "A", "b", "B", "c", "C"}
	for _, test := range []struct {
		name    string
		entries []Entry
		window  []string
		rules   Rules
		want    string // index: call[text or -]result
	}{
		{"nothing", nil, window, DefaultRules(), ""},
		{"after the message it was made for", []Entry{made("1", "a", "A")}, window, DefaultRules(), "1: 1 [text of 1] result of 1"},
		{"the last five, in the order of the window", seven, window, DefaultRules(),
			"3: 3 [text of 3] result of 3; 3: 4 [text of 4] result of 4; 3: 5 [text of 5] result of 5; 5: 6 [text of 6] result of 6; 5: 7 [text of 7] result of 7"},
		{"calls made out of order", []Entry{made("1", "b", "B"), made("2", "a", "A")}, window, DefaultRules(), "1: 2 [text of 2] result of 2; 3: 1 [text of 1] result of 1"},
		{"none wanted", seven, window, Rules{Last: 0, Result: 2000}, ""},
		{"negative is none", seven, window, Rules{Last: -1, Result: 2000}, ""},
		{"the message has left the window", []Entry{made("1", "old", "A")}, window, DefaultRules(), ""},
		{"no answer was posted", []Entry{made("1", "a", "")}, window, DefaultRules(), ""},
		{"the answer has left the window", []Entry{made("1", "a", "gone")}, window, DefaultRules(), ""},
		{"one part of the answer is there", []Entry{made("1", "a", "gone+A")}, window, DefaultRules(), "1: 1 [text of 1] result of 1"},
		{"unanswered ones are wanted", []Entry{made("1", "a", "")}, window, Rules{Last: 5, Result: 2000, Unanswered: true}, "1: 1 [text of 1] result of 1"},
		{"those that are not shown do not count", append([]Entry{made("0", "a", "A")}, made("1", "old", "A"), made("2", "a", "")), window, Rules{Last: 1, Result: 2000}, "1: 0 [text of 0] result of 0"},
		{"results are cut", []Entry{made("1", "a", "A")}, window, Rules{Last: 5, Result: 6}, "1: 1 [text of 1] result…"},
		{"one completion is written once", same, window, DefaultRules(), "1: 1 [text of 1] result of 1; 1: 2 [] result of 2; 1: 3 [text of 3] result of 3"},
		{"a failure", []Entry{failed}, window, DefaultRules(), "1: 1 [text of 1] no such file (failed)"},
		{"a call without a message", []Entry{made("1", "", "A")}, append([]string{""}, window...), DefaultRules(), ""},
	} {
		var got []string
		for _, in := range Interleave(test.entries, test.window, test.rules) {
			s := fmt.Sprintf("%d: %s [%s] %s", in.After, in.Call.ID, in.Text, in.Result)
			if in.Failed {
				s += " (failed)"
			}
			got = append(got, s)
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, strings.Join(got, "; "), test.want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		most int
		want string
	}{{"", 0, ""}, {"a", 0, "…"}, {"äöü", 3, "äöü"}, {"äöü", 2, "äö…"}, {strings.Repeat("x", 2001), 2000, strings.Repeat("x", 2000) + "…"}} {
		if got := cut(test.text, test.most); got != test.want {
			t.Errorf("%q at %d: %q", test.text, test.most, got)
		}
	}
}

// TestInterleaveKeepsItsPromises: never more than asked for, always inside the window,
// in its order, and the newest that qualify.
func TestInterleaveKeepsItsPromises(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		var entries []Entry
		for i := range rapid.IntRange(0, 12).Draw(t, "calls") {
			entries = append(entries, made(fmt.Sprint(i), rapid.SampledFrom(ids).Draw(t, "for"), rapid.SampledFrom([]string{"", "a", "b", "c+d"}).Draw(t, "answer")))
		}
		window := ids[rapid.IntRange(0, 4).Draw(t, "from"):]
		last := rapid.IntRange(0, 6).Draw(t, "last")
		got := Interleave(entries, window, Rules{Last: last, Result: 10, Unanswered: rapid.Bool().Draw(t, "unanswered")})
		if len(got) > last {
			t.Fatalf("%d calls, %d wanted", len(got), last)
		}
		if !slices.IsSortedFunc(got, func(a, b Insert) int { return a.After - b.After }) {
			t.Fatal("out of order")
		}
		for _, in := range got {
			if window[in.After] != in.Call.MessageID || len([]rune(in.Result)) > 11 {
				t.Fatalf("%+v", in)
			}
		}
	})
}
