// Package readiness asks a server whether it takes messages, for those who watch over it.
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

// checkTime is shorter than what those who watch over services usually wait.
const checkTime = 4 * time.Second

// Check asks the server that listens at addr whether it takes messages. It is for
// places where there is no other client, as in a container.
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
	// The certificate is for the name that people use, and nothing secret is sent.
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

// LocalAddress is how an address to listen on is reached from this machine.
func LocalAddress(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip, err := netip.ParseAddr(host)
	if host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost" // everywhere is also here
	}
	return net.JoinHostPort(host, port)
}
