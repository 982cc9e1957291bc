package repl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/suggest"
)

// Command is one slash command in the help.
type Command struct{ Name, Args, About string }

// builtin are the commands of every chat. The terminal answers help, steer,
// stop and exit itself; the session answers the others.
func builtin() []Command {
	return []Command{
		{"help", "", "Show this list"},
		{"status", "", "Show agent, model, permissions, context and what is going on"},
		{"diff", "", "Show uncommitted changes in the repository, including new files"},
		{"notes", "[list|set|get|clear]", "List and change work notes"},
		{"model", "[name]", "Show or change the model"},
		{"mode", "[" + strings.Join(append(chat.ModeNames(), chat.NoMode), "|") + "]", "Show or change the mode"},
		{"approve-all", "", "Approve every request automatically, or stop doing so"},
		{"steer", "text", "Interrupt the run with a message"},
		{"stop", "[all]", "Stop the run; all: also drop waiting prompts"},
		{"cost", "", "Show tokens and cost"},
		{"why", "", "Explain the last answer: what was allowed and read, what it cost"},
		{"tools", "", "List the agent's tools"},
		{"skill", "[name] [text]", "Call a skill (or /name); without a name, list skills; also list, show, diff, approve"},
		{"memory", "[show|edit|…]", "Show and change what agents remember in this folder"},
		{"schedule", "[add|list|…]", "Manage messages sent to agents at set times"},
		{"hook", "[create|list|…]", "Manage hooks, which run on events or at set times"},
		{"process", "[list|kill|logs]", "Manage commands that agents left running"},
		{"prompts", "", "List the prompts of MCP servers; use one with /server:prompt ARGUMENTS"},
		{"attach", "[path]", "Attach a file or picture to the next message; without a path, or with Ctrl-V, the picture in the clipboard"},
		{"clear", "", "Start over; the journal keeps the old messages"},
		{"resume", "[id]", "Continue another session of this folder; without an id, list them"},
		{"exit", "", "Leave (also /quit, /q)"},
	}
}

// Commands returns a session's commands for other users: those of every chat and those that the session adds.
func Commands(ctx context.Context, s Session) []Command {
	all := builtin()
	if more, ok := s.(Commander); ok {
		for _, c := range more.Commands(ctx) {
			if !known(c.Name, all) {
				all = append(all, c)
			}
		}
	}
	return all
}

// slash splits a command line. A first word with a second slash in it is a path, not a
// command. /server:name is a prompt of an MCP server, which goes to the agent unchanged.
func slash(line string) (name, args string, ok bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "/") {
		return "", "", false
	}
	name, args, _ = strings.Cut(line[1:], " ")
	if i := strings.IndexByte(name, '\n'); i >= 0 {
		name, args = name[:i], name[i+1:]+" "+args
	}
	if strings.ContainsAny(name, "/:") {
		return "", "", false
	}
	name = strings.ToLower(name)
	switch name {
	case "quit", "q":
		name = "exit"
	case "?", "h":
		name = "help"
	}
	return name, strings.TrimSpace(args), true
}

// maySay reports whether a slash line could be words for the agent: it is not a command, or it names a skill.
func maySay(s Session, name, args string, all []Command) (Sayer, bool) {
	sayer, ok := s.(Sayer)
	return sayer, ok && (!known(name, all) || name == "skill" && args != "")
}

func known(name string, all []Command) bool {
	return slices.ContainsFunc(all, func(c Command) bool { return c.Name == name })
}

// unknownWords is the hint for a command that does not exist.
func unknownWords(name string, all []Command) string {
	best, least := "", 4
	for _, c := range all {
		d := suggest.Distance(name[:min(len(name), 40)], c.Name)
		if name != "" && strings.HasPrefix(c.Name, name) {
			d = min(d, 1)
		}
		if d < least && d < len(c.Name) {
			best, least = c.Name, d
		}
	}
	if best != "" {
		return "no command /" + name + "; did you mean /" + best + "?"
	}
	return "no command /" + name + "; /help lists them"
}

// helpLines is the answer to /help.
func helpLines(all []Command, window bool, room int) []string {
	const most = 24 // longer ones have a line of their own
	column := 0
	for _, c := range all {
		column = max(column, min(most, markdown.Width(head(c))))
	}
	column += 4
	var out []string
	for _, c := range all {
		line := "  " + head(c)
		about := markdown.Wrap(c.About, max(20, room-column))
		if width := markdown.Width(line); width <= column-2 {
			line += strings.Repeat(" ", column-width) + about[0]
			about = about[1:]
		}
		out = append(out, line)
		for _, more := range about {
			out = append(out, strings.Repeat(" ", column)+more)
		}
	}
	if window {
		out = append(out, "",
			"  Enter sends. While the agent works, Enter steers it; start with ! to interrupt it.",
			"  Alt+Enter, or a backslash at the end, starts a new line. Ctrl-G opens your editor.",
			"  / and @ show commands and files; Tab takes the marked one, the arrows move the mark.",
			"  Up and Down bring back earlier input, also from other sessions in this folder; Ctrl-R searches all input.",
			"  A line that starts with a space is not saved.",
			"  Shift+Tab switches planning before changes on and off.",
			"  Ctrl-O shows the last shortened output or diff in full; press it again for the one before.",
			"  Esc or Ctrl-C stops the run; Ctrl-C twice or Ctrl-D leaves.")
	}
	return out
}

// head is a command as it is typed.
func head(c Command) string { return strings.TrimSpace("/" + c.Name + " " + c.Args) }

// SkillLines lists skills that can be called.
func SkillLines(list []Command) string {
	if len(list) == 0 {
		return "no skills are on here; chorus skill list shows those that need your approval"
	}
	var out strings.Builder
	for _, c := range list {
		fmt.Fprintf(&out, "%s  %s\n", strings.TrimSpace("/"+c.Name+" "+c.Args), FirstSentence(c.About))
	}
	return strings.TrimRight(out.String(), "\n")
}
