package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/browser"
	"chorus/cmd/chorus/readiness"
	"chorus/internal/app"
	"chorus/internal/doctor/checks"
	"chorus/internal/transport/repl"
)

func (c *program) serveCommand() *cobra.Command {
	var o app.ServeOptions
	folder, check, noBrowser := "", false, false
	cmd := &cobra.Command{
		Use: "serve", Short: "The server: HTTP API and web page", Args: exactly(0),
		Long: `Serves the HTTP API and the web page, and keeps agents at work while nobody sits at a
terminal. Without a key everything works with a built-in offline model.

It listens on this machine only, and everybody needs a token: the first start makes the
owner's. On a terminal it shows a link that signs a browser in, opens that browser where
there is one, and afterwards says only what went wrong; the log file has the rest. To be
reached from elsewhere it needs a certificate, or a proxy that has one.

It stops on SIGTERM or Ctrl-C: requests are answered to their end, streams say goodbye, and
a run that is on goes on at the next start. A second signal ends it at once.`,
		Example: `  chorus serve
  chorus serve --addr 127.0.0.1:9000
  chorus serve --addr 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --host chorus.example.org
  chorus serve --behind-proxy --host chorus.example.org`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Addr, "addr", "", "where to listen (default $CHORUS_ADDR or 127.0.0.1:8420)")
	f.StringVar(&folder, "config", "", "folder with the configuration (default $CHORUS_CONFIG or config in the home)")
	f.StringVar(&o.Node, "node", "", "a name for this server, in its logs and among nodes (default $CHORUS_NODE or the machine's)")
	f.BoolVar(&o.BehindProxy, "behind-proxy", false, "a proxy of yours stands in front, does TLS and says who comes")
	f.StringVar(&o.TLSCert, "tls-cert", "", "certificate, as a PEM file")
	f.StringVar(&o.TLSKey, "tls-key", "", "its key, as a PEM file")
	f.StringArrayVar(&o.Hosts, "host", nil, "a name under which people reach this server, besides localhost; may be given more than once")
	f.BoolVar(&check, "check", false, "start nothing: ask the server at --addr whether it takes messages; exit 0 or 1")
	f.BoolVar(&noBrowser, "no-browser", false, "open no browser at the start (or set "+browser.Off+"=1)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.Addr = cmp.Or(o.Addr, defaultAddr(c.getenv))
		if check {
			return readiness.Check(cmd.Context(), o.Addr, o.TLSCert != "")
		}
		if o.Node == "" {
			host, _ := os.Hostname() // without one the logs say nothing of it
			o.Node = cmp.Or(c.getenv("CHORUS_NODE"), host)
		}
		if folder != "" {
			before := c.getenv
			c.getenv = func(key string) string {
				if key == "CHORUS_CONFIG" {
					return folder
				}
				return before(key)
			}
		}
		if text := checks.AsRoot(os.Geteuid()); text != "" && !c.console.OutTTY { // there the banner says it
			c.warn(text)
		}
		ctx, stop := twoSignals(cmd.Context(), c, stopping)
		defer stop()
		err := c.with(ctx, func(a *app.App) error {
			if !c.console.ErrTTY {
				a.Logs.SpeakLog(c.console.Err, c.getenv("JOURNAL_STREAM") != "") // systemd keeps what is said there
			}
			o.Ready = func(url, signIn string) {
				c.announce(ctx, a, url, signIn)
				if c.console.ErrTTY {
					a.Logs.ShowLog(c.errors()) // people read first where it is
				}
			}
			if !noBrowser {
				o.Browser = c.openBrowser
			}
			return a.Serve(ctx, o)
		})
		if errors.Is(err, app.ErrRestart) {
			return startAgain()
		}
		if err == nil && c.console.ErrTTY {
			fmt.Fprintln(c.console.Err, "Stopped. Nothing is lost: start it again and it goes on.")
		}
		return err
	}
	return cmd
}

// startAgain replaces this process by a new one of the same program with the same arguments: whoever supervises it sees no end.
func startAgain() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("start the server again: %w", syscall.Exec(program, os.Args, append(os.Environ(), browser.Off+"=1")))
}

// stopping is what a server says on a terminal when it is told to stop.
const stopping = "\nStopping: what is being answered is answered, commands that run get a moment\nto end, the rest goes on at the next start. Ctrl-C again ends it at once."

// twoSignals ends the context with the first signal, and says words on a terminal, and ends the process with the second.
func twoSignals(ctx context.Context, c *program, words string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		if words != "" && c.console.ErrTTY {
			fmt.Fprintln(c.console.Err, words)
		}
		cancel()
		select {
		case <-signals:
			c.warn("stopped at once; what ran goes on at the next start")
			os.Exit(repl.ExitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// defaultAddr is where the server listens when nobody says otherwise.
func defaultAddr(env func(string) string) string { return cmp.Or(env("CHORUS_ADDR"), "127.0.0.1:8420") }
