package savedcontext

import (
	"encoding/json"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/pattern"
)

// Said is what somebody said, to find the saved contexts that hold it. A context holds it if
//
//   - one of its messages is theirs: an event that they wrote, or a line from elsewhere whose author has their id;
//   - somewhere else in it (in words of others, answers, results, the summary, the description) stands one of their messages with at
//     least quotable letters and digits. Case, white space and punctuation do not matter, so a quotation is found however it was
//     wrapped or escaped, and of a long message the beginning is enough, because tools shorten what they quote;
//   - a line in it has their name and one of their messages, however short, in the way in which imports and tools write who said what.
//
// So whoever once said "ok" does not take along what others saved. A short message that somebody else quotes without the name is not
// found, nor is anything that a model put into its own words.
type Said struct {
	by     chat.Principal
	events map[event]bool
	names  []string
	lines  map[string]bool     // the first lines of messages, compared as key does
	quotes map[string][]string // the letters of quotable messages, by the first bytes of them
}

type event struct {
	thread chat.ThreadID
	seq    int64
}

// quotable is how much of a message must stand in words of others to count as a quotation: more than most phrases that everybody uses.
// A digit counts twice, so that a telephone number counts, and so does a Chinese character, which says as much as several letters.
const quotable = 20

// quoteStart is how many bytes the letters of every quotable message have, even if all of them are digits.
const quoteStart = quotable / 2

// shortened is how many bytes of a longer message's letters are enough.
const shortened = 200

// NewSaid returns what somebody said, when nothing is known yet.
func NewSaid(by chat.Principal) *Said {
	return &Said{by: by, events: map[event]bool{}, lines: map[string]bool{}, quotes: map[string][]string{}}
}

// Event adds an event that they wrote.
func (s *Said) Event(thread chat.ThreadID, seq int64) { s.events[event{thread, seq}] = true }

// Name adds a name that they had.
func (s *Said) Name(name string) {
	if name != "" && !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
}

// Text adds a message of theirs, or one version of it.
func (s *Said) Text(message string) {
	message = strings.TrimSpace(message)
	if message == "" {
		return
	}
	first, _, _ := strings.Cut(message, "\n")
	s.lines[key(first)] = true
	words := letters(message)
	if weight(words) < quotable {
		return
	}
	if len(words) > shortened {
		words = words[:shortened] // perhaps in the middle of a character, which does not matter
	}
	start := words[:quoteStart]
	if !slices.Contains(s.quotes[start], words) {
		s.quotes[start] = append(s.quotes[start], words)
	}
}

// in reports whether the file of a saved context holds some of it.
func (s *Said) in(data []byte) bool {
	var file struct {
		Messages []spoken `json:"messages"`
	}
	var all any
	if json.Unmarshal(data, &file) != nil || json.Unmarshal(data, &all) != nil {
		return true // what is damaged may contain anything
	}
	return slices.ContainsFunc(file.Messages, s.wrote) || s.within(all)
}

// spoken is what a savedMessage has to tell who wrote it.
type spoken struct {
	ID      int64            `json:"id"`
	Thread  chat.ThreadID    `json:"thread_id"`
	Role    string           `json:"role"`
	Content string           `json:"content"`
	From    chat.Participant `json:"from"`
}

// wrote reports whether a message is theirs.
func (s *Said) wrote(m spoken) bool {
	switch {
	case s.events[event{m.Thread, m.ID}]:
		return true
	case m.From.Kind == chat.Agent || m.From.Kind == chat.System || m.Role != "user":
		return false
	case m.From.ID == "": // from a file that only had names
		first, _, _ := strings.Cut(strings.TrimSpace(m.Content), "\n")
		return slices.Contains(s.names, m.From.Name) && s.lines[key(first)]
	default:
		// On a platform, ids are those of the platform; elsewhere they can come from anywhere.
		return m.From.ID == s.by.ID && (!m.Thread.OnPlatform() || m.Thread.Transport() == string(s.by.Kind))
	}
}

// within reports whether a string in a JSON value holds some of it.
func (s *Said) within(value any) bool {
	switch v := value.(type) {
	case string:
		return s.inText(v)
	case []any:
		return slices.ContainsFunc(v, s.within)
	case map[string]any:
		for _, item := range v {
			if s.within(item) {
				return true
			}
		}
	}
	return false
}

func (s *Said) inText(text string) bool {
	for _, version := range versions(text) {
		if s.quotedIn(letters(version)) {
			return true
		}
		for line := range strings.SplitSeq(version, "\n") {
			if s.named(line) {
				return true
			}
		}
	}
	return false
}

// quotedIn reports whether some letters contain those of a quotable message.
func (s *Said) quotedIn(words string) bool {
	for i := 0; i+quoteStart <= len(words) && len(s.quotes) > 0; i++ {
		for _, message := range s.quotes[words[i:i+quoteStart]] {
			if strings.HasPrefix(words[i:], message) {
				return true
			}
		}
	}
	return false
}

// named reports whether a line says that one of their names said one of their messages, in the way of an import
// ("[from ada]: ok") or of a search ("2026-11-02 15:04 ada: ok"). A name alone is not enough: it can be any word.
func (s *Said) named(line string) bool {
	for _, name := range s.names {
		before, message, ok := strings.Cut(line, name+"]: ")
		if ok && bracket().MatchString(before) && s.lines[key(message)] {
			return true
		}
		before, message, ok = strings.Cut(line, name+": ")
		if ok && clock().MatchString(before) && s.lines[key(message)] {
			return true
		}
	}
	return false
}

// What stands before such a name, perhaps in a list or a quotation.
var (
	bracket = pattern.Lazy(`^[\s>*-]*\[(from )?$`)
	clock   = pattern.Lazy(`^[\s>*-]*\d[\d:.,TZ/ -]* $`)
)

// key is how a short text is compared: by its letters or, if it has none, as it is.
func key(text string) string {
	if words := letters(text); words != "" {
		return words
	}
	return strings.TrimSpace(text)
}

// letters returns the letters and digits of a text in lower case.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// weight is how much letters say.
func weight(words string) (n int) {
	for _, r := range words {
		n++
		if unicode.IsDigit(r) || unicode.Is(unicode.Han, r) {
			n++
		}
	}
	return n
}

// versions returns a text, and what it is without the escapes of HTML and JSON if it has any: results of tools are often one of them.
func versions(text string) []string {
	out := []string{text}
	if plain := html.UnescapeString(text); plain != text {
		out = append(out, plain)
	}
	if strings.Contains(text, `\`) {
		out = append(out, escaped().ReplaceAllStringFunc(text, unescape))
	}
	return out
}

// escaped matches an escape of JSON; several \u in a row, because two of them can be one character.
var escaped = pattern.Lazy(`(\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]`)

func unescape(sign string) string {
	var out string
	if json.Unmarshal([]byte(`"`+sign+`"`), &out) != nil || !utf8.ValidString(out) {
		return sign
	}
	return out
}
