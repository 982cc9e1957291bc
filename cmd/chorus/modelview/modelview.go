// Package modelview shows models at a terminal, with their abilities and prices.
package modelview

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"chorus/internal/operations"
	"chorus/internal/provider"
	"chorus/internal/transport/cli"
)

// ShowServer prints the models of a server.
func ShowServer(view cli.View, list []operations.Model) error {
	w := view.Columns()
	fmt.Fprintln(w, "MODEL\tREADY\tWINDOW\tOUTPUT\t$ IN\t$ OUT\tCAN")
	for _, m := range list {
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
}

// Show prints the vendors and models that this home knows.
func Show(view cli.View, all provider.Catalog) error {
	w := view.Columns()
	fmt.Fprintln(w, "VENDOR\tKIND\tKEY\tLISTS\tPROVIDES")
	for _, v := range all.Vendors {
		provides := cmp.Or(strings.Join(v.Provides, " "), "–")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.Name, v.Kind, v.Key, count(v.Listed), provides)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(view.Out)
	narrow := view.Narrow()
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
	lists := "no vendor was asked yet; ask with: chorus models --refresh"
	if all.Age != "" {
		lists = "available_models.json, " + all.Age + "; ask again with: chorus models --refresh"
	}
	fmt.Fprintf(view.Out, "\nlists: %s\n", lists)
	for _, v := range all.Vendors {
		if v.Error != "" {
			fmt.Fprintf(view.Out, "%s: %s\n", v.Name, v.Error)
		}
	}
	fmt.Fprintf(view.Out, "default: %s\n", all.Default)
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
