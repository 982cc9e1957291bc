package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/threadview"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

func (c *program) threadCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "thread", Short: "Manage conversations: list, read, search, steer, stop, fork, export, replay", RunE: onlySubcommands}
	cmd.AddCommand(c.threadShow(), c.threadWhy())
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.ListSessions, listThreads)
		cli.JSON(commands, operations.ListSessions, threadsAsJSON)
		cli.Render(commands, operations.Search, threadview.Hits)
		cli.JSON(commands, operations.Search, threadview.HitsAsJSON)
		cli.Render(commands, operations.Steer, threadview.Steered)
		cli.Render(commands, operations.Abort, threadview.Aborted)
		cli.Render(commands, operations.DeleteSession, deleted)
		cli.Render(commands, operations.Fork, threadview.Forked)
		cli.JSON(commands, operations.Fork, func(_ cli.View, made operations.CreatedSession) any {
			return map[string]string{"sessionId": made.SessionID, "thread": made.Session.Thread}
		})
		cli.Prepare(commands, operations.Export, exportFormat)
		cli.Items(commands, operations.Watch, threadview.Items)
		cli.Items(commands, operations.Replay, showReplay)
		cli.InvalidIsUsage(commands, operations.Fork, operations.Export)
	})
}

// threadJSON is a thread in JSON.
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
	Until      time.Time     `json:"until,omitzero"` // set for a deleted one
}

func threadsAsJSON(_ cli.View, list operation.List[operations.Session]) any {
	out := []threadJSON{}
	for _, s := range list.Items {
		status := chat.Status(s.Status)
		if s.Status == "waiting" { // the name that the journal and scripts use
			status = chat.Waiting
		}
		out = append(out, threadJSON{chat.ThreadID(s.Thread), s.ID, s.Agent, s.Title, s.WorkspacePath, status, s.Queue, s.Seq, s.CreatedAt, s.MovedAt, s.Until})
	}
	return out
}

// deleted prints until when a session can be restored.
func deleted(v cli.View, _ operations.SessionDeletion, d operations.DeletedSession) error {
	if d.Until.IsZero() {
		_, err := fmt.Fprintf(v.Out, "%s and everything said in it is gone\n", d.ID)
		return err
	}
	_, err := fmt.Fprintf(v.Out, "%s is deleted\nrestore it until %s with `chorus thread restore %s`; after that, everything said in it is gone\n", d.ID, operation.Cell(reflect.ValueOf(d.Until), "minute"), d.ID)
	return err
}

// listDeleted lists deleted sessions, with the time when they are removed for good.
func listDeleted(v cli.View, list operation.List[operations.Session]) error {
	t := operation.Table{Head: []string{"SESSION", "AGENT", "GONE FOR GOOD", "TITLE"}}
	for _, s := range list.Items {
		t.Rows = append(t.Rows, []string{s.ID, s.Agent, operation.Cell(reflect.ValueOf(s.Until), "minute"), cli.ClipLine(s.Title, 60)})
	}
	return cli.WriteTable(v, t, "nothing was deleted")
}

func listThreads(v cli.View, q operations.SessionQuery, list operation.List[operations.Session]) error {
	if q.Listing == "deleted" {
		return listDeleted(v, list)
	}
	empty := operations.ListSessions.Empty
	if v.Server != "" {
		empty += " --server " + v.Server
	}
	return cli.WriteTable(v, operations.ListSessions.TableOf(list), empty)
}

// threadShow shows a conversation: as people read it, as its journal, or as the events that scripts read.
func (c *program) threadShow() *cobra.Command {
	events := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "show [ID]", Short: "Read a conversation, or its journal", Args: between(0, 1), ValidArgsFunction: firstIs(c.names("session")),
		Long:    "Shows who said what, with a line for each tool call and the outcome of each run.\nWith --events it shows the journal itself. Without an ID it shows the newest conversation.\nOn a pipe answers are Markdown, as the model wrote them; use --json in scripts.",
		Example: "  chorus thread show\n  chorus thread show 01k3            the start of an id is enough, if it is unique\n  chorus thread show 01k3 --events",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.execute(cmd.Context(), func(to cli.Connection) error {
				s, err := sessionOf(cmd.Context(), to, args)
				if err != nil {
					return err
				}
				w := bufio.NewWriter(c.out())
				defer w.Flush()
				if c.json {
					return writeObjects(cmd.Context(), to, s, w)
				}
				if events {
					return writeJournal(cmd.Context(), to, s, w)
				}
				return c.writeConversation(cmd.Context(), to, s, w)
			})
		},
	})
	cmd.Flags().BoolVar(&events, "events", false, "print every event of the journal, one per line")
	return cmd
}

