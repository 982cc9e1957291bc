// Package mention turns the platform's numbers for people, roles, channels and emoji into names
// that a model can read, and names that a model wrote back into numbers.
//
// Code and links stay unchanged, and so does what is not known. A longer name takes precedence
// over a shorter one that it begins with. A model cannot notify anybody unless somebody allowed
// it: everyone, here and roles never become mentions.
package mention

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"chorus/internal/pattern"
	"chorus/internal/room/split"
)

// Named is a person or thing with its number.
type Named struct {
	ID   string
	Name string
}

// Directory is who and what is known here. If a name occurs twice, the first one is
// meant, so put recent speakers first, and people before bots.
type Directory struct {
	People   []Named
	Roles    []Named
	Channels []Named
}

// longestName is the longest name looked for between brackets; platforms' names are shorter.
const longestName = 256

// The platform's notation for them.
var (
	number  = pattern.Lazy(`<(?:(@!?|@&|#)(\d{1,25})|a?:(\w{1,64}):\d{1,25})>`)
	numbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + number().String()) })
)

// Read replaces numbers with names: <@1> becomes <@ada>, <@&1> @role, <#1> #channel, <:wave:1> :wave:.
func Read(text string, d Directory) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return split.Prose(text, func(s string) string {
		return number().ReplaceAllStringFunc(s, func(whole string) string {
			part := number().FindStringSubmatch(whole)
			switch {
			case part[3] != "":
				return ":" + part[3] + ":"
			case part[1] == "#":
				return named(d.Channels, part[2], "#", "", whole)
			case part[1] == "@&":
				return named(d.Roles, part[2], "@", "", whole)
			default:
				return named(d.People, part[2], "<@", ">", whole)
			}
		})
	})
}

func named(among []Named, id, before, after, otherwise string) string {
	i := slices.IndexFunc(among, func(n Named) bool { return n.ID == id })
	if i < 0 || among[i].Name == "" {
		return otherwise
	}
	return before + among[i].Name + after
}

// Write replaces names with numbers: <@ada> and @Ada for people, #general for channels.
func Write(text string, d Directory) string {
	if !strings.ContainsAny(text, "<@#") {
		return text
	}
	w := writer{people: longestFirst(d.People)}
	if strings.Contains(text, "#") { // a guild may have thousands
		w.channels = longestFirst(d.Channels)
	}
	return split.Prose(text, w.prose)
}

type writer struct {
	people, channels []Named
	users            []string
}

// longestFirst sorts names by length. It leaves out empty names and those that mean everybody.
func longestFirst(names []Named) []Named {
	out := slices.Clone(names)
	out = slices.DeleteFunc(out, func(n Named) bool {
		return n.ID == "" || strings.TrimSpace(n.Name) == "" || strings.EqualFold(n.Name, "everyone") || strings.EqualFold(n.Name, "here")
	})
	slices.SortStableFunc(out, func(a, b Named) int { return len(b.Name) - len(a.Name) })
	return out
}

func (w *writer) prose(s string) string {
	var out strings.Builder
	before := rune(' ')
	for len(s) > 0 {
		if text, used := w.sign(s, before); used > 0 {
			out.WriteString(text)
			before, s = '>', s[used:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		out.WriteString(s[:n])
		before, s = r, s[n:]
	}
	return out.String()
}

// sign reads a name with its sign at the beginning of s, if there is one.
func (w *writer) sign(s string, before rune) (text string, used int) {
	switch {
	case s[0] == '<':
		return w.bracketed(s)
	case s[0] == '@' && !within(before):
		if who, n := begins(s[1:], w.people); n > 0 {
			w.mention(who.ID)
			return "<@" + who.ID + ">", n + 1
		}
	case s[0] == '#' && !within(before):
		if where, n := begins(s[1:], w.channels); n > 0 {
			return "<#" + where.ID + ">", n + 1
		}
	}
	return "", 0
}

// bracketed reads <@name>, and numbers that the model repeated.
func (w *writer) bracketed(s string) (string, int) {
	if part := numbers().FindStringSubmatch(s); part != nil {
		if part[1] == "@" || part[1] == "@!" {
			w.mention(part[2])
		}
		return part[0], len(part[0])
	}
	name, ok := strings.CutPrefix(s[:min(len(s), longestName)], "<@")
	name, _, ends := strings.Cut(name, ">")
	if !ok || !ends {
		return "", 0
	}
	i := slices.IndexFunc(w.people, func(n Named) bool { return strings.EqualFold(n.Name, name) })
	if i < 0 {
		return "", 0
	}
	w.mention(w.people[i].ID)
	return "<@" + w.people[i].ID + ">", len(name) + 3
}

// Users returns the people whom a text mentions in the platform's notation,
// in order, each once. Code and links mention nobody.
func Users(text string) []string {
	w := writer{}
	split.Prose(text, w.prose)
	return w.users
}

func (w *writer) mention(id string) {
	if !slices.Contains(w.users, id) {
		w.users = append(w.users, id)
	}
}

// begins finds the longest name that s begins with and that ends at the end of a word.
func begins(s string, names []Named) (Named, int) {
	for _, n := range names {
		if len(s) < len(n.Name) || !strings.EqualFold(s[:len(n.Name)], n.Name) {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(s[len(n.Name):]); len(s) == len(n.Name) || !within(next) {
			return n, len(n.Name)
		}
	}
	return Named{}, 0
}

// within reports whether the sign is in the middle of a word, as in an email address.
func within(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// Reply returns the reply mark. Without a name, it names somebody unknown.
func Reply(name string) string {
	name = cmp.Or(name, "someone")
	return "<reply:@" + name + "> "
}

// WithoutReply removes a reply mark that a model copied from other messages.
func WithoutReply(text string) string {
	trimmed := strings.TrimLeft(text, " \n")
	rest, ok := strings.CutPrefix(trimmed, "<reply:")
	if !ok {
		return text
	}
	name, rest, ok := strings.Cut(rest, ">")
	if !ok || strings.Contains(name, "\n") {
		return text
	}
	return strings.TrimLeft(rest, " ")
}
