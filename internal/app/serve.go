package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"chorus/internal/node"
	"chorus/internal/provider"
	"chorus/internal/usage"
)

// ServeOptions are the flags of serve.
type ServeOptions struct {
	Addr        string
	BehindProxy bool     // our own proxy is in front of us and does TLS
	Hosts       []string // names under which we are reached, besides those of the loopback
	TLSCert     string
	TLSKey      string
	Node        string // which of several nodes this is, for logs
	// Ready is called once the server listens, with its URL and a link that signs the owner in.
	Ready func(url, signIn string)
	// Browser is called with a second such link, for a browser that is opened
	// at once: each link works only once. It may be nil.
	Browser func(signIn string)
}

// How long the server waits. A stream and an upload set their own deadlines as they go.
const (
	headerTime  = 10 * time.Second
	requestTime = 60 * time.Second
	answerTime  = 90 * time.Second
	idleTime    = 2 * time.Minute
	maxHeader   = 64 << 10
	drainTime   = 10 * time.Second // for requests that are being answered, and for streams to say goodbye
)

// defaultDrainMS is how long running tools have when the server is told to stop:
// most end within it, and service managers wait longer.
const defaultDrainMS = 20_000

// toolTime is how long running tools have when this process stops or hands over.
func (a *App) toolTime() time.Duration {
	return provider.Milliseconds(cmp.Or(a.Shared.DrainMS, defaultDrainMS))
}

// Serve serves the home over HTTP until ctx ends. Then it accepts no new clients, streams end with a last
// message, and Close lets running tools end. Everything else stops where it is and continues at the next
// start.
func (a *App) Serve(ctx context.Context, o ServeOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	site, err := a.openServer(ctx, o)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --addr", o.Addr, reason(err))
	}
	defer listener.Close()
	server := &http.Server{Handler: site.handler, ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelWarn), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if err := a.Service.Handler().CheckOwner(ctx); err != nil {
		return err
	}
	if err := a.member.Join("serve", o.Node, node.Address(a.Shared.NodeAddress, o.scheme(), listener.Addr())); err != nil {
		return err
	}
	a.serving.Store(true)
	a.stopServing.Store(&stop)
	a.StartBackground()
	defer a.serveLiveMessages(ctx, site.live)()
	defer a.checkDatabase(ctx)()
	disconnect, err := a.Host.Connect() // before schedules start, which may be for a channel
	if err != nil {
		return err
	}
	defer disconnect()
	defer a.keepSchedules(ctx)()
	defer a.runHooks(ctx)()
	defer a.runWork(ctx)()
	ended := make(chan error, 1)
	go func() {
		if o.TLSCert != "" {
			ended <- server.ServeTLS(listener, o.TLSCert, o.TLSKey)
		} else {
			ended <- server.Serve(listener)
		}
	}()
	url := o.scheme() + "://" + listener.Addr().String()
	a.Log.Info("listening", "component", "http", "event", "listening", "url", url, "node", o.Node)
	site.ready.Store(true)
	notify(a.Env, "READY=1\nSTATUS=listening on "+url)
	if o.Ready != nil {
		o.Ready(url, site.link(url))
	}
	if o.Browser != nil {
		o.Browser(site.link(url))
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", url, err)
	case <-ctx.Done():
	}
	site.ready.Store(false)
	a.toolGrace = a.toolTime()
	a.member.HandOver()
	notify(a.Env, "STOPPING=1\nSTATUS=finishing what is being answered")
	a.Log.Info("shutting down", "component", "http", "event", "draining")
	err = a.closeServer(server, site)
	<-ended
	if errors.Is(context.Cause(ctx), ErrRestart) {
		return errors.Join(ErrRestart, err)
	}
	return err
}

// closeServer accepts no new clients and waits for the present ones, but not forever.
func (a *App) closeServer(server *http.Server, site *httpServer) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var goodbye sync.WaitGroup
	goodbye.Go(func() {
		close(site.stopping)
		a.Setup.CloseLogins() // whoever waits for one is told
		site.mcp.Close()
		_ = site.api.Drain(ctx) // whoever does not leave is cut off below
		a.Service.StopStreams()
	})
	err := server.Shutdown(ctx)
	goodbye.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		a.Log.Warn("some requests were not answered in time and were cut off", "component", "http", "event", "requests_cut")
		err = server.Close()
	}
	return err
}

// check refuses options that would show the home to strangers.
func (o *ServeOptions) check() error {
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return usage.Wrap(errors.New("--tls-cert and --tls-key belong together"))
	}
	if o.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey); err != nil {
			return fmt.Errorf("the certificate cannot be used: %w", err)
		}
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return usage.Wrap(fmt.Errorf("%q is not an address to listen on; use for example 127.0.0.1:8420", o.Addr))
	}
	if o.TLSCert == "" && !o.BehindProxy && !loopback(host) {
		return usage.Wrap(fmt.Errorf("%s can be reached from other machines, and tokens would pass in the clear; give --tls-cert and --tls-key, "+
			"or --behind-proxy if a proxy of yours does TLS, or listen on 127.0.0.1", o.Addr))
	}
	return nil
}

// loopback reports whether only this machine can reach a host. A name other than
// localhost can mean anything, and no host at all means all of them.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (o *ServeOptions) scheme() string {
	if o.TLSCert != "" {
		return "https"
	}
	return "http"
}

// reason returns the system's message, without the operation around it.
func reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
