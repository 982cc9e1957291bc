package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/modelrouter"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/provider"
	"chorus/internal/transport/cli"
)

func (c *program) modelsCommand() *cobra.Command {
	refresh := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "models", Short: "What each provider offers", Args: exactly(0),
		Long: `Lists the vendors and the models that Chorus knows, with window, prices and what
each can do. With --refresh it asks every vendor that has a key, which also shows
whether the key is accepted, and rewrites the list available_models.json.`,
		Example: `  chorus models
  chorus models --refresh`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() && !refresh {
				return c.serverModels(cmd.Context())
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				list := modelrouter.Available{}
				if refresh {
					var err error
					if list, err = a.Discovery.RefreshModels(cmd.Context(), c.heard); err != nil {
						return err
					}
				} else {
					list = a.Discovery.Available(c.warn)
				}
				all, err := a.Discovery.Catalog(list)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(all)
				}
				return c.printModels(all)
			})
		},
	})
	cmd.Flags().BoolVar(&refresh, "refresh", false, "ask the vendors and rewrite the list")
	return c.serverFlags(cmd)
}

// serverModels lists the models of a server.
func (c *program) serverModels(ctx context.Context) error {
	return c.execute(ctx, func(to cli.Connection) error {
		list, err := operations.ListModels.Call(ctx, to, to.Caller, operation.None{})
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(nonNil(list.Items))
		}
		w := c.columns()
		fmt.Fprintln(w, "MODEL\tREADY\tWINDOW\tOUTPUT\t$ IN\t$ OUT\tCAN")
		for _, m := range list.Items {
			ready := "no key"
			if m.Ready {
				ready = "yes"
			}
			if m.Default {
				ready = "default"
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%g\t%g\t%s\n", m.Name, ready, m.ContextWindow, m.MaxOutput, m.InputPrice, m.OutputPrice, strings.Join(m.Can, " "))
		}
		return w.Flush()
	})
}

// heard is the progress of a refresh, a line for each vendor.
func (c *program) heard(name string, o modelrouter.Offered) {
	switch {
	case o.Error != "":
		c.warn(name + ": " + o.Error)
	case len(o.Models) == 1:
		fmt.Fprintf(c.console.Err, "%s: 1 model\n", name)
	default:
		fmt.Fprintf(c.console.Err, "%s: %d models\n", name, len(o.Models))
	}
}

func (c *program) printModels(all provider.Catalog) error {
	w := c.columns()
	fmt.Fprintln(w, "VENDOR\tKIND\tKEY\tLISTS\tPROVIDES")
	for _, v := range all.Vendors {
		provides := cmp.Or(strings.Join(v.Provides, " "), "–")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.Name, v.Kind, v.Key, count(v.Listed), provides)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(c.out())
	narrow := cli.View{Width: c.width()}.Narrow()
	if narrow {
		fmt.Fprintln(w, "MODEL\tWINDOW\t$ IN\t$ OUT\tCAN")
	} else {
		fmt.Fprintln(w, "MODEL\tWINDOW\tOUTPUT\t$ IN\t$ OUT\t$ CACHED\tCAN\tFROM")
	}
	for _, m := range all.Models {
		if narrow {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", m.Name, m.Window, perMillion(m.Input), perMillion(m.OutputFor), strings.Join(m.Can, " "))
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Window, m.Output, perMillion(m.Input), perMillion(m.OutputFor), perMillion(m.Cached), strings.Join(m.Can, " "), m.From)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	lists := "no vendor was asked yet; do it with: chorus models --refresh"
	if all.Age != "" {
		lists = "available_models.json, " + all.Age + "; ask again with: chorus models --refresh"
	}
	fmt.Fprintf(c.out(), "\nlists: %s\n", lists)
	for _, v := range all.Vendors {
		if v.Error != "" {
			fmt.Fprintf(c.out(), "%s: %s\n", v.Name, v.Error)
		}
	}
	fmt.Fprintf(c.out(), "default: %s\n", all.Default)
	return nil
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(n)
}

func perMillion(nanos int64) string {
	if nanos == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g", float64(nanos)/1000)
}
