package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/model"
)

func (c *cli) modelsCommand() *cobra.Command {
	refresh := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "models", Short: "What each provider offers", Args: exactly(0),
		Long: `Lists the models that Chorus knows, with window and prices. With --refresh it asks
each provider that has a key and rewrites the cache available_models.json.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				available, err := a.Available(cmd.Context(), refresh, c.warn)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(available)
				}
				w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "MODEL\tWINDOW\tOUTPUT\t$ IN\t$ OUT\t$ CACHED\tKEY")
				for _, e := range model.All() {
					fmt.Fprintf(w, "%s/%s\t%d\t%d\t%s\t%s\t%s\t%s\n", e.Provider, e.Model, e.ContextWindow, e.MaxOutput,
						perMillion(e.Price.Input), perMillion(e.Price.Output), perMillion(e.Price.CacheRead), available.State(e.Provider))
				}
				if err := w.Flush(); err != nil {
					return err
				}
				for _, extra := range available.Beyond(model.All()) {
					fmt.Fprintln(c.out(), extra)
				}
				fmt.Fprintf(c.out(), "\ndefault: %s\n", a.Models.Default())
				return nil
			})
		},
	})
	cmd.Flags().BoolVar(&refresh, "refresh", false, "ask the providers and rewrite the cache")
	return cmd
}

func perMillion(nanos int64) string {
	if nanos == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g", float64(nanos)/1000)
}
