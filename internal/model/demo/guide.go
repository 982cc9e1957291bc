package demo

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"chorus/internal/pattern"
)

const (
	greeting = "Hello! I am the offline guide of Chorus. I am not a language model and know only a few phrases, " +
		"but the tools I call are real."
	phrases = "Try one of these:\n" +
		"  explain this project\n" +
		"  fix the failing test (in the sample project: chorus sample)\n" +
		"  try something dangerous\n" +
		"  list the files\n" +
		"  read README.md\n" +
		"  search for TODO\n" +
		"  run: go version\n" +
		"  what changed\n" +
		"  write hello to notes.txt\n" +
		"  why did you do that\n" +
		"  what did it cost\n" +
		"  help"
	keyHint = "To talk to a real model, set ANTHROPIC_API_KEY or OPENAI_API_KEY and start again, " +
		"or name one with --model (chorus models lists them)."
)

// request is something that a newcomer may ask for, and the call that does it.
type request struct {
	ask  *regexp.Regexp
	tool string
	args func(m []string, params []string) map[string]string
	lead string // before the call
}

// arg picks the first name for which the tool has a parameter, or the first name if the tool shows none.
func arg(params []string, names ...string) string {
	for _, n := range names {
		if slices.Contains(params, n) {
			return n
		}
	}
	return names[0]
}

func noArgs([]string, []string) map[string]string { return map[string]string{} }

func one(names ...string) func(m, params []string) map[string]string {
	return func(m, params []string) map[string]string {
		return map[string]string{arg(params, names...): unquote(m[1])}
	}
}

var requests = sync.OnceValue(func() []request {
	return []request{
		{regexp.MustCompile(`(?is)^(?:please\s+)?write\s+(.+?)\s+(?:to|into)\s+(?:the file\s+|a file\s+)?(\S+)$`), "write",
			func(m, params []string) map[string]string {
				return map[string]string{arg(params, "path", "file_path"): unquote(m[2]), arg(params, "content", "text"): unquote(m[1]) + "\n"}
			}, "I will write that file."},
		{regexp.MustCompile(`(?is)^(?:please\s+)?(?:run|execute)\s*:?\s+(.+)$`), "bash", one("command", "cmd"), "I will run that command."},
		{regexp.MustCompile(`(?i)^(?:please\s+)?(?:search|grep|look)\s+for\s+(.+)$`), "search_files", one("pattern", "query", "regex"), "I will search the files."},
		{regexp.MustCompile(`(?i)\b(?:show|see)\b.*\b(?:diff|changes)\b|^\W*(?:git\s+)?diff\W*$`), "git_diff", noArgs, "I will show the changes."},
		{regexp.MustCompile(`(?i)\bwhat(?:'s|\s+has|\s+is)?\s+(?:has\s+)?changed\b|^\W*(?:git\s+)?status\W*$`), "git_status", noArgs, "I will ask git."},
		{regexp.MustCompile(`(?i)\b(?:list|show|which|what)\b.*\bfiles\b|^\W*ls\W*$`), "list_files", noArgs, "I will list the files."},
		{regexp.MustCompile(`(?i)^(?:please\s+)?(?:read|open|show|cat|view)\s+(?:me\s+)?(?:the\s+)?(?:file\s+)?(\S+?)[.?!]?$`), "read", one("path", "file_path", "file"), "I will read it."},
	}
})

const (
	workGreeting = "Hello! No language model is ready, so I am only the offline guide: I know a few phrases, but the projects and tasks I make are real."
	workPhrases  = "Try one of these:\n" +
		"  what's going on?\n" +
		"  create project My Web App\n" +
		"  work on my-web-app\n" +
		"  create task Add a dark mode\n" +
		"  show calm-otter\n" +
		"  stop calm-otter\n" +
		"  approve calm-otter\n" +
		"  list tasks, list projects"
)

