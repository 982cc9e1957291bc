// Package helptext wraps the help of commands to the width of the terminal. Descriptions continue in their own column, and wrapped examples
// stay valid in a shell.
package helptext

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/markdown"
	"chorus/internal/pattern"
	"chorus/internal/text"
)

// widest is the maximum width of help; longer lines are hard to read.
const widest = 110

// narrowest is the minimum width of a flag's description. On a narrower terminal the terminal wraps it.
const narrowest = 20

// Fit wraps the help of a command and its subcommands to a terminal with that many columns. 0 means no terminal and no wrapping.
func Fit(root *cobra.Command, columns int) {
	width := min(columns-1, widest)
	if width <= 0 {
		return
	}
	usage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error { // a cobra template would do, but makes the program a fifth larger
		out := cmd.OutOrStderr()
		var whole bytes.Buffer
		cmd.SetOut(&whole)
		err := usage(cmd)
		cmd.SetOut(out)
		_, writeErr := io.WriteString(out, fitUsage(whole.String(), width))
		return errors.Join(err, writeErr)
	})
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = reflow(cmp.Or(cmd.Long, cmd.Short), width)
		help(cmd, args)
	})
}

var (
	// heading starts a section of cobra's usage text.
	heading = pattern.Lazy(`^[A-Z][A-Za-z ]*:$`)
	// flagColumns matches a flag and its description.
	flagColumns = pattern.Lazy(`^ +-\S.*?   +(\S)`)
	// commandColumns matches a command and its description.
	commandColumns = pattern.Lazy(`^ +\S+ +(\S)`)
	// remarkColumns matches a line with a remark.
	remarkColumns = pattern.Lazy(`^ *\S.*?  +(\S)`)
	// shellWord is a word of a shell command, including quotes.
	shellWord = pattern.Lazy(`(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+|\S`)
)

// fitUsage wraps cobra's usage text to the terminal's width.
func fitUsage(usage string, width int) string {
	lines := strings.Split(usage, "\n")
	part := ""
	for i, line := range lines {
		if heading().MatchString(line) {
			part = line
		}
		if markdown.Width(line) <= width {
			continue
		}
		switch {
		case !strings.HasPrefix(line, " "):
			lines[i] = strings.Join(text.WrapWords(line, width, markdown.Width), "\n")
		case part == "Examples:":
			lines[i] = Example(line, width)
		case part == "Usage:":
			lines[i] = hang(line, indentation(line), indentation(line)+4, width)
		case flagColumns().MatchString(line):
			lines[i] = fitColumns(line, flagColumns(), width)
		default:
			lines[i] = fitColumns(line, commandColumns(), width)
		}
	}
	return strings.Join(lines, "\n")
}

// fitColumns wraps the second column under itself.
func fitColumns(line string, columns *regexp.Regexp, width int) string {
	at := columns.FindStringSubmatchIndex(line)
	if at == nil || width-at[2] < narrowest {
		return hang(line, indentation(line), indentation(line)+2, width)
	}
	return hang(line, at[2], at[2], width)
}

// Example wraps a long command the way a shell understands it, and the remark under itself.
func Example(line string, width int) string {
	command, remark := line, ""
	if at := remarkColumns().FindStringSubmatchIndex(line); at != nil {
		if width-at[2] >= narrowest {
			return hang(line, at[2], at[2], width)
		}
		command, remark = strings.TrimRight(line[:at[2]], " "), line[at[2]:]
	}
	indent := strings.Repeat(" ", indentation(line))
	var lines []string
	for _, word := range withValues(shellWord().FindAllString(command, -1)) {
		last := len(lines) - 1
		if last >= 0 && markdown.Width(lines[last]+" "+word+` \`) <= width {
			lines[last] += " " + word
			continue
		}
		if last >= 0 {
			lines[last] += ` \`
			word = "    " + word
		}
		lines = append(lines, indent+word)
	}
	if remark != "" {
		lines = append(lines, hang(indent+"      "+remark, len(indent)+6, len(indent)+6, width))
	}
	return strings.Join(lines, "\n")
}

// withValues joins each flag with the value that follows it.
func withValues(words []string) []string {
	var out []string
	for i, word := range words {
		if i > 0 && strings.HasPrefix(words[i-1], "-") && words[i-1] != "--" && !strings.HasPrefix(word, "-") {
			out[len(out)-1] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}

// hang keeps the text before column from, wraps the rest to width, and indents the continuation lines to column on.
func hang(line string, from, on, width int) string {
	room := width - max(from, on)
	var words []string
	for word := range strings.FieldsSeq(line[from:]) {
		for ; markdown.Width(word) > room; word = strings.TrimPrefix(word, words[len(words)-1]) { // JSON: break after a comma
			comma := strings.LastIndexByte(word[:min(room, len(word))], ',')
			if comma < 0 {
				break
			}
			words = append(words, word[:comma+1])
		}
		words = append(words, word)
	}
	return line[:from] + strings.Join(text.WrapWords(strings.Join(words, " "), room, markdown.Width), "\n"+strings.Repeat(" ", on))
}

// indentation is the number of leading spaces of a line.
func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// reflow wraps paragraphs. A paragraph with an indented line is a list or an example: it keeps its line breaks, and only its long
// lines are wrapped.
func reflow(long string, width int) string {
	paragraphs := strings.Split(long, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") && !strings.Contains(p, "\n- ") {
			paragraphs[i] = strings.Join(text.WrapWords(p, width, markdown.Width), "\n")
			continue
		}
		lines := strings.Split(p, "\n")
		for j, line := range lines {
			if markdown.Width(line) > width {
				lines[j] = fitColumns(line, remarkColumns(), width)
			}
		}
		paragraphs[i] = strings.Join(lines, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}
