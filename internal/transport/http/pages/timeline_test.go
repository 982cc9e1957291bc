package pages

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/operations"
	"chorus/internal/transport/http/timescale"
)

// A wait of hours leaves room for the seconds in which something was done, and bars stand in the order of time.
func TestTimelineCutsLongWaits(t *testing.T) {
	t.Parallel()
	spans := []operations.Span{
		{Kind: operations.SpanModel, Label: "the model", Began: noon, TookMS: 4000},
		{Kind: operations.SpanPerson, Label: "a yes to <b>", Began: noon.Add(4 * time.Second), TookMS: (3 * time.Hour).Milliseconds()},
		{Kind: operations.SpanTool, Label: "make", Began: noon.Add(3*time.Hour + 4*time.Second), TookMS: 4000, State: "failed"},
	}
	scale := timescale.New(spans, 0, 900)
	if len(scale.Breaks) != 1 {
		t.Errorf("%d breaks", len(scale.Breaks))
	}
	end := scale.X(spans[2].Began.Add(4 * time.Second))
	if model, tool := scale.X(spans[1].Began), end-scale.X(spans[2].Began); model < 300 || tool < 300 || end < 899 || end > 901 {
		t.Errorf("the model has %.0f, the tool %.0f of %.0f", model, tool, end)
	}
	for _, size := range []timelineSize{timelineWide, timelineNarrow} {
		drawn := string(drawTimeline(spans, size))
		if strings.Count(drawn, "<rect") != 3 || strings.Contains(drawn, "<b>") || !strings.Contains(drawn, `class="tool failed"`) {
			t.Errorf("drawn as %s", drawn)
		}
	}
	if drawTimeline(nil, timelineWide) != "" {
		t.Error("nothing is drawn as something")
	}
	if at := drawTimeline([]operations.Span{{Kind: operations.SpanModel, Began: noon}}, timelineWide); !strings.Contains(string(at), "<rect") {
		t.Errorf("a moment is drawn as %s", at)
	}
}
