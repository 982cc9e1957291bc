package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/config"
	"chorus/internal/provider"
	"chorus/internal/room"
	"chorus/internal/runsetup"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) contextCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "context", Short: "Save and restore what an agent sees of a conversation, or show its request", Args: cobra.ArbitraryArgs, RunE: onlySubcommands}
	cmd.AddCommand(c.contextRenderCommand())
	return c.addOperations(cmd, func(*cli.Commands) {})
}

func (c *program) contextRenderCommand() *cobra.Command {
	var o provider.Rendering
	var who struct{ bot, guild, channel string }
	var age string
	cmd := &cobra.Command{
		Use: "render [FILE]", Short: "Print the provider request for a conversation, or a bot's system prompt", Args: cobra.MaximumNArgs(1),
		Long: `Reads a participant-based request as JSON (messages, systemPrompt, tools, stopSequences,
config and botName; - is standard input) and prints the request that would be sent to the
provider. Nothing is sent, and no key is needed.

With --bot and no file it prints the system prompt of the bot's requests: Chorus's lines
about tools (replaced by the preamble, if that key is set), the bot's own prompt and its
docs.`,
		Example: `  chorus context render request.json
  chorus context render --bot cora
  chorus context render request.json --mode chat --provider openai`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && who.bot == "" {
				return usage.Wrap(errors.New("usage: chorus context render FILE, or chorus context render --bot NAME"))
			}
			if len(args) == 0 {
				return c.renderPrompt(cmd.Context(), room.Agent{Name: who.bot}, who.guild, who.channel)
			}
			data, err := c.readFile(args[0])
			if err != nil {
				return err
			}
			if o.Window, err = config.HowLong(age); err != nil {
				return usage.Wrap(fmt.Errorf("--window %w", err))
			}
			body, left, err := provider.Render(data, o)
			if err != nil {
				return err
			}
			if left != "" {
				fmt.Fprintf(c.console.Err, "older messages are outside the window (%s)\n", left)
			}
			_, err = c.out().Write(body)
			return err
		},
	}
	cmd.Flags().StringVar(&o.Mode, "mode", "", "prefill or chat (default: the request's)")
	cmd.Flags().StringVar(&o.Provider, "provider", "", "provider whose request to print (default anthropic)")
	cmd.Flags().StringVar(&age, "window", "", "leave out messages this much older than the newest, as recencyWindow.age does: 90m, 24h")
	cmd.Flags().StringVar(&who.bot, "bot", "", "show the system prompt of this bot or agent")
	cmd.Flags().StringVar(&who.guild, "guild", "", "with --bot: id of the guild to show it in")
	cmd.Flags().StringVar(&who.channel, "channel", "", "with --bot: id of the channel to show it in, pins included")
	return cmd
}

// renderPrompt prints the system prompt of a bot.
func (c *program) renderPrompt(ctx context.Context, agent room.Agent, guild, channel string) error {
	return c.with(ctx, func(a *app.App) error {
		bot, _, err := a.Settings.BotAt(ctx, agent, guild, channel)
		if err != nil {
			return err
		}
		dir := "(the folder of the conversation)"
		if runsetup.IsDir(a.Home.AgentDir(agent.Name)) {
			dir = a.Settings.Agents().Workspace(agent.Name)
		}
		text, err := a.Setup.SystemPrompt(ctx, bot, agent.Name, dir)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.out(), text)
		return err
	})
}

// readFile reads a file, or standard input for "-".
func (c *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.console.In)
	}
	return os.ReadFile(name)
}
