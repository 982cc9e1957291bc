package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/feed"
	"chorus/internal/ledger"
	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/pattern"
	"chorus/internal/permit"
	"chorus/internal/transport/http/diffview"
	"chorus/internal/work"
)

// functions are the functions that templates can call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"static":     p.assets.href,
		"markdown":   func(text string) template.HTML { return template.HTML(markdown.HTML(text)) }, // safe: see markdown.HTML
		"diff":       diff,
		"pairs":      diffview.SideBySide,
		"edits":      edits,
		"callEdits":  callEdits,
		"command":    commandOf,
		"took":       took,
		"rulename":   permit.RuleName,
		"ruletitle":  ruleTitle,
		"setting":    settingOf,
		"lower":      strings.ToLower,
		"reason":     work.Reason,
		"breaks":     breaks,
		"code":       func(text, lang string) template.HTML { return template.HTML(markdown.Code(text, lang)) },
		"pretty":     pretty,
		"visible":    markdown.Visible,
		"clean":      markdown.Clean,
		"set":        func(t time.Time) bool { return !t.IsZero() },
		"ago":        func(t time.Time) string { return ago(t, p.Now()) },
		"soon":       func(t time.Time) string { return soon(t, p.Now()) },
		"clock":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"moment":     func(t time.Time) string { return t.Format("Mon 2 Jan 2006, 15:04 MST") },
		"usd":        usd,
		"dollars":    dollars,
		"count":      countAny,
		"short":      short,
		"shown":      shownStatus,
		"toolRule":   toolRule,
		"zone":       zone,
		"firstOf":    cmp.Or[string],
		"join":       strings.Join,
		"actions":    actions,
		"verdict":    verdictWord,
		"span":       spanName,
		"spantook":   spanTook,
		"since":      sinceFirst,
		"depth":      func(n int) int { return min(n, deepest) },
		"prefix":     strings.HasPrefix,
		"person":     person,
		"who":        who,
		"initial":    initial,
		"marked":     marked,
		"percent":    percent,
		"sum":        func(a, b int) int { return a + b },
		"chosen":     toolChosen,
		"skillsOf":   func(agent string, list []operations.Skill) agentForm { return agentForm{Name: agent, Skills: list} },
		"skillState": skillState,
		"decision":   decisionWords,
		"shortIDs":   shortIDs,
		"act":        actionWords,
		"channel":    channelName,
		"budget":     budgetOf,
		"period":     sinceWords,
		"place":      place,
		"decidedAs":  verdictWords,
		"trimTool":   func(action string) string { return strings.TrimPrefix(action, "tool:bash:") },
		"status":     statusWords,
		"path":       func(text string) string { return (&url.URL{Path: text}).EscapedPath() },
		"words":      func(text string) string { said, _ := splitFiles(text); return said },
		"inlined":    func(text string) []inlineFile { _, files := splitFiles(text); return files },
		"tokens":     tokensOf,
	}
}

// breaks lets a long state such as AWAITING_PLAN_APPROVAL go on in a second line.
func breaks(state string) template.HTML {
	return template.HTML(strings.ReplaceAll(html.EscapeString(state), "_", "_<wbr>"))
}

// diff colours a unified diff. Characters that hide or reorder text are spelled out.
func diff(text string) template.HTML {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return template.HTML(markdown.Code(text, "diff"))
}

// commandOf is the shell command of a call; "": it is a call of another kind.
func commandOf(tool, argsJSON string) string {
	var args struct {
		Command string `json:"command"`
	}
	if tool != "bash" || json.Unmarshal([]byte(argsJSON), &args) != nil {
		return ""
	}
	return args.Command
}

// tokensOf are the tokens that were new: those that were read from a cache are named beside them.
func tokensOf(u feed.Usage) int { return u.InputTokens + u.CacheWriteTokens + u.OutputTokens }

// took is how long something took; "": no time that anybody would notice.
func took(ms int64) string {
	switch {
	case ms <= 0:
		return ""
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	}
	return fmt.Sprintf("%d min %d s", ms/60_000, ms/1000%60)
}

// pretty indents JSON; other text stays as it is.
func pretty(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // templates do that
	e.SetIndent("", "  ")
	if e.Encode(v) != nil {
		return text
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// soon is how long it is until a time; "": it has come.
func soon(t, now time.Time) string {
	if d := t.Sub(now).Round(time.Second); d > 0 {
		return "in " + span(d)
	}
	return ""
}

// ago is a time relative to now, or a date.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := now.Sub(t)
	switch {
	case d < 0:
		return "in " + span(-d)
	case d < 45*time.Second:
		return "just now"
	case d < 7*24*time.Hour:
		return span(d) + " ago"
	case t.Year() == now.Year():
		return t.Format("2 January")
	}
	return t.Format("2 January 2006")
}

func span(d time.Duration) string {
	say := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	switch {
	case d < time.Minute:
		return say(int(d/time.Second), "second")
	case d < time.Hour:
		return say(int(d/time.Minute), "minute")
	case d < 24*time.Hour:
		return say(int(d/time.Hour), "hour")
	}
	return say(int(d/(24*time.Hour)), "day")
}

func usd(n feed.USD) string { return dollars(float64(ledger.Nanos(n)) / 1e9) }

// dollars shows small amounts with more digits.
func dollars(n float64) string {
	switch {
	case n == 0:
		return "$0"
	case n < 0.0001:
		return "< $0.0001"
	case n < 0.1:
		return fmt.Sprintf("$%.4f", n)
	}
	return fmt.Sprintf("$%.2f", n)
}

// countAny is count for the number types that templates meet.
func countAny(n any) string {
	if big, ok := n.(int64); ok {
		return count(int(big))
	}
	small, _ := n.(int)
	return count(small)
}

// count is a rounded number: 1.2 k, 25 M.
func count(n int) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// short is the beginning of a text, on one line.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(markdown.Clean(text)), " ")
	if r := []rune(text); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return text
}

