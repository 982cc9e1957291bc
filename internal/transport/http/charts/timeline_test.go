package charts

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/operations"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// A wait of hours leaves room for the seconds in which something was done, and bars stand in the order of time.
func TestTimelineCutsLongWaits(t *testing.T) {
	t.Parallel()
	spans := []operations.Span{
		{Kind: operations.SpanModel, Label: "the model", Began: noon, TookMS: 4000},
		{Kind: operations.SpanPerson, Label: "a yes to <b>", Began: noon.Add(4 * time.Second), TookMS: (3 * time.Hour).Milliseconds()},
		{Kind: operations.SpanTool, Label: "make", Began: noon.Add(3*time.Hour + 4*time.Second), TookMS: 4000, State: "failed"},
	}
	scale := newTimescale(spans, 0, 900)
	if len(scale.breaks) != 1 {
		t.Errorf("%d breaks", len(scale.breaks))
	}
	end := scale.place(spans[2].Began.Add(4 * time.Second))
	if model, tool := scale.place(spans[1].Began), end-scale.place(spans[2].Began); model < 300 || tool < 300 || end < 899 || end > 901 {
		t.Errorf("the model has %.0f, the tool %.0f of %.0f", model, tool, end)
	}
	for _, drawn := range []string{Timeline(spans), NarrowTimeline(spans)} {
		if strings.Count(drawn, "<rect") != 3 || strings.Contains(drawn, "<b>") || !strings.Contains(drawn, `class="tool failed"`) {
			t.Errorf("drawn as %s", drawn)
		}
	}
	if Timeline(nil) != "" {
		t.Error("nothing is drawn as something")
	}
	if at := Timeline([]operations.Span{{Kind: operations.SpanModel, Began: noon}}); !strings.Contains(at, "<rect") {
		t.Errorf("a moment is drawn as %s", at)
	}
}
