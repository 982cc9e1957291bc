// Package skill reads skills in the form of the Agent Skills convention: a folder with a
// SKILL.md, whose front matter says what it is for, and further files.
//
// It promises that a skill that cannot be read affects no other and says why in one sentence; that nothing
// outside a skill's folder is read for it, whatever its links say; that folders of any size are read within
// fixed limits; and that a repeated search takes a few system calls per file while nothing has changed.
//
// It knows nothing about approvals: package skill/approved decides which skills are used.
package skill

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"chorus/internal/pattern"
	"chorus/internal/text"
	"chorus/internal/yamltext"
)

// File is the name of the file that makes a folder a skill.
const File = "SKILL.md"

// The limits of the convention, and the most that we read of a file.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxFrontMatter   = 16 << 10
	// MaxFile is far beyond the 5,000 tokens that the convention recommends for a SKILL.md.
	MaxFile = 256 << 10
)

// Skill is the contents of a SKILL.md.
type Skill struct {
	Name          string
	Description   string
	License       string
	Compatibility string
	Metadata      map[string]string
	// AllowedTools are what the skill asks for. They are shown to people and give nobody a right.
	AllowedTools []string
	// Hidden keeps the skill out of the model's index: only people call it (disable-model-invocation).
	Hidden bool
	// Internal keeps people from calling it by name (user-invocable: false).
	Internal     bool
	ArgumentHint string
	Body         string   // what follows the front matter
	Remarks      []string // oddities that do no harm
}

// namePattern matches names of the convention: lower-case letters, digits and single hyphens between them.
var namePattern = pattern.Lazy(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

// ValidName reports whether a skill may have the name.
func ValidName(name string) bool { return len(name) <= maxName && namePattern().MatchString(name) }

// front is the front matter as people write it: values often have another type than in the convention.
type front struct {
	Name          any `yaml:"name"`
	Description   any `yaml:"description"`
	License       any `yaml:"license"`
	Compatibility any `yaml:"compatibility"`
	Metadata      any `yaml:"metadata"`
	AllowedTools  any `yaml:"allowed-tools"`
	Hidden        any `yaml:"disable-model-invocation"`
	Callable      any `yaml:"user-invocable"`
	ArgumentHint  any `yaml:"argument-hint"`
}

// Parse parses a SKILL.md. folder is the name of its folder, which must be the skill's name.
func Parse(folder string, data []byte) (Skill, error) {
	if len(data) > MaxFile {
		return Skill{}, fmt.Errorf("its %s has more than %d KB; move parts of it to other files", File, MaxFile>>10)
	}
	if !utf8.Valid(data) || bytes.ContainsRune(data, 0) {
		return Skill{}, fmt.Errorf("its %s is not text in UTF-8", File)
	}
	head, body, err := split(string(data))
	if err != nil {
		return Skill{}, err
	}
	read, err := decode(head)
	if err != nil {
		return Skill{}, err
	}
	s := Skill{Name: line(read.Name), Description: line(read.Description), License: line(read.License), Compatibility: line(read.Compatibility),
		Metadata: pairs(read.Metadata), AllowedTools: words(read.AllowedTools), Hidden: yes(read.Hidden), ArgumentHint: line(read.ArgumentHint),
		Internal: read.Callable != nil && !yes(read.Callable), Body: strings.TrimSpace(body)}
	switch {
	case s.Name == "":
		return Skill{}, errors.New("its front matter has no name")
	case !ValidName(s.Name):
		return Skill{}, fmt.Errorf("%q cannot be its name: at most %d of a–z, 0–9 and single hyphens, none at the ends", text.Clip(s.Name, 80), maxName)
	case s.Name != folder:
		return Skill{}, fmt.Errorf("it is called %s, but its folder is %q; both must have the same name", s.Name, text.Clip(folder, 80))
	case s.Description == "":
		return Skill{}, errors.New("its front matter has no description")
	}
	if utf8.RuneCountInString(s.Description) > maxDescription {
		s.Remarks = append(s.Remarks, fmt.Sprintf("its description has more than %d characters; the rest is not shown", maxDescription))
		s.Description = text.Clip(s.Description, maxDescription)
	}
	if utf8.RuneCountInString(s.Compatibility) > maxCompatibility {
		s.Compatibility = text.Clip(s.Compatibility, maxCompatibility)
	}
	if s.Body == "" {
		s.Remarks = append(s.Remarks, "it has no instructions")
	}
	return s, nil
}

var errNoFrontMatter = fmt.Errorf("its %s does not begin with front matter: a line ---, name, description, and a line ---", File)

// split separates the front matter from the rest.
func split(all string) (head, body string, err error) {
	all = strings.TrimPrefix(all, "\ufeff")
	all = strings.ReplaceAll(all, "\r\n", "\n")
	rest, ok := strings.CutPrefix(all, "---")
	first, rest, more := strings.Cut(rest, "\n")
	if !ok || strings.TrimSpace(first) != "" || !more {
		return "", "", errNoFrontMatter
	}
	for at := 0; at <= len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			if at > maxFrontMatter {
				return "", "", fmt.Errorf("its front matter has more than %d KB", maxFrontMatter>>10)
			}
			return rest[:at], rest[min(at+len(line)+1, len(rest)):], nil
		}
		at += len(line) + 1
	}
	return "", "", errors.New("its front matter has no end: a line ---")
}

