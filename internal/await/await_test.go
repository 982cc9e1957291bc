package await

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !For(t.Context(), time.Minute) || time.Since(begun) != time.Minute {
			t.Errorf("waited %s instead of a minute", time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if For(ctx, time.Hour) {
			t.Error("the end of the context was not noticed")
		}
	})
}

func TestNotify(t *testing.T) {
	t.Parallel()
	c := make(chan struct{}, 1)
	Notify(c)
	Notify(c) // does not block
	<-c
	select {
	case <-c:
		t.Error("two values were kept")
	default:
	}
}
