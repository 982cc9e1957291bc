package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/roster"
	"chorus/internal/store"
)

// farCreateAgent makes an agent on a server.
func (c *cli) farCreateAgent(ctx context.Context, a roster.Agent) error {
	return c.at(func(service command.Service) error {
		made, err := service.CreateAgent(ctx, command.Caller{}, command.NewAgent{Name: a.Name, Model: a.Model, Permissions: a.Permissions, SystemPrompt: a.SystemPrompt})
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(made)
		}
		fmt.Fprintf(c.out(), "%s is ready\ntalk to it there:  chorus chat --server %s --agent %s\n", made.Name, c.far.server, made.Name)
		return nil
	})
}

// farAgent shows an agent of a server.
func (c *cli) farAgent(ctx context.Context, name string) error {
	return c.at(func(service command.Service) error {
		a, err := service.GetAgent(ctx, command.Caller{}, name)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(a)
		}
		w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "name\t%s\nmodel\t%s\npermissions\t%s\nworkspace\t%s\n", a.Name, orElse(a.Model, "(default)"), orElse(a.Permissions, "standard"), orElse(a.Workspace, "–"))
		var names []string
		for _, t := range a.Tools {
			names = append(names, t.Name)
		}
		if len(names) > 0 {
			fmt.Fprintf(w, "tools\t%s\n", strings.Join(names, ", "))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if a.SystemPrompt != "" {
			fmt.Fprintf(c.out(), "\n%s\n", a.SystemPrompt)
		}
		return nil
	})
}

// farConfigureAgent changes one setting of an agent of a server.
func (c *cli) farConfigureAgent(ctx context.Context, name, key, value string) error {
	return c.at(func(service command.Service) error {
		a, err := service.ConfigureAgent(ctx, command.Caller{}, name, key, value)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(a)
		}
		fmt.Fprintf(c.out(), "%s: %s is set; it counts from the next run on\n", a.Name, key)
		return nil
	})
}

// farDestroyAgent removes an agent of a server.
func (c *cli) farDestroyAgent(ctx context.Context, name string, keep bool) error {
	return c.at(func(service command.Service) error {
		if err := service.DestroyAgent(ctx, command.Caller{}, name, keep); err != nil {
			return err
		}
		fmt.Fprintf(c.out(), "%s is gone\n", name)
		return nil
	})
}

// farAudit lists decisions of a server. What its API cannot be asked for is refused
// rather than left out unseen.
func (c *cli) farAudit(ctx context.Context, f store.AuditFilter, thread string) error {
	if f.Run != "" || !f.Since.IsZero() || !f.Until.IsZero() {
		return &app.UsageError{Err: fmt.Errorf("a server is asked by --agent, --thread, --principal and --decision only")}
	}
	return c.at(func(service command.Service) error {
		q := command.AuditQuery{Agent: f.Agent, Who: f.Principal, Decision: f.Decision, Limit: f.Limit}
		if f.Before > 0 {
			q.Cursor = fmt.Sprint(f.Before)
		}
		if thread != "" {
			s, err := farSession(ctx, service, thread)
			if err != nil {
				return err
			}
			q.Session = s.ID
		}
		list, err := service.Audit(ctx, command.Caller{}, q)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(list)
		}
		page := auditPageJSON{}
		for _, l := range list.Items {
			kind, id, _ := strings.Cut(l.Who, ":")
			page.Lines = append(page.Lines, auditJSON{ID: l.Seq, At: l.At, Agent: l.Agent, Run: l.Run, Call: l.Call, Action: l.Action,
				Decision: l.Decision, Rule: l.Rule, Detail: l.Detail, Principal: chat.Principal{Kind: chat.PrincipalKind(kind), ID: id}})
		}
		if list.Next != "" && len(page.Lines) > 0 {
			page.Next = page.Lines[len(page.Lines)-1].ID
		}
		return c.showAudit(page)
	})
}

// farVerify has a server look at its own audit log.
func (c *cli) farVerify(ctx context.Context) error {
	return c.at(func(service command.Service) error {
		found, err := service.VerifyAudit(ctx, command.Caller{})
		if err != nil {
			return err
		}
		switch {
		case c.json:
			err = c.printJSON(found)
		case !found.OK:
			fmt.Fprintf(c.out(), "BROKEN  %s\n", found.Problem)
		case found.Lines == 0:
			fmt.Fprintln(c.out(), "the audit log is empty")
		default:
			fmt.Fprintf(c.out(), "%s, all as written\nhead  %s\n", howMany(int(found.Lines), "line"), found.Head)
		}
		if err == nil && !found.OK {
			err = exitError(1)
		}
		return err
	})
}