// decode parses the front matter. Descriptions that contain a colon are common but invalid
// YAML: if parsing fails, it quotes plain values and tries once more.
func decode(head string) (front, error) {
	if yamltext.HasAnchors(head) {
		return front{}, errors.New("its front matter uses anchors; write the values out")
	}
	var read front
	err := yamltext.ReadKnown([]byte(head), &read)
	if err == nil {
		return read, nil
	}
	var again front
	if yamltext.ReadKnown([]byte(quoted(head)), &again) == nil {
		return again, nil
	}
	why, _, _ := strings.Cut(yamltext.Reason(err), "\n")
	return front{}, fmt.Errorf("its front matter cannot be read: %s", text.Clip(strings.Join(strings.Fields(why), " "), 160))
}

var plainValue = pattern.Lazy(`(?m)^([A-Za-z][A-Za-z0-9_-]*):[ \t]+([^\s"'\[{|>&*!#].*)$`)

func quoted(head string) string {
	return plainValue().ReplaceAllStringFunc(head, func(line string) string {
		key, value, _ := strings.Cut(line, ":")
		return key + ": '" + strings.ReplaceAll(strings.TrimSpace(value), "'", "''") + "'"
	})
}

// line returns a value as one line of text.
func line(v any) string {
	switch v := v.(type) {
	case nil, map[string]any, []any:
		return ""
	default:
		return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
	}
}

func yes(v any) bool {
	switch strings.ToLower(line(v)) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// maxPairs is how many values of metadata are shown, and maxTools how many tools.
const (
	maxPairs = 50
	maxTools = 100
)

func pairs(v any) map[string]string {
	given, _ := v.(map[string]any)
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if value := line(given[key]); value != "" && len(out) < maxPairs {
			out[text.Clip(line(key), 80)] = text.Clip(value, 200)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// words returns tools: a list, or text separated by blanks or commas. Text in parentheses belongs to a tool.
func words(v any) []string {
	var out []string
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" && len(out) < maxTools {
			out = append(out, text)
		}
	}
	if list, ok := v.([]any); ok {
		for _, one := range list {
			add(line(one))
		}
		return out
	}
	all, depth, begin := line(v), 0, 0
	for i, r := range all {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case (r == ' ' || r == ',') && depth <= 0:
			add(all[begin:i])
			begin = i + 1
		}
	}
	add(all[begin:])
	return out
}
