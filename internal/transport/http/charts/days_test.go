package charts

import (
	"math"
	"strings"
	"testing"
	"time"

	"chorus/internal/operations"
)

// A month that goes on like its last week costs what was spent and as much for each day that is left.
func TestForecast(t *testing.T) {
	t.Parallel()
	month := operations.Costs{Total: 22, Rows: []operations.Cost{{Key: "2026-11-02", Dollars: 8}, {Key: "2026-11-12", Dollars: 7}, {Key: "2026-11-15", Dollars: 7}}}
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	if got, want := Forecast(month, now), 22+14.0/7*15; math.Abs(got-want) > 0.001 {
		t.Errorf("forecast %v, want %v", got, want)
	}
	if got := Forecast(operations.Costs{}, now); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	first := Forecast(operations.Costs{Total: 1, Rows: []operations.Cost{{Key: "2026-11-01", Dollars: 1}}}, time.Date(2026, 11, 1, 0, 5, 0, 0, time.UTC))
	if math.IsInf(first, 0) || first < 1 {
		t.Errorf("in the first minutes of a month: %v", first)
	}
}

func TestDaysAreDrawn(t *testing.T) {
	t.Parallel()
	since := noon.AddDate(0, 0, -6)
	if got := Costs(operations.Costs{Since: since}, Full, noon); got != "" {
		t.Errorf("nothing spent gives %s", got)
	}
	if got := Costs(operations.Costs{Since: since, Rows: []operations.Cost{{Key: "2026-05-01", InputTokens: 300, OutputTokens: 20}}}, Full, noon); !strings.Contains(got, "Tokens by day") || !strings.Contains(got, "2026-05-01: 320") {
		t.Errorf("free models give %s", got)
	}
	got := Costs(operations.Costs{Since: since, Rows: []operations.Cost{{Key: "2026-05-01", Dollars: 2}, {Key: "2026-05-04", Dollars: 4}}}, Full, noon)
	if n := strings.Count(got, "<rect"); n != 2 {
		t.Errorf("%d bars: %s", n, got)
	}
	for _, want := range []string{"2026-05-01: $2.00", "2026-05-04: $4.00", "$4.00</text>", "28 Apr", "4 May"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing: %s", want, got)
		}
	}
}
