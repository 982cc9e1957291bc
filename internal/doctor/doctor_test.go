package doctor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"chorus/internal/theme"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func finds(f ...Finding) func(context.Context) []Finding {
	return func(context.Context) []Finding { return f }
}

func TestReportKeepsTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) []Finding {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return []Finding{Good("slow", "done")}
		}
		var last []string
		r := Run(t.Context(), []Check{
			{Section: "one", Do: slow},
			{Section: "two", Do: finds(Warning("w", "mend it", "so so"))},
			{Section: "one", Do: finds(Bad("b", "mend it", "no"))},
		}, func(waiting []string) { last = slices.Clone(waiting) })
		if got := r.Sections[0]; got.Name != "one" || got.Findings[0].Name != "slow" || got.Findings[1].Name != "b" {
			t.Errorf("first section: %+v", got)
		}
		if r.OK || r.Broken != 1 || r.Warnings != 1 || len(r.Sections) != 2 {
			t.Errorf("sums: %+v", r)
		}
		if len(last) != 0 {
			t.Errorf("still waited for at the end: %v", last)
		}
	})
}

func TestHangingAndPanickingChecksAreFindings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		began := time.Now()
		r := Run(t.Context(), []Check{
			{Section: "deaf", Within: time.Second, Do: func(context.Context) []Finding { <-forever; return nil }},
			{Section: "panics", Do: func(context.Context) []Finding { panic("oh") }},
			{Section: "fine", Do: finds(Good("x", "y"))},
		}, nil)
		if took := time.Since(began); took != time.Second+grace {
			t.Errorf("took %s", took)
		}
		if r.Broken != 2 || !strings.Contains(r.Sections[0].Findings[0].Detail, "no answer in 1s") ||
			!strings.Contains(r.Sections[1].Findings[0].Detail, "oh") || r.Sections[2].Findings[0].Mark != OK {
			t.Errorf("report: %+v", r)
		}
		close(forever) // so that the bubble can end
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), []Check{{Section: "home", Do: finds(
		Good("folder", "/h"), Warning("permissions", "chmod 700 /h", "others may read it"), Bad("disk", "free some", "full\nreally\x1b[31m"))}}, nil)
	want := `home
  ok      folder       /h
  warn    permissions  others may read it
          → chmod 700 /h
  broken  disk         full really?[31m
          → free some

1 thing is broken, 1 warning
`
	if got := r.Text(Style{}); got != want {
		t.Errorf("plain:\n%s\nwant\n%s", got, want)
	}
	if got := r.Text(Style{Look: theme.Of(theme.Terminal, theme.Unknown, false)}); !strings.Contains(got, "\x1b[31m✗\x1b[0m  disk") || !strings.Contains(got, "     \x1b[2m→\x1b[0m free some") {
		t.Errorf("coloured:\n%q", got)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Report{
		"all is well":                      {},
		"nothing is broken, 2 warnings":    {Warnings: 2},
		"2 things are broken":              {Broken: 2},
		"1 thing is broken, 1 warning":     {Broken: 1, Warnings: 1},
		"3 things are broken, 11 warnings": {Broken: 3, Warnings: 11},
		"nothing is broken, 1 warning":     {Warnings: 1},
	} {
		if got := r.verdict(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// Whatever names and details hold, a report has as many lines as it has findings and
// fixes, none of them commands a terminal, and its sums are those of its marks.
func TestReportProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1)
		mark := rapid.SampledFrom([]Mark{OK, Note, Warn, Broken})
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Finding {
			return Finding{Name: text.Draw(t, "name"), Mark: mark.Draw(t, "mark"), Detail: text.Draw(t, "detail"), Fix: text.Draw(t, "fix")}
		}), 0, 6).Draw(t, "findings")
		r := Run(context.Background(), []Check{{Section: "s", Do: finds(list...)}}, nil)
		lines, broken := 3, 0 // the section, a gap, the verdict
		for _, f := range list {
			lines++
			if f.Fix != "" && f.Mark != OK {
				lines++
			}
			if f.Mark == Broken {
				broken++
			}
		}
		out := r.Text(Style{})
		if got := strings.Count(out, "\n"); got != lines {
			t.Fatalf("%d lines, want %d:\n%q", got, lines, out)
		}
		if strings.ContainsAny(out, "\x1b\r\x07\u202e") {
			t.Fatalf("a terminal would obey: %q", out)
		}
		if r.Broken != broken || r.OK != (broken == 0) {
			t.Fatalf("sums %+v", r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
