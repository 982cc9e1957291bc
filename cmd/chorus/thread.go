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

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/remote"
)

func (c *program) threadCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "thread", Short: "Conversations: list, read, search, steer, stop, fork, export, replay", RunE: oneOf}
	cmd.AddCommand(c.threadShow(), c.threadWhy())
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.ListSessions, listThreads)
		cli.JSON(commands, operations.ListSessions, threadsAsJSON)
		cli.Render(commands, operations.Search, showHits)
		cli.JSON(commands, operations.Search, hitsAsJSON)
		cli.Render(commands, operations.Steer, steered)
		cli.Render(commands, operations.Abort, aborted)
		cli.Render(commands, operations.DeleteSession, deleted)
		cli.Render(commands, operations.Fork, forked)
		cli.JSON(commands, operations.Fork, func(_ cli.View, made operations.CreatedSession) any {
			return map[string]string{"sessionId": made.SessionID, "thread": made.Session.Thread}
		})
		cli.Prepare(commands, operations.Export, exportFormat)
		cli.Items(commands, operations.Watch, writeItems)
		cli.Items(commands, operations.Replay, showReplay)
		cli.InvalidIsUsage(commands, operations.Fork, operations.Export)
	})
}

// threadJSON is a thread as a script reads it.
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
	Until      time.Time     `json:"until,omitzero"` // of a deleted one
}

func threadsAsJSON(_ cli.View, list operation.List[operations.Session]) any {
	out := []threadJSON{}
	for _, s := range list.Items {
		status := chat.Status(s.Status)
		if s.Status == "waiting" { // scripts know it by the name that the journal has for it
			status = chat.Waiting
		}
		out = append(out, threadJSON{chat.ThreadID(s.Thread), s.ID, s.Agent, s.Title, s.WorkspacePath, status, s.Queue, s.Seq, s.CreatedAt, s.MovedAt, s.Until})
	}
	return out
}

// deleted says until when a session can be brought back.
func deleted(v cli.View, _ operations.SessionDeletion, d operations.DeletedSession) error {
	if d.Until.IsZero() {
		_, err := fmt.Fprintf(v.Out, "%s is gone, and what was said in it\n", d.ID)
		return err
	}
	_, err := fmt.Fprintf(v.Out, "%s is deleted\nuntil %s `chorus thread restore %s` brings it back; then what was said in it is gone\n", d.ID, operation.Cell(reflect.ValueOf(d.Until), "minute"), d.ID)
	return err
}

// listDeleted lists sessions that were deleted, with the time when they are gone for good.
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

// threadShow reads a conversation: as people talk, as its journal, or as the events that scripts read.
func (c *program) threadShow() *cobra.Command {
	events := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "show [ID]", Short: "Read a conversation, or its journal", Args: between(0, 1),
		Long:    "Shows who said what, with a line for each call and what each run came to.\nWith --events it shows the journal that this follows from. Without an ID it is the newest one.\nOn a pipe answers are Markdown, as the model wrote them; --json is for scripts.",
		Example: "  chorus thread show\n  chorus thread show 01k3            a unique beginning of the id is enough\n  chorus thread show 01k3 --events",
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
	cmd.Flags().BoolVar(&events, "events", false, "every event of the journal, a line each")
	return cmd
}

// threadWhy explains an answer, as /why does in a conversation.
func (c *program) threadWhy() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "why [ID [ANSWER]]", Short: "Say how an answer came about: what it knew, what was allowed and read, what it cost", Args: between(0, 2),
		Long:    "ANSWER is 2 for the answer before the last one, or # and the number of one of its events; left out: the last one. Without an ID it is that of the newest conversation.",
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
					return cli.PrintJSON(c.out(), answer)
				}
				_, err = fmt.Fprintln(c.out(), repl.PlainBlock(answer.Text))
				return err
			})
		},
	})
}

// writeConversation shows what was said and done.
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

// sessionOf is the session that the first argument names; without one the newest in which people talk.
func sessionOf(ctx context.Context, to cli.Connection, args []string) (operations.Session, error) {
	if len(args) > 0 {
		return findSession(ctx, to, args[0])
	}
	newest, err := operations.ListSessions.Call(ctx, to, to.Caller, operations.SessionQuery{Kind: "talk", Limit: 1})
	if err != nil {
		return operations.Session{}, err
	}
	if len(newest.Items) == 0 {
		return operations.Session{}, errors.New("nothing was said yet; begin with `chorus chat`")
	}
	return operations.GetSession.Call(ctx, to, to.Caller, operations.SessionRef{ID: newest.Items[0].ID})
}

// findSession finds a session by its id or a unique beginning of it.
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

// writeObjects writes what the stream of a session has said so far.
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

// writeItems writes each object of a stream as a line.
func writeItems(v cli.View, _ bool) (func(feed.Item) error, func(error) error) {
	each := func(item feed.Item) error {
		data, err := feed.Encode(item)
		if err == nil {
			_, err = fmt.Fprintf(v.Out, "%s\n", data)
		}
		return err
	}
	return each, func(err error) error { return err }
}

func steered(v cli.View, in operations.SteerMessage, said operations.Said) error {
	text := "sent to the running agent"
	switch {
	case said.AsPrompt && v.Server != "":
		text = "nothing was running there: it is answered as a prompt"
	case said.AsPrompt:
		text = "nothing is running there: it waits as a prompt; go on with: chorus run --session-id " + in.ID
	}
	_, err := fmt.Fprintln(v.Out, text)
	return err
}

func aborted(v cli.View, _ operations.AbortRequest, done operations.Aborted) error {
	text := "nothing is running there"
	if done.Aborted {
		text = "stopping"
	}
	_, err := fmt.Fprintln(v.Out, text)
	return err
}

func forked(v cli.View, _ operations.ForkRequest, made operations.CreatedSession) error {
	fmt.Fprintln(v.Out, made.SessionID)
	switch {
	case v.Server != "":
		fmt.Fprintf(v.Err, "chorus: go on with: chorus chat --server %s --session-id %s\n", v.Server, made.SessionID)
	case chat.ThreadID(made.Session.Thread).Transport() == "cli":
		fmt.Fprintf(v.Err, "chorus: go on with: chorus chat --session-id %s\n", made.SessionID)
	}
	return nil
}
