package pages

import (
	"math"
	"testing"
	"time"

	"chorus/internal/operations"
)

// A month that goes on like its last week costs what was spent and as much for each day that is left.
func TestForecast(t *testing.T) {
	t.Parallel()
	month := operations.Costs{Total: 22, Rows: []operations.Cost{{Key: "2026-11-02", Dollars: 8}, {Key: "2026-11-12", Dollars: 7}, {Key: "2026-11-15", Dollars: 7}}}
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	if got, want := forecast(month, now), 22+14.0/7*15; math.Abs(got-want) > 0.001 {
		t.Errorf("forecast %v, want %v", got, want)
	}
	if got := forecast(operations.Costs{}, now); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	first := forecast(operations.Costs{Total: 1, Rows: []operations.Cost{{Key: "2026-11-01", Dollars: 1}}}, time.Date(2026, 11, 1, 0, 5, 0, 0, time.UTC))
	if math.IsInf(first, 0) || first < 1 {
		t.Errorf("in the first minutes of a month: %v", first)
	}
}
