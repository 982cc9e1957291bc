package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) memoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memory", Short: "Manage what agents remember", RunE: onlySubcommands,
		Long: `Agents see MEMORY.md of the home in every conversation, TRANSPORT/MEMORY.md in conversations
of that transport, and TRANSPORT/CHANNEL/MEMORY.md in those of that channel or folder. They
write down what they should remember. Every change is recorded with its author and can be
undone.`,
		Example: `  chorus memory list
  chorus memory show MEMORY.md
  chorus memory edit MEMORY.md                 open it in your editor
  chorus memory forget MEMORY.md old address   remove the lines with these words
  chorus memory history MEMORY.md              show each change as a diff
  chorus memory undo MEMORY.md
  chorus memory recall release friday          search past conversations too`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.GetMemory, func(v cli.View, _ operations.MemoryRef, m operations.MemoryText) error {
			_, err := fmt.Fprint(v.Out, markdown.Visible(memoryText(m)))
			return err
		})
		cli.Render(commands, operations.MemoryHistory, func(v cli.View, in operations.MemoryRef, list operation.List[operations.MemoryVersion]) error {
			if len(list.Items) == 0 {
				_, err := fmt.Fprintln(v.Out, "it was never changed")
				return err
			}
			_, err := fmt.Fprint(v.Out, markdown.Visible(historyText(list.Items)))
			return err
		})
		cli.Prepare(commands, operations.EditMemory, func(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.MemoryEdit, []string) error {
			return func(ctx context.Context, to cli.Connection, in *operations.MemoryEdit, _ []string) error {
				if cmd.Flags().Changed("text") {
					return nil
				}
				return c.editMemory(ctx, cmd, to, in)
			}
		})
	})
}

// memoryText formats a memory file for people. Each part that was not written by hand is preceded by its author.
func memoryText(m operations.MemoryText) string {
	if m.Problem != "" {
		return fmt.Sprintf("%s is not shown to agents: %s\n", m.Path, m.Problem)
	}
	if m.Text == "" {
		return "(no memory yet)\n"
	}
	var out strings.Builder
	for _, p := range m.Parts {
		if strings.HasPrefix(p.By, "on the words of ") && strings.TrimSpace(p.Text) != "" {
			fmt.Fprintf(&out, "[%s]\n", p.By)
		}
		out.WriteString(p.Text + "\n")
	}
	return out.String()
}

func historyText(list []operations.MemoryVersion) string {
	var out strings.Builder
	for _, v := range list {
		fmt.Fprintf(&out, "version %d, %s, %s", v.Version, v.At.Local().Format("2006-01-02 15:04"), v.By)
		if v.How != v.By {
			out.WriteString(" (" + v.How + ")")
		}
		if v.Session != "" {
			out.WriteString(", in session " + v.Session)
		}
		out.WriteString("\n" + strings.TrimSpace(v.Diff) + "\n\n")
	}
	return out.String()
}

// editMemory opens a file in the person's editor. It does not overwrite changes made meanwhile.
func (c *program) editMemory(ctx context.Context, cmd *cobra.Command, to cli.Connection, in *operations.MemoryEdit) error {
	now, err := operations.GetMemory.Call(ctx, to, to.Caller, operations.MemoryRef{Path: in.Path})
	if err != nil {
		return err
	}
	editor := c.editor()
	if editor == "" {
		return errors.New("no editor is set; set EDITOR, or pass the text with --text")
	}
	dir, err := os.MkdirTemp("", "chorus-memory-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, filepath.Base(now.Path))
	if err := os.WriteFile(file, []byte(now.Text), 0o600); err != nil {
		return err
	}
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file)
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		return fmt.Errorf("the editor %q failed, so nothing was changed: %w", editor, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	in.Text, in.Seen = string(data), now.Version
	return nil
}
