package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// bridgeIdle is longer than a proxy's own limit, which is the one that counts.
const bridgeIdle = 2 * time.Hour

// Bridge carries connections from a listener to a proxy's unix socket until ctx ends. It is what
// runs inside a sandbox that has no network but its own loopback, where programs know how to
// reach an address and not how to reach a socket. It closes the listener and waits
// for its connections.
func Bridge(ctx context.Context, from net.Listener, socket string) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = from.Close() })()
	defer from.Close()
	for {
		conn, err := from.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("bridge to the proxy: %w", err)
		}
		group.Go(func() {
			var d net.Dialer
			to, err := d.DialContext(ctx, "unix", socket)
			if err != nil {
				_ = conn.Close()
				return
			}
			splice(ctx, conn, to, bridgeIdle)
		})
	}
}