// toolRule says what the rules of an agent mean for a tool.
func toolRule(verdict string) string {
	switch verdict {
	case "deny":
		return "refused"
	case "depends":
		return "rules decide"
	case "ask":
		return "asked for"
	case "allow":
		return "allowed"
	}
	return cmp.Or(verdict, "—")
}

// zone is the name of a time zone; that of the server has none.
func zone(name string) string {
	if name == "" || name == "Local" {
		return "the server's time"
	}
	return name
}

// person is a principal's key without its kind.
func person(key string) string {
	if _, name, ok := strings.Cut(key, ":"); ok {
		return name
	}
	return key
}

// who is the name of a principal: of a token if it is known, else its id.
func who(names map[string]string, key string) string {
	id := person(key)
	return cmp.Or(names[id], id, "—")
}

func initial(name string) string {
	for _, r := range strings.TrimSpace(name) {
		return strings.ToUpper(string(r))
	}
	return "?"
}

// statusWords is the status of a session for people.
func statusWords(status string) string {
	switch status {
	case "idle":
		return "ready"
	case "running":
		return "working"
	case "queued":
		return "queued: others run first"
	case "waiting":
		return "waiting for approval"
	case "failed":
		return "the last run failed"
	}
	return status
}

// actions are what a call would do, a line each. The prefix that rules have before a shell
// command is left out.
func actions(list []string) string {
	out := make([]string, len(list))
	for i, action := range list {
		out[i] = strings.TrimPrefix(action, "tool:bash:")
	}
	return strings.Join(out, "\n")
}

// ruleTitle is what a rule is called where its expression is behind a click; "": it is a word itself.
func ruleTitle(rule string) string {
	if name := permit.RuleName(rule); name != "" || !strings.ContainsAny(rule, ":*([\\") {
		return name
	}
	return "a rule of this installation"
}

// decisionWords say how something was decided, for people; programs and addresses have the word itself.
func decisionWords(decision string) string {
	switch decision {
	case "allow":
		return "allowed"
	case "deny":
		return "refused"
	case "ask_approved":
		return "asked, allowed"
	case "ask_denied":
		return "asked, refused"
	}
	return decision
}

// skillState is the state of a skill for people.
func skillState(status string) string {
	switch status {
	case "new", "changed":
		return status + ", to be looked at"
	case "overridden":
		return "another of this name counts"
	}
	return status
}

// actionWords is an action of the audit log. What a tool did is shown as it was, of what people did the ids are shortened.
func actionWords(action string) string {
	if strings.HasPrefix(action, "tool:") {
		return action
	}
	return shortIDs(action)
}

// idPattern finds ids that nobody can read or remember.
var idPattern = pattern.Lazy(`\b[0-7][0-9a-hjkmnp-tv-z]{25}\b`)

// shortIDs keeps the beginning of each id in a text, which every command takes.
func shortIDs(text string) string {
	return idPattern().ReplaceAllStringFunc(text, func(id string) string { return id[:12] + "…" })
}

// sinceWords is a period of costs for people.
func sinceWords(since string) string {
	switch since {
	case "24h":
		return "the last 24 hours"
	case "7d":
		return "the last 7 days"
	case "30d":
		return "the last 30 days"
	case "month":
		return "this month"
	}
	return since
}

// deepest is how far parts of a command are indented.
const deepest = 4

// verdictWord is what the rules say of a part.
func verdictWord(verdict string) string {
	switch verdict {
	case "allow":
		return "allowed"
	case "ask":
		return "asked"
	case "deny":
		return "denied"
	}
	return verdict
}

// place is the name of a directory; the scratch folder of a thread is called what it is.
func place(dir string) string {
	if strings.HasSuffix(dir, "/scratch") {
		return "a folder of its own"
	}
	return dir
}

// marked highlights the words that a search found.
func marked(snippet string) template.HTML {
	text := html.EscapeString(snippet)
	return template.HTML(strings.NewReplacer("\x01", "<mark>", "\x02", "</mark>").Replace(text))
}

// percent is a part of a whole, rounded down.
func percent(part, whole int) int {
	if whole <= 0 {
		return 0
	}
	return min(100, 100*part/whole)
}

// inlineFile is a text file that is part of a message.
type inlineFile struct{ Name, Text string }

// How a text file is marked in the message that the model reads.
const fileBegins, fileEnds = `<attachment filename="`, "\n</attachment>"

// splitFiles separates the files at the end of a message from its text: pages show them folded.
func splitFiles(text string) (said string, files []inlineFile) {
	for said = text; strings.HasSuffix(said, fileEnds); {
		at := strings.LastIndex(said, fileBegins)
		if at < 0 {
			break
		}
		head, body, ok := strings.Cut(strings.TrimSuffix(said[at+len(fileBegins):], fileEnds), "\n")
		name, _, named := strings.Cut(head, `"`)
		if !ok || !named {
			break
		}
		files = append([]inlineFile{{name, body}}, files...)
		said = strings.TrimRight(said[:at], "\n")
	}
	return said, files
}
