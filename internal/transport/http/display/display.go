// Package display formats values for people who read a page: amounts, times, names and states.
package display

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/feed"
	"chorus/internal/ledger"
	"chorus/internal/markdown"
	"chorus/internal/pattern"
	"chorus/internal/text"
)

// ShellCommand returns the shell command of a call; "": the call is of another kind.
func ShellCommand(tool, argsJSON string) string {
	var args struct {
		Command string `json:"command"`
	}
	if tool != "bash" || json.Unmarshal([]byte(argsJSON), &args) != nil {
		return ""
	}
	return args.Command
}

// NewTokens counts the tokens that did not come from a cache.
func NewTokens(u feed.Usage) int { return u.InputTokens + u.CacheWriteTokens + u.OutputTokens }

// Took formats a duration; "": too short to notice.
func Took(ms int64) string {
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

// JSON indents JSON; other text is unchanged.
func JSON(source string) string {
	var v any
	if json.Unmarshal([]byte(source), &v) != nil {
		return source
	}
	var out bytes.Buffer
	if text.WriteIndentedJSON(&out, v, "") != nil { // templates escape it
		return source
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Soon formats the time until a moment; "": it has come.
func Soon(t, now time.Time) string {
	if d := t.Sub(now).Round(time.Second); d > 0 {
		return "in " + Duration(d)
	}
	return ""
}

// Ago formats a time relative to now, or as a date.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := now.Sub(t)
	switch {
	case d < 0:
		return "in " + Duration(-d)
	case d < 45*time.Second:
		return "just now"
	case d < 7*24*time.Hour:
		return Duration(d) + " ago"
	case t.Year() == now.Year():
		return t.Format("2 January")
	}
	return t.Format("2 January 2006")
}

// Duration formats a duration in its largest unit.
func Duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return text.Count(int(d/time.Second), "second")
	case d < time.Hour:
		return text.Count(int(d/time.Minute), "minute")
	case d < 24*time.Hour:
		return text.Count(int(d/time.Hour), "hour")
	}
	return text.Count(int(d/(24*time.Hour)), "day")
}

// USD formats an amount of the feed.
func USD(n feed.USD) string { return text.Dollars(ledger.USD(ledger.Nanos(n))) }

// CountAny is Count for the number types that templates meet.
func CountAny(n any) string {
	if big, ok := n.(int64); ok {
		return Count(int(big))
	}
	small, _ := n.(int)
	return Count(small)
}

// Count formats a rounded number: 1.2 k, 25 M.
func Count(n int) string {
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

// Short returns the beginning of a text, on one line.
func Short(text string, most int) string {
	text = strings.Join(strings.Fields(markdown.Clean(text)), " ")
	if r := []rune(text); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return text
}

// Zone names a time zone; the server's zone has no name.
func Zone(name string) string {
	if name == "" || name == "Local" {
		return "the server's time"
	}
	return name
}

// Person returns a principal's key without its kind.
func Person(key string) string {
	if _, name, ok := strings.Cut(key, ":"); ok {
		return name
	}
	return key
}

// Who names a principal: by a known token's name, else by its id.
func Who(names map[string]string, key string) string {
	id := Person(key)
	return cmp.Or(names[id], id, "—")
}

// Initial is the first letter of a name.
func Initial(name string) string {
	for _, r := range strings.TrimSpace(name) {
		return strings.ToUpper(string(r))
	}
	return "?"
}

// Action formats an action of the audit log. Actions of tools are unchanged, in those of people ids are shortened.
func Action(action string) string {
	if strings.HasPrefix(action, "tool:") {
		return action
	}
	return ShortIDs(action)
}

// idPattern matches ids that nobody can read or remember.
var idPattern = pattern.Lazy(`\b[0-7][0-9a-hjkmnp-tv-z]{25}\b`)

// ShortIDs shortens each id in a text to its beginning, which every command accepts.
func ShortIDs(text string) string {
	return idPattern().ReplaceAllStringFunc(text, func(id string) string { return id[:12] + "…" })
}

// Folder returns the name of a directory; the scratch folder of a thread is called "a folder of its own".
func Folder(dir string) string {
	if strings.HasSuffix(dir, "/scratch") {
		return "a folder of its own"
	}
	return dir
}

// Percent is a part of a whole, rounded down.
func Percent(part, whole int) int {
	if whole <= 0 {
		return 0
	}
	return min(100, 100*part/whole)
}

// InlineFile is a text file that is part of a message.
type InlineFile struct{ Name, Text string }

// Markers of a text file in the message that the model reads.
const fileBegins, fileEnds = `<attachment filename="`, "\n</attachment>"

// SplitFiles separates the files at the end of a message from its text. Pages show them folded.
func SplitFiles(text string) (said string, files []InlineFile) {
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
		files = append([]InlineFile{{name, body}}, files...)
		said = strings.TrimRight(said[:at], "\n")
	}
	return said, files
}
