package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/service"
	"chorus/internal/store"
)

// hitJSON is a place where something was said, as a script reads it.
type hitJSON struct {
	SessionID string    `json:"sessionId"`
	Agent     string    `json:"agent"`
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	Who       string    `json:"who"`
	Snippet   string    `json:"snippet"`
}

func (c *cli) threadSearch() *cobra.Command {
	var o store.SearchOptions
	cmd := c.jsonFlag(&cobra.Command{
		Use: "search WORDS…", Short: "Find what was said", Args: between(1, anyNumber),
		Example: "  chorus thread search retry budget",
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farSearch(cmd.Context(), strings.Join(args, " "), o.Agent, o.Limit)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				if _, err := a.DB.IndexNew(cmd.Context()); err != nil {
					return err
				}
				o.MarkStart, o.MarkEnd = service.MarkStart, service.MarkEnd
				hits, err := a.DB.Search(cmd.Context(), strings.Join(args, " "), o)
				if err != nil {
					return err
				}
				found := []hitJSON{}
				for _, h := range hits {
					found = append(found, hitJSON{h.Thread.Thread(), h.Thread.Agent(), h.Seq, h.At, h.Who, a.Service.Snippet(h.Snippet)})
				}
				return c.tellHits(found)
			})
		},
	})
	cmd.Flags().StringVar(&o.Agent, "agent", "", "only this agent's threads")
	cmd.Flags().IntVar(&o.Limit, "limit", 20, "at most so many")
	return cmd
}

// tellHits shows what was found; in JSON the words found are not marked.
func (c *cli) tellHits(hits []hitJSON) error {
	if c.json {
		plain := strings.NewReplacer(service.MarkStart, "", service.MarkEnd, "")
		for i := range hits {
			hits[i].Snippet = plain.Replace(hits[i].Snippet)
		}
		return c.printJSON(hits)
	}
	if len(hits) == 0 {
		fmt.Fprintln(c.out(), "nothing found")
	}
	shown := strings.NewReplacer(service.MarkStart, "[", service.MarkEnd, "]")
	for _, h := range hits {
		fmt.Fprintf(c.out(), "%s  #%d  %s  %s\n    %s\n", h.SessionID, h.Seq, h.At.Local().Format("2006-01-02 15:04"), h.Who, clipLine(shown.Replace(h.Snippet), 200))
	}
	return nil
}