// threadWhy explains an answer, as /why does in a conversation.
func (c *program) threadWhy() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "why [ID [ANSWER]]", Short: "Explain an answer: what the agent knew, what was allowed and read, what it cost", Args: between(0, 2), ValidArgsFunction: firstIs(c.names("session")),
		Long:    "ANSWER is 2 for the answer before the last one, or # and the number of one of its events. The default is the last answer. Without an ID it uses the newest conversation.",
		Example: "  chorus thread why\n  chorus thread why 01k3\n  chorus thread why 01k3 2\n  chorus thread why 01k3 '#120'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.execute(cmd.Context(), func(to cli.Connection) error {
				s, err := sessionOf(cmd.Context(), to, args)
				if err != nil {
					return err
				}
				line := "/why"
				if len(args) == 2 {
					line += " " + args[1]
				}
				answer, err := operations.RunCommand.Call(cmd.Context(), to, to.Caller, operations.CommandLine{ID: s.ID, Line: line})
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(answer)
				}
				_, err = fmt.Fprintln(c.out(), repl.Answer(answer.Text, c.console))
				return err
			})
		},
	})
}

// writeConversation prints a conversation.
func (c *program) writeConversation(ctx context.Context, to cli.Connection, s operations.Session, w *bufio.Writer) error {
	head := []string{s.ID, s.Agent, s.Status, s.WorkspacePath}
	fmt.Fprintf(w, "%s\n%s\n\n", cli.ClipLine(cmp.Or(s.Title, "(nothing was said)"), 100), strings.Join(slices.DeleteFunc(head, func(p string) bool { return p == "" }), " · "))
	view, err := remote.Open(ctx, to, to.Caller, remote.Options{ID: s.ID})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	con := c.console
	con.Out = c.styled()
	return repl.Show(ctx, view, s.Seq, con)
}

// sessionOf finds the session named by the first argument or, without one, the newest in which people talk.
func sessionOf(ctx context.Context, to cli.Connection, args []string) (operations.Session, error) {
	if len(args) > 0 {
		return findSession(ctx, to, args[0])
	}
	newest, err := operations.ListSessions.Call(ctx, to, to.Caller, operations.SessionQuery{Kind: "talk", Limit: 1})
	if err != nil {
		return operations.Session{}, err
	}
	if len(newest.Items) == 0 {
		return operations.Session{}, errors.New("there are no conversations yet; start one with `chorus chat`")
	}
	return operations.GetSession.Call(ctx, to, to.Caller, operations.SessionRef{ID: newest.Items[0].ID})
}

// findSession finds a session by its id or a unique prefix of it.
func findSession(ctx context.Context, to cli.Connection, name string) (operations.Session, error) {
	id, err := operation.Complete(ctx, to, to.Caller, "session", name)
	if err != nil {
		return operations.Session{}, err
	}
	return operations.GetSession.Call(ctx, to, to.Caller, operations.SessionRef{ID: id})
}

func writeJournal(ctx context.Context, to cli.Connection, s operations.Session, w *bufio.Writer) error {
	fmt.Fprintf(w, "%s\n%s · %s · %d waiting · %s\n\n", s.Thread, s.Agent, s.Status, s.Queue, s.WorkspacePath)
	for q := (operations.EventQuery{ID: s.ID, Limit: 500}); ; {
		page, err := operations.Events.Call(ctx, to, to.Caller, q)
		if err != nil {
			return err
		}
		for _, ev := range page.Items {
			fmt.Fprintf(w, "%4d  %s  %-17s %s\n", ev.Seq, ev.At.Local().Format("15:04:05.000"), ev.Kind, cli.ClipLine(string(ev.Body), 160))
		}
		if page.Next == "" {
			return nil
		}
		if q.After, err = strconv.ParseInt(page.Next, 10, 64); err != nil {
			return fmt.Errorf("the next page: %w", err)
		}
	}
}

// writeObjects prints the session's event stream so far.
func writeObjects(ctx context.Context, to cli.Connection, s operations.Session, w *bufio.Writer) error {
	if s.Seq == 0 {
		return nil
	}
	for item, err := range operations.Watch.Follow(ctx, to, to.Caller, operations.WatchRequest{ID: s.ID}) {
		if err != nil {
			return err
		}
		head := item.Header()
		if head.Seq == 0 {
			continue
		}
		data, err := feed.Encode(item)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", data)
		if head.Seq >= s.Seq && !head.More {
			return nil
		}
	}
	return ctx.Err()
}

// exportFormat accepts md for markdown.
func exportFormat(*cobra.Command) func(context.Context, cli.Connection, *operations.ExportRequest, []string) error {
	return func(_ context.Context, _ cli.Connection, in *operations.ExportRequest, _ []string) error {
		switch in.Format {
		case "md":
			in.Format = operations.Markdown
		case operations.Markdown, operations.JSONLines:
		default:
			return &usage.Error{Err: fmt.Errorf("unknown format %q; choose jsonl or markdown", in.Format)}
		}
		return nil
	}
}

// showReplay exits with 1 if a request differs.
func showReplay(v cli.View, asJSON bool) (func(operations.ReplayLine) error, func(error) error) {
	return threadview.Replay(v, asJSON, exitError(1))
}
