package mcp

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"chorus/internal/sandbox"
)

// A server that died is asked about before it is started again, and left alone when the answer is no.
func TestRestartIsAsked(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	var starts, refused atomic.Int32
	h.opt.Prepare = func(context.Context, Server, string) (*sandbox.Prepared, error) {
		if starts.Add(1) > 1 {
			refused.Add(1)
			return nil, errors.New("its script is another one now")
		}
		return nil, nil
	}
	set := toolsOf(t, h)
	run(t, set, "mcp__fake__die", `{}`)
	until(t, h, "it is given up", func() bool { return h.Status()[0].State == Failed })
	if why := h.Status()[0].Why; !strings.Contains(why, "its script is another one now") || refused.Load() != 1 {
		t.Errorf("%q after %d", why, refused.Load())
	}
}

// What was changed while it started is found when it answers: none of its tools is offered.
func TestStartIsConfirmed(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	h.opt.Confirm = func(Server) error { return errors.New("its script is another one now") }
	list := h.Tools(t.Context(), nil)
	if st := h.Status()[0]; len(list.Tools) != 0 || st.State != Failed || !strings.Contains(st.Why, "another one now") {
		t.Errorf("%d tools, %s", len(list.Tools), st)
	}
}
