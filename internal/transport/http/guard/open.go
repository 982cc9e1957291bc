package guard

import (
	"context"
	"sync"
)

// openRequests tracks requests that are being answered for a cookie. An event stream may be open for hours: it ends with
// the sign-in that opened it.
type openRequests struct {
	mu      sync.Mutex
	cancels map[string]map[*context.CancelFunc]bool // by the cookie's nonce
}

// begin returns a context for a request that ends with the sign-in; end must be called.
func (o *openRequests) begin(ctx context.Context, nonce string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cancels == nil {
		o.cancels = map[string]map[*context.CancelFunc]bool{}
	}
	if o.cancels[nonce] == nil {
		o.cancels[nonce] = map[*context.CancelFunc]bool{}
	}
	o.cancels[nonce][&cancel] = true
	return ctx, func() {
		cancel()
		o.mu.Lock()
		defer o.mu.Unlock()
		if delete(o.cancels[nonce], &cancel); len(o.cancels[nonce]) == 0 {
			delete(o.cancels, nonce)
		}
	}
}

// signedOut ends all requests of a cookie.
func (o *openRequests) signedOut(nonce string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for cancel := range o.cancels[nonce] {
		(*cancel)()
	}
}
