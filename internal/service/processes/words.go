package processes

import (
	"fmt"
	"strings"
	"time"

	"chorus/internal/background"
	"chorus/internal/text"
	"chorus/internal/untrusted"
)

// processWords is the message of a hook. For a model the output is framed as untrusted, because somebody else may have written it.
func processWords(p background.Process, f background.Fire, output string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Process %s (`%s`) ", p.ID, text.Clip(strings.Join(strings.Fields(p.Command), " "), 200))
	switch {
	case f.Rule.On == background.OnTimeout:
		fmt.Fprintf(&out, "still runs after %s.", time.Duration(f.Rule.After)*time.Second)
	case f.Rule.On == background.OnOutput:
		out.WriteString("printed a line that a hook waited for.")
	case p.State == background.Exited:
		fmt.Fprintf(&out, "ended with exit code %d after %s.", p.Exit, p.Ended.Sub(p.Started).Round(time.Second))
	default:
		fmt.Fprintf(&out, "was %s after %s: %s.", p.State, p.Ended.Sub(p.Started).Round(time.Second), p.Why)
	}
	if f.Suppressed > 0 {
		fmt.Fprintf(&out, " %d more times since the last message, too soon to be told.", f.Suppressed)
	}
	if f.Rule.Message != "" {
		out.WriteString("\n" + f.Rule.Message)
	}
	if f.Line != "" {
		output = f.Line + "\n…\n" + output
	}
	if strings.TrimSpace(output) == "" {
		return out.String()
	}
	if f.Rule.Do == background.NotifyChannel {
		return out.String() + "\n```\n" + lastWords(output) + "\n```"
	}
	return out.String() + "\n" + untrusted.Frame("output of process "+p.ID, output)
}

// Limits of the output that people see.
const (
	noticeLines = 5
	noticeBytes = 500
)

func lastWords(output string) string {
	lines := strings.Split(output, "\n")
	tail := strings.Join(lines[max(len(lines)-noticeLines, 0):], "\n")
	return strings.ReplaceAll(strings.ToValidUTF8(tail[max(len(tail)-noticeBytes, 0):], ""), "```", "` ` `")
}
