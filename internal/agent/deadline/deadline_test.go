package deadline

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestBounds(t *testing.T) {
	t.Parallel()
	d := Defaults()
	b := Bounds{Tool: time.Second}.Or(d)
	if b.Tool != time.Second || b.Model != d.Model || b.Grace != d.Grace {
		t.Errorf("%+v", b)
	}
	for _, one := range []time.Duration{d.Model, d.Answer, d.Tool + d.Grace, d.Store, d.Setup} {
		if d.Longest() <= one {
			t.Errorf("a wait of %s outlasts %s", one, d.Longest())
		}
	}
}

func TestPassed(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errors.New("aborted"), &Stuck{Wait: Wait{For: "the model"}, After: time.Second}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if Passed(ctx) != nil {
			t.Error("passed before it was over")
		}
		cancel(cause)
		var want *Stuck
		errors.As(cause, &want)
		if Passed(ctx) != want {
			t.Errorf("%v: %v", cause, Passed(ctx))
		}
	}
}
