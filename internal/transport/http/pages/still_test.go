package pages

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"chorus/internal/command"
)

// A stream outlives no token: at the next sign of life it looks, and ends.
func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	over := errors.New("the token is over")
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p.Still = func(context.Context, command.Caller) error {
			if asked++; asked > 2 {
				return over
			}
			return nil
		}
		w := &wire{header: http.Header{}}
		s := &stream{pages: p, w: w, control: http.NewResponseController(w)}
		if err := s.run(t.Context(), make(chan moved)); !errors.Is(err, over) {
			t.Errorf("it ended with %v", err)
		}
		if n := strings.Count(w.String(), ": still here"); n != 2 {
			t.Errorf("%d signs of life, want 2: %q", n, w.String())
		}
	})
}
