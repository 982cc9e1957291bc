package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"chorus/internal/sim/llmsim"
)

func (c *program) simCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sim", Short: "Run simulators, to try an agent without any account", RunE: onlySubcommands}
	cmd.AddCommand(c.simLLM(), c.simDiscord())
	return cmd
}

func (c *program) simLLM() *cobra.Command {
	addr, script := "", ""
	cmd := c.jsonFlag(&cobra.Command{
		Use: "llm", Short: "Run a model server that speaks the vendors' APIs and answers by a script", Args: exactly(0),
		Long: `Speaks Anthropic's Messages API, OpenAI's Chat Completions, Responses and Completions,
OpenRouter, Gemini, Bedrock and Ollama over HTTP. Without a script it echoes. A script
(YAML or JSON) lists turns: text, tool calls, faults. POST /sim/script replaces the script,
or with ?add=true appends to it; GET /sim/requests shows the requests it received.`,
		Example: `  chorus sim llm --addr 127.0.0.1:8440 --script turns.yaml
  ANTHROPIC_BASE_URL=http://127.0.0.1:8440 ANTHROPIC_API_KEY=any chorus chat
  OLLAMA_HOST=127.0.0.1:8440 chorus chat -p ollama`,
	})
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8440", "where to listen")
	cmd.Flags().StringVar(&script, "script", "", "script file (YAML or JSON)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		server := llmsim.New(llmsim.Options{})
		if script != "" {
			s, err := llmsim.ReadScript(script)
			if err != nil {
				return err
			}
			server.Load(s)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("sim llm: %w; choose another --addr", err)
		}
		url := "http://" + l.Addr().String()
		if c.json {
			if err := c.printJSON(map[string]string{"api": url}); err != nil {
				return err
			}
		} else {
			fmt.Fprintf(c.out(), "listening on %s\n", url)
			fmt.Fprintf(c.console.Err, "use it with:\n  ANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=any chorus chat\n  OPENAI_BASE_URL=%s/v1 chorus chat -p openai\n"+
				"  GOOGLE_GEMINI_BASE_URL=%s GEMINI_API_KEY=any chorus chat -p google\n  OLLAMA_HOST=%s chorus chat -p ollama\n", url, url, url, url)
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if err := server.Serve(ctx, l); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	return cmd
}
