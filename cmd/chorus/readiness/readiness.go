// Package readiness asks a server whether it is ready, for monitoring.
package readiness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// checkTime is shorter than the usual timeout of monitoring tools.
const checkTime = 4 * time.Second

// Check asks the server at addr whether it accepts messages. It is for places without another client, such as a
// container.
func Check(ctx context.Context, addr string, secure bool) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("%q is not an address: %w", addr, err)
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	url := scheme + "://" + LocalAddress(addr) + "/readyz"
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// The certificate is for the public name, and nothing secret is sent.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("the server at %s is not ready: %s: %s", addr, resp.Status, text)
	}
	return nil
}

// LocalAddress is the address for reaching, from this machine, a server that listens on addr.
func LocalAddress(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip, err := netip.ParseAddr(host)
	if host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost" // all interfaces include this one
	}
	return net.JoinHostPort(host, port)
}
