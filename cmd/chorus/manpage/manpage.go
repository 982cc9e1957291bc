// Package manpage generates the manual page of a program from the texts of its commands.
package manpage

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// width is 80 columns minus man's margins.
const width = 71

// Of returns the manual page. fit wraps example lines that are too wide for man.
func Of(root *cobra.Command, version string, fit func(line string, width int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH CHORUS 1 \"\" \"chorus %s\" \"Chorus\"\n.SH NAME\nchorus \\- %s\n.SH SYNOPSIS\n.B chorus\n.I COMMAND\n[flags]\n.SH DESCRIPTION\n%s",
		roff(version), roff(root.Short), roffText(root.Long))
	b.WriteString(".SH COMMANDS\n")
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		if cmd.Runnable() && cmd != root && len(cmd.Commands()) == 0 {
			fmt.Fprintf(&b, ".SS %s\n%s.\n", roff(strings.TrimPrefix(cmd.UseLine(), "chorus ")), roff(cmd.Short))
			if cmd.Long != "" {
				b.WriteString(".PP\n" + roffText(cmd.Long))
			}
			if flags := strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(width), "\n"); flags != "" {
				b.WriteString(".PP\n.nf\n" + roffLines(flags) + ".fi\n")
			}
			if cmd.Example != "" {
				b.WriteString(".PP\nFor example:\n.PP\n.nf\n" + roffLines(fitted(cmd.Example, fit)) + ".fi\n")
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	b.WriteString(".SH FILES\n.TP\n.I ~/.chorus\nThe home: the journal, the configuration, logs.\n" +
		".SH ENVIRONMENT\n.TP\n.B CHORUS_HOME\nAnother home.\n.TP\n.B ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY\nAPI keys of model providers; without any, the built\\-in offline model answers.\n" +
		".SH SEE ALSO\nchorus docs has the guides.\n")
	return b.String()
}

// fitted wraps lines that are too wide.
func fitted(text string, fit func(string, int) string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if utf8.RuneCountInString(line) > width {
			lines[i] = fit(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

// roff escapes inline text. Non-ASCII letters become numeric escapes, because not every roff reads UTF-8.
func roff(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\n", " ") {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// roffLines escapes lines that are printed as they are. A leading dot or quote would be a roff request.
func roffLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		line = roff(strings.TrimRight(line, "\n"))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// roffText escapes paragraphs, which man fills.
func roffText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roffLines(paragraph))
	}
	return b.String()
}
