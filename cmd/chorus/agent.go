package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) agentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "Manage agents", RunE: onlySubcommands}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.CreateAgent, agentCreated)
		cli.JSON(commands, operations.CreateAgent, agentFile)
		cli.Render(commands, operations.ListAgents, listAgents)
		cli.JSON(commands, operations.ListAgents, func(v cli.View, list operation.List[operations.Agent]) any {
			if v.Server != "" {
				return nonNil(list.Items)
			}
			files := []json.RawMessage{}
			for _, a := range createdAgents(list.Items) {
				files = append(files, a.File)
			}
			return files
		})
		cli.Render(commands, operations.GetAgent, showAgent)
		cli.JSON(commands, operations.GetAgent, func(v cli.View, a operations.AgentDetail) any {
			warnOfFile(v, a)
			if v.Server == "" && a.File != nil {
				return a.File
			}
			return a
		})
		cli.JSON(commands, operations.ConfigureAgent, agentFile)
		cli.JSON(commands, operations.EditAgent, agentFile)
		cli.Render(commands, operations.PreviewAgent, showPreview)
	})
}

// agentFile returns an agent for scripts. On this machine that is its agent.json.
func agentFile(v cli.View, a operations.Agent) any {
	if v.Server == "" && a.File != nil {
		return a.File
	}
	return a
}

// createdAgents drops agents that nobody created.
func createdAgents(list []operations.Agent) []operations.Agent {
	return slices.DeleteFunc(slices.Clone(list), func(a operations.Agent) bool { return a.File == nil })
}

func agentCreated(v cli.View, _ operations.NewAgent, a operations.Agent) error {
	if v.Server != "" {
		_, err := fmt.Fprintf(v.Out, "%s is ready\ntalk to it:  chorus chat --server %s --agent %s\n", a.Name, v.Server, a.Name)
		return err
	}
	_, err := fmt.Fprintf(v.Out, "%s is ready\ntalk to it about this directory:  chorus chat --agent %s\nin a workspace of its own:        chorus chat --agent %s --repo %s\n",
		a.Name, a.Name, a.Name, a.Workspace)
	return err
}

func listAgents(v cli.View, _ operations.AgentQuery, list operation.List[operations.Agent]) error {
	if v.Server == "" { // the default agent is always there
		list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(a operations.Agent) bool { return a.File == nil && a.Name == chat.DefaultAgent })
	}
	return cli.WriteTable(v, operations.ListAgents.TableOf(list), operations.ListAgents.Empty)
}

func showAgent(v cli.View, _ operations.AgentRef, a operations.AgentDetail) error {
	warnOfFile(v, a)
	w := v.Columns()
	fmt.Fprintf(w, "name\t%s\nmodel\t%s\npermissions\t%s\nworkspace\t%s\n", a.Name, a.Model, a.Permissions, a.Workspace)
	if names := toolNames(v, a); len(names) > 0 {
		fmt.Fprintf(w, "tools\t%s\n", strings.Join(names, ", "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if a.SystemPrompt != "" {
		fmt.Fprintf(v.Out, "\n%s\n", a.SystemPrompt)
	}
	return nil
}

// showPreview prints what the model sees of an agent, with the size of each part.
func showPreview(v cli.View, _ operations.AgentDraft, p operations.AgentPreview) error {
	fmt.Fprintf(v.Out, "about %d tokens before the first word: prompt %d, tools %d, notes %d\nmodel %s, permissions %s\n\n%s\n", p.Tokens.Total, p.Tokens.System, p.Tokens.Tools, p.Tokens.Notes,
		p.Model, p.Permissions, p.System)
	fmt.Fprintf(v.Out, "\ntools\n")
	w := v.Columns()
	for _, t := range p.Tools {
		line, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		fmt.Fprintf(w, "  %s\t%d\t%s\n", t.Name, t.Tokens, line)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, more := range []struct {
		what  string
		names []string
	}{{"found by searching", p.Searched}, {"never allowed, so hidden", p.Refused}, {"tools of MCP servers", p.Servers}} {
		if len(more.names) > 0 {
			fmt.Fprintf(v.Out, "%s: %s\n", more.what, strings.Join(more.names, ", "))
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(v.Out, "\nnote: %s (%d tokens)\n%s\n", n.What, n.Tokens, n.Text)
	}
	return nil
}

// warnOfFile warns if agent.json is broken.
func warnOfFile(v cli.View, a operations.AgentDetail) {
	if a.Problem != "" {
		fmt.Fprintf(v.Err, "chorus: %s\n", a.Problem)
	}
}

// toolNames returns the tools that agent.json names, or the agent's own if the file cannot be read.
func toolNames(v cli.View, a operations.AgentDetail) (names []string) {
	if v.Server == "" {
		var file struct{ Tools []string }
		_ = json.Unmarshal(a.File, &file) // without a file there are no names
		return file.Tools
	}
	for _, t := range a.Tools {
		names = append(names, t.Name)
	}
	return names
}
