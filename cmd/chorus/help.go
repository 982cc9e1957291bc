package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/markdown"
	"chorus/internal/text"
)

// widestHelp is how wide help becomes: longer lines are hard to read.
const widestHelp = 110

// fitHelp has help fit the terminal: what flags are for goes on below itself, and paragraphs are broken where the terminal ends.
func (c *program) fitHelp(root *cobra.Command) {
	width := min(c.width()-1, widestHelp)
	if width <= 0 {
		return
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = reflow(cmd.Long, width)
		help(cmd, args)
	})
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