// workRequests are the requests that a dispatcher understands.
var workRequests = sync.OnceValue(func() []request {
	return []request{
		{regexp.MustCompile(`(?i)\b(?:what(?:'s|\s+is)\s+going\s+on|update\s+me)\b|^\W*status\W*$`), "get_status", noArgs, ""},
		{regexp.MustCompile(`(?i)^(?:please\s+)?(?:create|make|new)\s+(?:a\s+)?project\s+(?:called\s+)?(.+?)[.!]?$`), "create_project", one("name"), ""},
		{regexp.MustCompile(`(?i)^(?:work\s+on|switch\s+to)\s+(?:project\s+)?(\S+?)[.!]?$`), "set_active_project", one("project_id"), ""},
		{regexp.MustCompile(`(?is)^(?:please\s+)?(?:create|add|new)\s+(?:a\s+)?task:?\s+(.+)$`), "create_task", one("title"), ""},
		{regexp.MustCompile(`(?i)^(?:stop|cancel|kill|abort)\s+(?:task\s+)?(\S+?)[.!]?$`), "stop_task", one("task_id"), ""},
		{regexp.MustCompile(`(?i)^(?:approve|ship)\s+(?:task\s+)?(\S+?)[.!]?$`), "approve_task", one("task_id"), ""},
		{regexp.MustCompile(`(?i)^(?:show|list)\s+(?:the\s+|all\s+)?projects\W*$`), "list_projects", noArgs, ""},
		{regexp.MustCompile(`(?i)^(?:show|list)\s+(?:the\s+|all\s+)?tasks\W*$`), "list_tasks", noArgs, ""},
		{regexp.MustCompile(`(?i)^show\s+(?:task\s+)?([a-z0-9-]+)\W*$`), "get_task", one("task_id"), ""},
	}
})

var unfinished = pattern.Lazy(`(?i)^(?:please\s+)?(?:run|execute|read|open|write|search)\b`)

// guide answers a newcomer: with a call for a known request, with the result
// once there is one, and otherwise with what it can do.
func (t talk) guide(prompt string) []directive {
	if step, ok := t.toured(prompt); ok {
		return step
	}
	if n := len(t.Messages); n > 0 {
		if text, failed, ok := t.Messages[n-1].result(); ok {
			return saying(showResult(text, failed))
		}
	}
	line := strings.TrimSpace(prompt)
	known, hello, phrases := requests(), greeting, phrases
	if _, dispatches := t.Tools["create_task"]; dispatches && t.Tools["read"] == nil {
		known, hello, phrases = workRequests(), workGreeting, workPhrases
	}
	for _, w := range known {
		m := w.ask.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		params, ok := t.Tools[w.tool]
		if !ok {
			return saying("I understood that, but the tool " + w.tool + " is not enabled here.\n\n" + phrases)
		}
		args, err := json.Marshal(w.args(m, params))
		if err != nil {
			return saying("I could not write down the arguments: " + err.Error())
		}
		var step []directive
		if w.lead != "" {
			step = saying(w.lead)
		}
		return append(step, directive{verb: vCall, tool: w.tool, text: string(args)})
	}
	if unfinished().MatchString(line) {
		return saying("I did not understand that: I am the offline guide, not a language model.\n\n" + phrases + "\n\n" + keyHint)
	}
	return saying(hello + "\n\n" + phrases + "\n\n" + keyHint)
}

// saying returns an answer of one text.
func saying(text string) []directive { return []directive{{verb: vSay, text: text}} }

// shown is how much of a result the guide repeats: about a screen.
const shown = 1500

func showResult(text string, failed bool) string {
	text = strings.TrimRight(text, "\n")
	rest := ""
	if len(text) > shown {
		cut := shown
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text, rest = text[:cut], "\n… (the rest is left out here)"
	}
	switch {
	case failed:
		return "That did not work. The tool said:\n\n" + text + rest + "\n\n" + keyHint
	case text == "":
		return "Done. There is nothing to show.\n\n" + keyHint
	default:
		return "This is the result:\n\n" + text + rest + "\n\n" + keyHint
	}
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && strings.IndexByte("\"'`", s[0]) >= 0 && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
