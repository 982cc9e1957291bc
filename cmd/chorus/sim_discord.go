package main

import (
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"chorus/internal/sim/discordsim"
	"chorus/internal/text"
)

func (c *program) simDiscord() *cobra.Command {
	var (
		addr, scenario string
		bots           []string
		scale          float64
	)
	cmd := c.jsonFlag(&cobra.Command{
		Use: "discord", Short: "Run a local Discord, with a page to talk on", Args: exactly(0),
		Long: `Runs a guild with people, bots and channels behind Discord's REST API and gateway. Open the
page to talk as one of its people. People can also talk over the same API with their own token, and a
scenario (YAML) can define who there is and what they do. Trigger faults under /sim.`,
		Example: `  chorus sim discord --bots helper
  chorus sim discord --scenario guild.yaml --time-scale 10 --json
  curl -X POST http://127.0.0.1:8430/sim/faults -d '{"kind":"drop"}'`,
	})
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8430", "where to listen")
	cmd.Flags().StringSliceVar(&bots, "bots", nil, "names of bots, in addition to those of the scenario")
	cmd.Flags().StringVar(&scenario, "scenario", "", "scenario file with a guild and a script")
	cmd.Flags().Float64Var(&scale, "time-scale", 0, "speed-up factor of rate limits, time-outs and scripts")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		options := discordsim.Options{}
		if scenario != "" {
			var err error
			if options, err = discordsim.ReadScenario(scenario); err != nil {
				return fmt.Errorf("sim discord: %w", err)
			}
		}
		options.Addr = addr
		if scale != 0 {
			options.TimeScale = scale
		}
		for _, name := range bots {
			options.Bots = append(options.Bots, discordsim.BotSpec{Name: name})
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		sim, err := discordsim.Start(ctx, options)
		if err != nil {
			return fmt.Errorf("sim discord: %w; see chorus sim discord --help", err)
		}
		if err := c.announceGuild(sim.List()); err != nil {
			sim.Stop()
			return err
		}
		<-sim.Done()
		return nil
	}
	return cmd
}

// announceGuild prints the address of the guild: one line for programs, or a few for people.
func (c *program) announceGuild(l discordsim.Listing) error {
	if c.json {
		return text.WriteJSON(c.out(), l) // one line, because a program reads it while we run
	}
	fmt.Fprintf(c.out(), "listening on %s\n", strings.TrimSuffix(l.Page, "/"))
	fmt.Fprintf(c.console.Err, "open the page to talk, and point a bot here:\n  DISCORD_API_URL=%s\n", l.API)
	for _, name := range slices.Sorted(maps.Keys(l.Bots)) {
		fmt.Fprintf(c.console.Err, "  token of %s: %s\n", name, l.Bots[name])
	}
	return nil
}
