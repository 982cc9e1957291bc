package ledger_test

import (
	"testing"

	"chorus/internal/chat"
	"chorus/internal/ledger"
)

func TestWithin(t *testing.T) {
	t.Parallel()
	top := chat.Terms{MaxCost: 500}
	middle := chat.Terms{Above: ledger.Below("top", top)}
	low := chat.Terms{Above: ledger.Below("middle", middle), MaxCost: 100}
	for name, c := range map[string]struct {
		run   string
		terms chat.Terms
		want  map[string]ledger.Nanos
	}{
		"no limit":         {"r", chat.Terms{}, nil},
		"its own":          {"top", top, map[string]ledger.Nanos{"top": 500}},
		"that above":       {"middle", middle, map[string]ledger.Nanos{"top": 500}},
		"both":             {"low", low, map[string]ledger.Nanos{"top": 500, "low": 100}},
		"nonsense is none": {"r", chat.Terms{Above: "x,=5=,y=-3,z=0", MaxCost: -1}, nil},
	} {
		got := ledger.Within(c.run, c.terms)
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		for _, l := range got {
			if c.want[l.Subject] != l.Most || l.Scope != ledger.Run || l.Period != ledger.Once {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
	if got := ledger.Within("low", low); got[0].Subject != "top" {
		t.Errorf("the topmost is not the first: %+v", got)
	}
}
