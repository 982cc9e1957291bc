// Package modelview shows models at a terminal, with their abilities and prices.
package modelview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/provider"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
)

// ShowServer prints the vendors and models of a server.
func ShowServer(view cli.View, list []operations.Model) error {
	w := view.Columns()
	fmt.Fprintln(w, "VENDOR\tKEY\tMODELS")
	for _, v := range vendorsOf(list) {
		fmt.Fprintf(w, "%s\t%s\t%d\n", v.name, v.key, v.models)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(view.Out)
	narrow := view.Narrow()
	if narrow {
		fmt.Fprintln(w, "MODEL\tREADY\tWINDOW\t$ IN\t$ OUT")
	} else {
		fmt.Fprintln(w, "MODEL\tREADY\tWINDOW\tOUTPUT\t$ IN\t$ OUT\tCAN")
	}
	for _, m := range list {
		ready := "no key"
		if m.Ready {
			ready = "yes"
		}
		if m.Default {
			ready = "default"
		}
		if narrow {
			fmt.Fprintf(w, "%s\t%s\t%d\t%g\t%g\n", m.Name, ready, m.ContextWindow, m.InputPrice, m.OutputPrice)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%g\t%g\t%s\n", m.Name, ready, m.ContextWindow, m.MaxOutput, m.InputPrice, m.OutputPrice, strings.Join(m.Can, " "))
	}
	return w.Flush()
}

// vendor is a vendor with what its models say about it.
type vendor struct {
	name, key string
	models    int
}

// vendorsOf are the vendors of models, in the models' order.
func vendorsOf(list []operations.Model) (out []vendor) {
	for _, m := range list {
		name, _, _ := strings.Cut(m.Name, "/")
		if i := slices.IndexFunc(out, func(v vendor) bool { return v.name == name }); i >= 0 {
			out[i].models++
			continue
		}
		key := "none"
		if m.Ready {
			key = "ready"
		}
		out = append(out, vendor{name, key, 1})
	}
	return out
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
			fmt.Fprintln(view.Out, strings.Join(text.WrapWords(v.Name+": "+v.Error, view.Width, markdown.Width), "\n"))
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
