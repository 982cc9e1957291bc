package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/markdown"
	"chorus/internal/operation"
)

func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	table := operation.Table{Head: []string{"SESSION", "STATUS", "LAST ACTIVE", "TITLE"}, Rows: [][]string{
		{"01m7p5qbkn0dtkdbfe0tn6qaeb", "idle", "2026-11-18 01:54", "a title that is much too long for a line of eighty columns, \x1b[2Jand more"},
		{"01m7p5qbkn0dzzzzzzzzzzzzzz", "waiting", "2026-11-18 01:55", "日本語の題名はとても長いので切られなければならない、どうしても"},
		{"01m7p5qbkn9atkdbfe0tn6qaeb", "idle", "2026-11-18 01:56", "short"},
	}}
	for _, width := range []int{60, 80, 120} {
		var out bytes.Buffer
		if err := WriteTable(View{Out: &out, Width: width}, table, ""); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if w := markdown.Width(line); w >= width {
				t.Errorf("%d of %d columns: %s", w, width, line)
			}
		}
		for _, want := range []string{"01m7p5qbkn0dt ", "01m7p5qbkn0dz ", "01m7p5qbkn9at ", "waiting"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%d columns lack %q:\n%s", width, want, out.String())
			}
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("it steers the terminal: %q", out.String())
		}
	}
	var whole bytes.Buffer
	if err := WriteTable(View{Out: &whole}, table, ""); err != nil || !strings.Contains(whole.String(), "01m7p5qbkn0dtkdbfe0tn6qaeb") || !strings.Contains(whole.String(), "and more") {
		t.Errorf("without a terminal something is cut: %v\n%s", err, whole.String())
	}
	var one bytes.Buffer
	if err := WriteTable(View{Out: &one, Width: 40}, operation.Table{Rows: [][]string{{"id", "01m7p5qbkn0dtkdbfe0tn6qaeb"}, {"prompt", strings.Repeat("x", 100)}}}, ""); err != nil ||
		!strings.Contains(one.String(), "01m7p5qbkn0dtkdbfe0tn6qaeb") || !strings.Contains(one.String(), strings.Repeat("x", 100)) {
		t.Errorf("of one thing something is cut: %v\n%s", err, one.String())
	}
}

// TestManyColumnsDoNotWrap: of a table that cannot fit the last columns are left out, and the heads of the others stay whole.
func TestManyColumnsDoNotWrap(t *testing.T) {
	t.Parallel()
	for width, last := range map[int]string{60: "LABELS", 80: "VERSION", 120: "ADDRESS"} {
		var out bytes.Buffer
		c := NewColumns(&out, width)
		fmt.Fprintln(c, "NAME\tSTATE\tKIND\tTHREADS\tWAITING\tOWNS\tLABELS\tSINCE\tVERSION\tADDRESS")
		fmt.Fprintln(c, "berlin\talive\tserve\t10\t2\thooks, schedules, search, sweeps\tberlin, west\t2026-11-18 15:17\t8fcead6e-dirty\thttp://127.0.0.1:18431")
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(out.String(), "\n")
		if !strings.HasSuffix(head, last) || strings.Contains(head, "…") {
			t.Errorf("%d columns: %s", width, head)
		}
		for line := range strings.Lines(out.String()) {
			if w := markdown.Width(strings.TrimRight(line, "\n")); w >= width {
				t.Errorf("%d of %d columns: %s", w, width, line)
			}
		}
	}
}

// TestNamesOfThingsAreCutLast: where there are many columns, the first one still says which thing it is.
func TestNamesOfThingsAreCutLast(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewColumns(&out, 80)
	fmt.Fprintln(c, "MODEL\tWINDOW\tIN\tOUT\tCAN")
	fmt.Fprintln(c, "bedrock/anthropic.claude-sonnet-4-5-v1\t1000000\t2\t10\tprefill images thinking tools and more")
	fmt.Fprintln(c, "a remark that stands by itself and is as long as it is, whatever the width of the terminal may be")
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bedrock/anthropic.claude-sonnet-4-5-v1  1000000", "prefill", "whatever the width of the terminal may be"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

// TestColumnsGiveInOrder: what nobody filled in is left out, ids and times stay whole, and heads are cut after the names of things.
func TestColumnsGiveInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewColumns(&out, 80)
	fmt.Fprintln(c, "NAME\tSCOPES\tCREATED\tUSED\tSTATE\tAT ONCE\tID")
	fmt.Fprintln(c, "a token with a rather long name that the build has\tread, chat, admin\t2026-11-18 05:30\t–\tactive\t2\t01m7p5qbkn0dtkdbfe0tn6qaeb")
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "USED") {
		t.Errorf("an empty column:\n%s", out.String())
	}
	for _, want := range []string{"SCOPES", "STATE", "AT ONCE", "11-18 05:30 ", "01m7p5qbkn0d\n", "a token with a rather"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if markdown.Width(strings.TrimSuffix(line, "\n")) > 79 {
			t.Errorf("too wide: %s", line)
		}
	}
	out.Reset()
	if err := WriteTable(View{Out: &out, Width: 40}, operation.Table{Rows: [][]string{{"name", "x"}, {"empty", ""}, {"about", "words that go on below themselves where they end"}}}, ""); err != nil {
		t.Fatal(err)
	}
	if want := "name   x\nabout  words that go on below\n       themselves where they end\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

func TestBeginningsOfIDs(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{"01m7p5qbkn0d": true, "01M7P5QBKN0D": true, "01m7": false, "": false, "helper": false, "81m7p5qbkn0d": false,
		"01m7p5qbkn0dtkdbfe0tn6qaeb": false, "01m7p5-bkn0d": false} {
		if beginsID(word) != want {
			t.Errorf("%q: %v", word, !want)
		}
	}
}
