package slash

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"chorus/internal/pattern"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// If there is no list of commands, people write them: "/context save description=before the change", or
// "/context save before the change". A value of several words that is not the last must be quoted.

// Find finds the command that the words after a slash start with, and the rest; nil: there is none.
func Find(list []platform.Command, words string) (found *platform.Command, path, rest string) {
	for {
		words = strings.TrimLeftFunc(words, unicode.IsSpace)
		end := strings.IndexFunc(words, unicode.IsSpace)
		if end < 0 {
			end = len(words)
		}
		i := slices.IndexFunc(list, func(c platform.Command) bool { return c.Name == words[:end] })
		if i < 0 {
			return nil, path, words
		}
		path, words = strings.TrimPrefix(path+"/"+words[:end], "/"), words[end:]
		if len(list[i].Sub) == 0 {
			return &list[i], path, words
		}
		list = list[i].Sub
	}
}

// Confirms at the end of a command confirms it.
const Confirms = "--yes"

// token is a word or a quoted text, with the space before it.
type token struct {
	space, raw, name, text string
	quoted                 bool
}

var (
	quoted = pattern.Lazy(`^(?:([a-z_]+)=)?["“”]([^"“”]*)["“”](?:\s|$)`)
	named  = pattern.Lazy(`^([a-z_]+)=(.*)$`)
)

func tokens(line string) (out []token) {
	for {
		rest := strings.TrimLeftFunc(line, unicode.IsSpace)
		if rest == "" {
			return out
		}
		t := token{space: line[:len(line)-len(rest)]}
		if m := quoted().FindStringSubmatch(rest); m != nil {
			t.name, t.text, t.quoted, t.raw = m[1], m[2], true, strings.TrimRightFunc(m[0], unicode.IsSpace)
		} else {
			end := strings.IndexFunc(rest, unicode.IsSpace)
			if end < 0 {
				end = len(rest)
			}
			t.raw, t.text = rest[:end], rest[:end]
			if m := named().FindStringSubmatch(t.raw); m != nil {
				t.name, t.text = m[1], m[2]
			}
		}
		out = append(out, t)
		line = rest[len(t.raw):]
	}
}

// takesOne reports whether an option's value is a single word.
func takesOne(o platform.Option) bool {
	return o.Completes || len(o.Choices) > 0 || o.Kind != platform.Text
}

// Read parses the options of a command: name=value, and values without a name for the first free option. The last
// text option takes all further words. It returns what is wrong. Persons stay as they were written.
func Read(i *platform.Invocation, options []platform.Option, rest string) (wrong string) {
	given, last := map[string]string{}, "" // last is the option that takes further words
	i.Written = true
	list := tokens(rest)
	if n := len(list); n > 0 && list[n-1].raw == Confirms {
		i.Confirmed, list = true, list[:n-1]
	}
	for _, t := range list {
		at := slices.IndexFunc(options, func(o platform.Option) bool { return t.name != "" && o.Name == t.name })
		value := t.text
		if at < 0 {
			if !t.quoted {
				value = t.raw
			}
			if last != "" {
				given[last] += t.space + t.raw
				continue
			}
			at = slices.IndexFunc(options, func(o platform.Option) bool { _, has := given[o.Name]; return !has })
		}
		if at < 0 {
			return fmt.Sprintf("%q is one value too many for /%s.", t.raw, strings.ReplaceAll(i.Path, "/", " "))
		}
		given[options[at].Name] = value
		if last = options[at].Name; takesOne(options[at]) || t.quoted {
			last = ""
		}
	}
	for _, o := range options {
		value, has := given[o.Name]
		switch {
		case !has && o.Required:
			return fmt.Sprintf("/%s needs %s: %s.", strings.ReplaceAll(i.Path, "/", " "), o.Name, o.Description)
		case !has:
		case o.Kind == platform.Flag:
			i.Flag[o.Name] = value != "false" && value != "no"
		default:
			i.Text[o.Name] = value
		}
	}
	return ""
}

// Line runs a command that somebody wrote; false: its first word is not one of these. For a first word alone it
// lists the subcommands.
func (s *Set) Line(ctx context.Context, i platform.Invocation, line string) (platform.Answer, bool) {
	c, path, rest := Find(s.list, strings.TrimPrefix(strings.TrimSpace(line), "/"))
	if path == "" {
		return platform.Answer{}, false
	}
	if c == nil {
		return says(usage(s.list, path, strings.TrimSpace(rest))), true
	}
	i.Path, i.Text, i.Flag, i.Person = path, map[string]string{}, map[string]bool{}, map[string]room.Author{}
	if wrong := Read(&i, c.Options, rest); wrong != "" {
		return says(wrong), true
	}
	return s.Invoke(ctx, i)
}

// usage lists the commands of a group.
func usage(list []platform.Command, group, wrong string) string {
	at := slices.IndexFunc(list, func(c platform.Command) bool { return c.Name == group })
	if at < 0 {
		return "there is no command /" + strings.ReplaceAll(group, "/", " ")
	}
	var b strings.Builder
	if wrong != "" {
		word, _, _ := strings.Cut(wrong, " ")
		fmt.Fprintf(&b, "there is no /%s %s; choose one of\n", group, word)
	}
	for _, sub := range list[at].Sub {
		fmt.Fprintf(&b, "%s  %s\n", written(group+" "+sub.Name, sub), sub.Description)
	}
	return strings.TrimRight(b.String(), "\n")
}
