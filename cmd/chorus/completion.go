package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/helptext"
	"chorus/cmd/chorus/manpage"
	"chorus/internal/chat"
	"chorus/internal/permit"
	"chorus/internal/provider"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print the completion script for your shell", Args: exactly(1), ValidArgs: []string{"bash", "zsh", "fish"},
		Long: `Prints a script that lets your shell complete commands, flags, sessions, agents and models.

  bash  chorus completion bash > ~/.local/share/bash-completion/completions/chorus
  zsh   chorus completion zsh > "${fpath[1]}/_chorus"
  fish  chorus completion fish > ~/.config/fish/completions/chorus.fish

The folder must exist (mkdir -p). Start a new shell to use the completions.`,
		Example: `  source <(chorus completion bash)      for this shell alone
  chorus completion fish | source       the same in fish`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), c.console.Out
			switch args[0] {
			case "bash":
				var script bytes.Buffer
				if err := root.GenBashCompletionV2(&script, true); err != nil {
					return err
				}
				_, err := io.WriteString(out, bashAlone(script.String()))
				return err
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return &usage.Error{Err: fmt.Errorf("there is no completion for %q; choose bash, zsh or fish", args[0])}
		},
	}
}

// names completes an argument or a flag with names of that kind: of the local home, or of the server that was named.
func (c *program) names(noun string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return cli.Suggest(cmd.Context(), c.connect, noun, prefix)
	}
}

// firstIs completes the first argument of a command, and none after it.
func firstIs(names cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, given, prefix)
	}
}

// completeTalk completes the values of the flags that run and chat share.
func (c *program) completeTalk(cmd *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"agent": c.names("agent"), "model": c.names("model"), "session-id": c.names("session"),
		"permissions": cobra.FixedCompletions(permit.Presets(), cobra.ShellCompDirectiveDefault), // or a file
		"provider":    cobra.FixedCompletions(provider.Providers(), cobra.ShellCompDirectiveNoFileComp),
		"mode":        cobra.FixedCompletions(chat.ModeNames(), cobra.ShellCompDirectiveNoFileComp),
		"sandbox":     cobra.FixedCompletions([]string{"auto", "host", "bwrap", "docker:"}, cobra.ShellCompDirectiveNoFileComp),
		"resume-mode": cobra.FixedCompletions([]string{"full", "last-5", "summary"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only for an unknown flag
	}
}

// bashAlone makes the script work without the package bash-completion, whose functions it calls.
func bashAlone(script string) string {
	const words = `_get_comp_words_by_ref "$@" cur prev words cword`
	return strings.Replace(script, "    "+words+"\n", `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        `+words+`
    else
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    fi
`, 1)
}

func (c *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page", Args: exactly(0),
		Long:    "Prints a manual page of all commands, in man format. `make install` installs it with the program.",
		Example: "  chorus man > ~/.local/share/man/man1/chorus.1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			root := (&program{console: c.console, getenv: c.getenv}).root() // with every group complete
			_, err := fmt.Fprint(c.console.Out, manpage.Of(root, version, helptext.Example))
			return err
		},
	}
}
