// Package tcpdial dials connections that notice within seconds when the network swallows what they send.
//
// TCP by itself sends again after pauses that double: a network that was gone for eight seconds is noticed to be back after
// twelve, and one that stays away after a quarter of an hour. Nodes have a few seconds to say that they live.
package tcpdial

import (
	"context"
	"errors"
	"net"
	"time"
)

const (
	// Unanswered is how long what was sent may stay without the other machine's word that it came. Then the connection is broken.
	Unanswered = 3 * time.Second
	// attempt is how long a first packet is waited for: when it is lost, the system sends it again after one, two and four seconds,
	// and an attempt of our own does after one each time.
	attempt = time.Second
	// most is what connecting may take where the caller does not say.
	most = 5 * time.Second
)

// Dialer dials. The zero value is ready.
type Dialer struct{}

// DialContext connects, at most until ctx ends.
func (Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, most) // what ctx leaves may be less
	defer cancel()
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3},
		Control:         control,
	}
	for {
		d.Timeout = attempt
		if end, _ := ctx.Deadline(); time.Until(end) < 2*attempt {
			d.Timeout = 0 // the last one has all that is left
		}
		conn, err := d.DialContext(ctx, network, address)
		var late net.Error
		if d.Timeout == 0 || ctx.Err() != nil || !errors.As(err, &late) || !late.Timeout() {
			return conn, err
		}
	}
}

// Dial is DialContext for those who have no context.
func (d Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}
