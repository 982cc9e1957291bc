package main

import (
	"bufio"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/feed"
	"chorus/internal/journal"
	"chorus/internal/store"
)

func (c *cli) threadCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "thread", Short: "Conversations: list, read, search, steer, stop, fork, export, replay", RunE: oneOf}
	cmd.AddCommand(c.threadList(), c.threadShow(), c.threadSearch(), c.threadExport(), c.threadReplay(), c.threadSteer(), c.threadAbort(), c.threadFork())
	return c.serverFlags(cmd)
}

type threadJSON struct {
	ID         chat.ThreadID `json:"id"`
	SessionID  string        `json:"sessionId"`
	Agent      string        `json:"agent"`
	Title      string        `json:"title"`
	Dir        string        `json:"dir"`
	Status     chat.Status   `json:"status"`
	Waiting    int           `json:"waiting"`
	Events     int64         `json:"events"`
	Created    time.Time     `json:"createdAt"`
	LastActive time.Time     `json:"lastActive"`
}

func asJSON(t journal.Thread) threadJSON {
	return threadJSON{t.ID, t.ID.Thread(), t.Agent, t.Title, t.Dir, t.Status, t.Waiting, t.Next - 1, t.Created, t.LastActive}
}

func (c *cli) threadList() *cobra.Command {
	var f store.ThreadFilter
	cmd := c.jsonFlag(&cobra.Command{
		Use: "list", Short: "List threads, the last active first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() {
				return c.farThreads(cmd.Context(), f.Agent, f.Limit)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				rows, err := a.DB.Threads(cmd.Context(), f)
				if err != nil {
					return err
				}
				if c.json {
					out := []threadJSON{}
					for _, t := range rows {
						out = append(out, asJSON(t))
					}
					return c.printJSON(out)
				}
				if len(rows) == 0 {
					fmt.Fprintln(c.out(), "nothing was said yet; begin with: chorus chat")
					return nil
				}
				w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "SESSION\tAGENT\tSTATUS\tLAST ACTIVE\tTITLE")
				for _, t := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.ID.Thread(), t.Agent, t.Status, t.LastActive.Local().Format("2006-01-02 15:04"), clipLine(t.Title, 60))
				}
				return w.Flush()
			})
		},
	})
	cmd.Flags().StringVar(&f.Agent, "agent", "", "only this agent's")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most so many")
	return cmd
}

func clipLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func (c *cli) threadShow() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "show ID", Short: "Show a thread's journal", Args: exactly(1),
		Example: "  chorus thread show 01k3            a unique beginning of the id is enough",
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farShow(cmd.Context(), args[0])
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				row, err := a.Service.FindThread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				w := bufio.NewWriter(c.out())
				defer w.Flush()
				if !c.json {
					fmt.Fprintf(w, "%s\n%s · %s · %d waiting · %s\n\n", row.ID, row.Agent, row.Status, row.Waiting, row.Dir)
				}
				calls, hide := feed.Calls{}, a.Logs.Redactor()
				for ev, err := range a.DB.AllEvents(cmd.Context(), row.ID, 0) {
					if err != nil {
						return err
					}
					if c.json {
						calls.Note(ev)
						for _, item := range feed.Translate(ev, feed.Options{Args: calls.Args}) {
							data, err := feed.Encode(item)
							if err != nil {
								return err
							}
							fmt.Fprintf(w, "%s\n", hide.JSON(data))
						}
						continue
					}
					body, err := chat.EncodeBody(ev.Body)
					if err != nil {
						return err
					}
					fmt.Fprintf(w, "%4d  %s  %-17s %s\n", ev.Seq, ev.At.Local().Format("15:04:05.000"), ev.Body.Kind(), clipLine(string(hide.JSON(body)), 160))
				}
				return nil
			})
		},
	})
}

// guest is an engine that only writes as a guest: the thread's owner, in whatever
// process it lives, notices.
func guest(a *app.App) *engine.Engine {
	return a.Engine(nil)
}

func (c *cli) threadSteer() *cobra.Command {
	return &cobra.Command{
		Use: "steer ID WORDS…", Short: "Say something to a run that is on", Args: between(2, anyNumber),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farSteer(cmd.Context(), args[0], strings.Join(args[1:], " "))
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				row, err := a.Service.FindThread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				asPrompt, err := a.Service.SteerFrom(cmd.Context(), row.ID, strings.Join(args[1:], " "))
				if err != nil {
					return err
				}
				if asPrompt {
					fmt.Fprintf(c.out(), "nothing is running there: it waits as a prompt; go on with: chorus run --session-id %s\n", row.ID.Thread())
				} else {
					fmt.Fprintln(c.out(), "sent to the running agent")
				}
				return nil
			})
		},
	}
}

func (c *cli) threadAbort() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "abort ID", Short: "Stop the run that is on", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farAbort(cmd.Context(), args[0], all)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				row, err := a.Service.FindThread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				ended, err := guest(a).Abort(cmd.Context(), row.ID, a.Me().String(), all)
				if err != nil {
					return err
				}
				if ended {
					fmt.Fprintln(c.out(), "stopping")
				} else {
					fmt.Fprintln(c.out(), "nothing is running there")
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also drop what waits")
	return cmd
}
