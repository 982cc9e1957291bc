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
		Use: "serve", Short: "Start the server: HTTP API and web page", Args: exactly(0),
		Long: `Serves the HTTP API and the web page, and keeps agents working while nobody sits at a
terminal. Without a key it uses a built-in offline model.

It listens on this machine only, and everybody needs a token; the first start makes the
owner's. On a terminal it shows a sign-in link, opens it in a browser if there is one, and
then reports only problems; everything else goes to the log file. To reach it from other
machines, give it a certificate or put it behind a proxy that has one.

Stop it with SIGTERM or Ctrl-C: it finishes open requests, closes streams, and continues
active runs at the next start. A second signal ends it at once.`,
		Example: `  chorus serve
  chorus serve --addr 127.0.0.1:9000
  chorus serve --addr 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --host chorus.example.org
  chorus serve --behind-proxy --host chorus.example.org`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Addr, "addr", "", "where to listen (default $CHORUS_ADDR or 127.0.0.1:8420)")
	f.StringVar(&folder, "config", "", "folder with the configuration (default $CHORUS_CONFIG or config in the home)")
	f.StringVar(&o.Node, "node", "", "name of this server in logs and among nodes (default $CHORUS_NODE or the machine's name)")
	f.BoolVar(&o.BehindProxy, "behind-proxy", false, "expect your own proxy in front, which does TLS and passes on client addresses")
	f.StringVar(&o.TLSCert, "tls-cert", "", "certificate, as a PEM file")
	f.StringVar(&o.TLSKey, "tls-key", "", "the certificate's key, as a PEM file")
	f.StringArrayVar(&o.Hosts, "host", nil, "name under which people reach this server, besides localhost; may be given more than once")
	f.BoolVar(&check, "check", false, "start nothing; ask the server at --addr whether it is ready, and exit with 0 or 1")
	f.BoolVar(&noBrowser, "no-browser", false, "do not open a browser at startup (or set "+browser.Off+"=1)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.Addr = cmp.Or(o.Addr, defaultAddr(c.getenv))
		if check {
			return readiness.Check(cmd.Context(), o.Addr, o.TLSCert != "")
		}
		if o.Node == "" {
			host, _ := os.Hostname() // without a name the logs omit it
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
		if text := checks.AsRoot(os.Geteuid()); text != "" && !c.console.OutTTY { // on a terminal the banner says it
			c.warn(text)
		}
		ctx, stop := twoSignals(cmd.Context(), c, stopping)
		defer stop()
		err := c.with(ctx, func(a *app.App) error {
			if !c.console.ErrTTY {
				a.Logs.SpeakLog(c.console.Err, c.getenv("JOURNAL_STREAM") != "") // systemd keeps the output
			}
			o.Ready = func(url, signIn string) {
				c.announce(ctx, a, url, signIn)
				if c.console.ErrTTY {
					a.Logs.ShowLog(c.errors()) // people first read where the server is
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
			fmt.Fprintln(c.console.Err, "Stopped. Nothing is lost: work continues at the next start.")
		}
		return err
	}
	return cmd
}

// startAgain replaces this process by a new one with the same program and arguments, so a supervisor does not notice a restart.
func startAgain() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("start the server again: %w", syscall.Exec(program, os.Args, append(os.Environ(), browser.Off+"=1")))
}

// stopping is printed on a terminal when the server is told to stop.
const stopping = "\nStopping: finishing open requests and giving running commands a moment to end.\nThe rest continues at the next start. Press Ctrl-C again to stop at once."

// twoSignals cancels the context at the first signal, and prints words on a terminal. The second signal ends the process.
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
			c.warn("stopped at once; what was running continues at the next start")
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

// defaultAddr is the listening address if none is given.
func defaultAddr(env func(string) string) string { return cmp.Or(env("CHORUS_ADDR"), "127.0.0.1:8420") }
