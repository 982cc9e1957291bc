package main

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"chorus/internal/markdown"
	"chorus/internal/text"
)

// widestHelp is how wide help becomes: longer lines are hard to read.
const widestHelp = 110

// leastHelp is how narrow what a flag is for becomes; a terminal that has less room breaks it by itself.
const leastHelp = 20

// fitHelp has help fit the terminal: what flags are for goes on below itself, and paragraphs are broken where the terminal ends.
func (c *program) fitHelp(root *cobra.Command) {
	width := min(c.width()-1, widestHelp)
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
		_, writeErr := io.WriteString(out, wrapFlags(whole.String(), width))
		return errors.Join(err, writeErr)
	})
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = reflow(cmd.Long, width)
		help(cmd, args)
	})
}

// flagLine is a flag and what it is for.
var flagLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ +-\S.*?   +(\S)`) })

// wrapFlags breaks what flags are for where the terminal ends, and goes on below it.
func wrapFlags(usage string, width int) string {
	lines := strings.Split(usage, "\n")
	for i, line := range lines {
		at := flagLine().FindStringSubmatchIndex(line)
		if at == nil || markdown.Width(line) <= width || width-at[2] < leastHelp {
			continue
		}
		lines[i] = line[:at[2]] + strings.Join(text.WrapWords(line[at[2]:], width-at[2], markdown.Width), "\n"+strings.Repeat(" ", at[2]))
	}
	return strings.Join(lines, "\n")
}

// reflow breaks paragraphs anew. One with a line that is indented, a list or an example, stays as it is.
func reflow(long string, width int) string {
	paragraphs := strings.Split(long, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") && !strings.Contains(p, "\n-") {
			paragraphs[i] = strings.Join(text.WrapWords(p, width, markdown.Width), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
