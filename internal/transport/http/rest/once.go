package rest

import (
	"context"
	"net/http"
	"sync"
	"unicode/utf8"

	"chorus/internal/digest"
)

// Memory stores the answers to requests with an Idempotency-Key for a day, across restarts. It may be called from any goroutine.
type Memory interface {
	// RecallAnswer returns the answer to a request with this key, and the digest of that request; status 0: there was none.
	RecallAnswer(ctx context.Context, principal, key, route string) (digest string, status int, body []byte, err error)
	// KeepAnswer stores an answer. The first one stays.
	KeepAnswer(ctx context.Context, principal, key, route, digest string, status int, body []byte) error
}

// maxKey is longer than any generated key.
const maxKey = 255

// Key returns the Idempotency-Key of a request; "": it has none. Functions whose work is idempotent pass it on, so that
// a crash between the work and its record has no second effect.
func Key(ctx context.Context) string {
	return metaOf(ctx).key
}

// once runs do, or returns the answer that the same request got before. A request that arrives while its twin is being served waits for it.
func (k *Kernel) once(op *Operation, r *http.Request, body []byte, do func() ([]byte, error)) (int, []byte, error) {
	key := Key(r.Context())
	if op.Creates && (len(key) > maxKey || !utf8.ValidString(key)) {
		return 0, nil, badFields(http.StatusBadRequest, FieldError{In: "header", Field: "Idempotency-Key", Message: "it must be UTF-8 with at most 255 bytes"})
	}
	if !op.Creates || key == "" || k.o.Memory == nil {
		out, err := do()
		return op.Status, out, err
	}
	who, route := "", op.Method+" "+r.URL.EscapedPath()
	if k.o.Who != nil {
		who = k.o.Who(r.Context())
	}
	leave, err := k.inFlight.enter(r.Context(), who+"\x00"+key+"\x00"+route)
	if err != nil {
		return 0, nil, err
	}
	defer leave()
	seen := digest.Of(body)
	before, status, kept, err := k.o.Memory.RecallAnswer(r.Context(), who, key, route)
	switch {
	case err != nil:
		return 0, nil, err
	case status != 0 && before != seen:
		return 0, nil, NewProblem(http.StatusUnprocessableEntity, "key_reused",
			"this Idempotency-Key was used for another body; use a new key for a new request")
	case status != 0 && op.Secret:
		return 0, nil, NewProblem(http.StatusConflict, "conflict",
			"this request was served before, and its answer is shown only once; use a new key to make another")
	case status != 0:
		return status, kept, nil
	}
	out, err := do()
	if err != nil {
		return 0, nil, err
	}
	record := out
	if op.Secret {
		record = nil
	}
	// The work is done, whether or not anybody still waits for the answer.
	if err := k.o.Memory.KeepAnswer(context.WithoutCancel(r.Context()), who, key, route, seen, op.Status, record); err != nil {
		k.o.Log.WarnContext(r.Context(), "an answer could not be kept", "route", route, "request", RequestID(r.Context()), "error", err)
	}
	return op.Status, out, nil
}

// inFlight tracks the requests with a key that are being served here.
type inFlight struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

// enter waits until nobody else serves the same request.
func (f *inFlight) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		f.mu.Lock()
		busy, ok := f.open[name]
		if !ok {
			done := make(chan struct{})
			f.open[name] = done
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.open, name)
				f.mu.Unlock()
				close(done)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
