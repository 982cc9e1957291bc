package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/feed"
)

// farThreads lists the sessions of a server.
func (c *cli) farThreads(ctx context.Context, agent string, most int) error {
	return c.at(func(service command.Service) error {
		list, err := whole(most, func(cursor string) (command.List[command.Session], error) {
			return service.ListSessions(ctx, command.Caller{}, command.SessionQuery{Agent: agent, Cursor: cursor})
		})
		if err != nil {
			return err
		}
		if c.json {
			out := []threadJSON{}
			for _, s := range list {
				out = append(out, threadJSON{chat.ThreadID(s.Thread), s.ID, s.Agent, s.Title, s.WorkspacePath, chat.Status(s.Status), s.Queue, s.Seq, s.CreatedAt, s.MovedAt})
			}
			return c.printJSON(out)
		}
		if len(list) == 0 {
			fmt.Fprintf(c.out(), "nothing was said there yet; begin with: chorus chat --server %s\n", c.far.server)
			return nil
		}
		w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "SESSION\tAGENT\tSTATUS\tLAST ACTIVE\tTITLE")
		for _, s := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Agent, s.Status, s.MovedAt.Local().Format("2006-01-02 15:04"), clipLine(s.Title, 60))
		}
		return w.Flush()
	})
}

// farShow shows the journal of a session of a server.
func (c *cli) farShow(ctx context.Context, name string) error {
	return c.at(func(service command.Service) error {
		s, err := farSession(ctx, service, name)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(c.out())
		defer w.Flush()
		if c.json {
			return c.farObjects(ctx, service, s, w)
		}
		fmt.Fprintf(w, "%s\n%s · %s · %d waiting · %s\n\n", s.Thread, s.Agent, s.Status, s.Queue, s.WorkspacePath)
		for after := int64(0); ; {
			page, err := service.Events(ctx, command.Caller{}, s.ID, command.Span{After: after, Limit: 500})
			if err != nil {
				return err
			}
			for _, ev := range page.Items {
				fmt.Fprintf(w, "%4d  %s  %-17s %s\n", ev.Seq, ev.At.Local().Format("15:04:05.000"), ev.Kind, clipLine(string(ev.Body), 160))
			}
			if page.Next == "" {
				return nil
			}
			if after, err = strconv.ParseInt(page.Next, 10, 64); err != nil {
				return fmt.Errorf("the server's next page: %w", err)
			}
		}
	})
}

// farObjects writes what the stream of a session has said so far.
func (c *cli) farObjects(ctx context.Context, service command.Service, s command.Session, w *bufio.Writer) error {
	if s.Seq == 0 {
		return nil
	}
	for item, err := range service.Watch(ctx, command.Caller{}, s.ID, 0) {
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

func (c *cli) farSteer(ctx context.Context, name, words string) error {
	return c.at(func(service command.Service) error {
		s, err := farSession(ctx, service, name)
		if err != nil {
			return err
		}
		said, err := service.Steer(ctx, command.Caller{}, s.ID, command.Words{Message: words})
		switch {
		case err != nil:
			return err
		case said.AsPrompt:
			fmt.Fprintln(c.out(), "nothing was running there: it is answered as a prompt")
		default:
			fmt.Fprintln(c.out(), "sent to the running agent")
		}
		return nil
	})
}

func (c *cli) farAbort(ctx context.Context, name string, all bool) error {
	return c.at(func(service command.Service) error {
		s, err := farSession(ctx, service, name)
		if err != nil {
			return err
		}
		ended, err := service.Abort(ctx, command.Caller{}, s.ID, all)
		switch {
		case err != nil:
			return err
		case ended:
			fmt.Fprintln(c.out(), "stopping")
		default:
			fmt.Fprintln(c.out(), "nothing is running there")
		}
		return nil
	})
}

func (c *cli) farFork(ctx context.Context, name string, at int64) error {
	return c.at(func(service command.Service) error {
		s, err := farSession(ctx, service, name)
		if err != nil {
			return err
		}
		if at == 0 {
			at = s.Seq
		}
		made, err := service.Fork(ctx, command.Caller{}, s.ID, at)
		switch {
		case err != nil:
			return wrongUse(err)
		case c.json:
			return c.printJSON(map[string]string{"sessionId": made.ID, "thread": made.Thread})
		}
		fmt.Fprintln(c.out(), made.ID)
		c.warn(fmt.Sprintf("go on with: chorus chat --server %s --session-id %s", c.far.server, made.ID))
		return nil
	})
}

func (c *cli) farSearch(ctx context.Context, words, agent string, most int) error {
	return c.at(func(service command.Service) error {
		hits, err := whole(most, func(cursor string) (command.List[command.Hit], error) {
			return service.Search(ctx, command.Caller{}, command.SearchQuery{Text: words, Agent: agent, Cursor: cursor})
		})
		if err != nil {
			return err
		}
		found := []hitJSON{}
		for _, h := range hits {
			found = append(found, hitJSON{h.Session, h.Agent, h.Seq, h.At, h.Who, h.Snippet})
		}
		return c.tellHits(found)
	})
}
