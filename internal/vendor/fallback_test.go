package vendor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"chorus/internal/model"
)

func TestNext(t *testing.T) {
	t.Parallel()
	want := map[model.ErrorKind]bool{
		model.Overloaded: true, model.Network: true, model.RateLimited: true, model.Auth: true,
		model.TooLong: false, model.Refused: false, model.BadRequest: false, "": false, "something new": false,
	}
	for kind, next := range want {
		if Next(kind) != next {
			t.Errorf("%q: %v", kind, !next)
		}
	}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"not a model's", errors.New("disk full"), false},
		{"overloaded", &model.Error{Kind: model.Overloaded}, true},
		{"wrapped", fmt.Errorf("ask: %w", &model.Error{Kind: model.Network}), true},
		{"no key", BuiltIn(none)[0].noKey(), true},
		{"cancelled", &model.Error{Kind: model.Network, Err: context.Canceled}, false},
		{"our own deadline", &model.Error{Kind: model.Network, Err: context.DeadlineExceeded}, false},
		{"no such model", &model.Error{Kind: model.BadRequest, Status: 404}, true},
		{"our mistake", &model.Error{Kind: model.BadRequest, Status: 400}, false},
	} {
		if NextAfter(c.err) != c.want {
			t.Errorf("%s: %v", c.name, !c.want)
		}
	}
}
