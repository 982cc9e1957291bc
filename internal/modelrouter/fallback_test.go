package modelrouter

import (
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
	if !Next(model.KindOf(BuiltIn(none)[0].noKey())) {
		t.Error("a missing key ends the chain")
	}
}
