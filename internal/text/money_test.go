package text

import "testing"

func TestDollars(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]string{
		0: "$0", 0.00001: "< $0.0001", 0.0012: "$0.0012", 0.0123: "$0.012", 0.0996: "$0.100", 0.06: "$0.06", 0.07 + 0.02: "$0.09", 0.1234: "$0.12", 12.345: "$12.35", 5: "$5.00", -0.5: "-$0.50",
	} {
		if got := Dollars(usd); got != want {
			t.Errorf("%v: %s, want %s", usd, got, want)
		}
	}
}
