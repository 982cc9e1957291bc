package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"chorus/internal/provider"
)

func (c *program) contextCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "context", Short: "How a conversation is told to a model", Args: cobra.ArbitraryArgs, RunE: oneOf}
	cmd.AddCommand(c.contextRenderCommand())
	return cmd
}

func (c *program) contextRenderCommand() *cobra.Command {
	var o provider.Rendering
	cmd := &cobra.Command{
		Use: "render FILE", Short: "Show the provider request that a conversation becomes", Args: exactly(1),
		Long: `Reads a participant-based request as JSON (messages, systemPrompt, tools,
stopSequences, config and botName; - is standard input) and prints the request that
would be sent to the provider. Nothing is sent, and no key is needed.`,
		Example: `  chorus context render request.json
  chorus context render request.json --mode chat --provider openai`,
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := c.readFile(args[0])
			if err != nil {
				return err
			}
			body, err := provider.Render(data, o)
			if err != nil {
				return err
			}
			_, err = c.out().Write(body)
			return err
		},
	}
	cmd.Flags().StringVar(&o.Mode, "mode", "", "prefill or chat (default: the request's)")
	cmd.Flags().StringVar(&o.Provider, "provider", "", "whose request (default anthropic)")
	return cmd
}

// readFile reads a file, or standard input for "-".
func (c *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.console.In)
	}
	return os.ReadFile(name)
}
