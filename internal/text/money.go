package text

import (
	"fmt"
	"math"
)

// Dollars formats money for people: small amounts with more digits, so that none looks like nothing.
func Dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0:
		return "-" + Dollars(-usd)
	case usd < 0.0001:
		return "< $0.0001"
	}
	decimals := 2
	switch whole := math.Abs(usd*100-math.Round(usd*100)) < 1e-7; {
	case whole:
	case usd < 0.01:
		decimals = 4
	case usd < 0.1:
		decimals = 3
	}
	return fmt.Sprintf("$%.*f", decimals, usd)
}
