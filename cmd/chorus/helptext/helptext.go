// Package helptext breaks the help of commands where the terminal ends: what flags and commands are for goes on below itself, and examples
// go on as a shell understands them.
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

// widest is how wide help becomes: longer lines are hard to read.
const widest = 110

// narrowest is how narrow what a flag is for becomes; a terminal that has less room breaks it by itself.
const narrowest = 20

// Fit has the help of a command, and of those below it, fit a terminal of so many columns; 0: there is no terminal, and nothing is broken.
func Fit(root *cobra.Command, columns int) {
	width := min(columns-1, widest)
	if width <= 0 {
		return
	}
	usage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error { // a template of cobra's would do it, and make the program a fifth larger
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
	// heading begins a part of what cobra says of a command.
	heading = pattern.Lazy(`^[A-Z][A-Za-z ]*:$`)
	// flagColumns are a flag and what it is for.
	flagColumns = pattern.Lazy(`^ +-\S.*?   +(\S)`)
	// commandColumns are a command and what it is for.
	commandColumns = pattern.Lazy(`^ +\S+ +(\S)`)
	// remarkColumns are anything and a remark on it.
	remarkColumns = pattern.Lazy(`^ *\S.*?  +(\S)`)
	// shellWord is a word of a command, quotes and all.
	shellWord = pattern.Lazy(`(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+|\S`)
)

// fitUsage breaks what cobra says of a command where the terminal ends.
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

// fitColumns has what stands in the second column go on below itself.
func fitColumns(line string, columns *regexp.Regexp, width int) string {
	at := columns.FindStringSubmatchIndex(line)
	if at == nil || width-at[2] < narrowest {
		return hang(line, indentation(line), indentation(line)+2, width)
	}
	return hang(line, at[2], at[2], width)
}

// Example has a command that is too long go on in the next line, as a shell understands it, and a remark on it below itself.
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

// withValues are words in which a flag is one with what follows it.
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

// hang leaves what stands before a column, breaks the rest where the terminal ends, and goes on at another column.
func hang(line string, from, on, width int) string {
	room := width - max(from, on)
	var words []string
	for word := range strings.FieldsSeq(line[from:]) {
		for ; markdown.Width(word) > room; word = strings.TrimPrefix(word, words[len(words)-1]) { // JSON: after a comma
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

// indentation is how many spaces a line begins with.
func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// reflow breaks paragraphs anew. One with a line that is indented, a list or an example, keeps its lines, and those that are too long
// go on below themselves.
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
