package shell

import (
	"path"
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// Kind says what a part of a command is.
type Kind string

// The kinds of parts.
const (
	KindCommand Kind = "command" // a program with its arguments
	KindWrapper Kind = "wrapper" // only starts its children, which are judged instead
	KindPlain   Kind = "plain"   // changes nothing outside the script: an assignment, a test, a cd to a subdirectory
	KindGuess   Kind = "guess"   // what a part would be if variables hold what the script assigned to them
	KindWrite   Kind = "write"   // a redirection that writes a file
	KindRead    Kind = "read"    // a redirection that reads one
	KindUnknown Kind = "unknown" // could not be parsed
)

// Part is one thing that a shell command does.
type Part struct {
	Argv     []string
	Text     string // the words joined by single spaces, quoted as a shell needs
	Action   string
	Kind     Kind
	Opaque   bool // the text does not show what runs
	Why      string
	Children []Part // what it starts: substitutions in its words, wrapped commands

	words  []word
	cwd    cwd
	offset int    // byte offset in the command; -1 in unwrapped text
	extra  *extra // nil for most parts
}

// extra holds fields that few parts need. It is separate because parts are numerous and copied often.
type extra struct {
	gitWords    []word   // the words after git's global options
	deny        []string // further names under which the part may be denied
	stricter    []string // further names that may make the verdict stricter
	maybe       []string // prefixes of names that the part may have, depending on unknown words
	file        codeFile
	catastrophe string // why it is catastrophic whatever its words are
	derived     string // why the part exists if the text does not show it: "sort --output writes a file"
	plain       string // how to write the command so that it would not be opaque, which is the end of Why
	purpose     bool   // the command's purpose is to write this file
}

// addExtra returns the extra fields for writing and creates them if needed.
func (p *Part) addExtra() *extra {
	if p.extra == nil {
		p.extra = new(extra)
	}
	return p.extra
}

func (p *Part) file() codeFile {
	if p.extra == nil {
		return codeFile{}
	}
	return p.extra.file
}

func (p *Part) opaque(why string) {
	if !p.Opaque {
		p.Opaque, p.Why = true, why
	}
}

// opaqueUnless is opaque for what would be clear if it were written otherwise.
func (p *Part) opaqueUnless(why, plain string) {
	if !p.Opaque {
		p.opaque(why + "; " + plain)
		p.addExtra().plain = plain
	}
}

// Reason returns Why without how to write the command otherwise.
func (p *Part) Reason() string {
	if p.extra == nil || p.extra.plain == "" {
		return p.Why
	}
	return strings.TrimSuffix(p.Why, "; "+p.extra.plain)
}

// adopt adds children. It does not copy the first ones, because parts are large.
func (p *Part) adopt(parts []Part) {
	if p.Children == nil {
		p.Children = slices.Clip(parts)
	} else {
		p.Children = append(p.Children, parts...)
	}
}

func markGuess(parts []Part) {
	for i := range parts {
		parts[i].Kind = KindGuess
		markGuess(parts[i].Children)
	}
}

// Names returns the action strings that a part has besides Action: those that may only make the
// verdict stricter (deny, or an explicit ask), and those that may only deny.
func (p *Part) Names() (stricter, denyOnly []string) {
	if p.extra == nil {
		return nil, nil
	}
	return p.extra.stricter, p.extra.deny
}

// ChangesRemote reports whether a command certainly changes another machine.
func (p *Part) ChangesRemote() bool {
	return p.extra != nil && slices.ContainsFunc(p.extra.stricter, func(name string) bool { return strings.HasPrefix(name, "tool:remote:") })
}

// Derived returns why the part exists if it stands for the effect of an option or a program, or "".
func (p *Part) Derived() string {
	if p.extra == nil {
		return ""
	}
	return p.extra.derived
}

// IsPurpose reports whether the command's purpose is to write this file. A rule for
// the command then covers the file if it lies in the workspace.
func (p *Part) IsPurpose() bool { return p.extra != nil && p.extra.purpose }

// MaybeNames returns prefixes of action strings that the part may have,
// depending on words whose values are not known before it runs.
func (p *Part) MaybeNames() []string {
	if p.extra == nil {
		return nil
	}
	return p.extra.maybe
}

// RunsFile returns why a rule must name the file that this part runs, or "" if it runs
// none. The file's contents decide what happens, and they are not read.
func (p *Part) RunsFile() string { return p.file().why }

// IsRunner reports whether the word behind RunsFile is not a file but makes an interpreter run the code of
// its working directory, as make and pytest do. A rule that names no program at all allows such a part.
func (p *Part) IsRunner() bool { return p.file().runner }

// WithFile returns the text of a part for which RunsFile gives a reason, with another file name.
func (p *Part) WithFile(name string) string {
	file := knownWord(name)
	file.text = p.file().option + file.text // options need no quotes
	return p.withWord(p.file().at-1, file)
}

// WithProgram returns the text of a part with another program name.
func (p *Part) WithProgram(name string) string { return p.withWord(0, knownWord(name)) }

func (p *Part) withWord(at int, with word) string {
	words := slices.Clone(p.words)
	words[at] = with
	return text(words)
}

// CleanFile returns the text of a part with the path of its file
// cleaned, or false if the path is already clean.
func (p *Part) CleanFile() (string, bool) {
	at := p.file().at
	if at == 0 || at > len(p.words) || !p.words[at-1].known && !p.words[at-1].glob {
		return "", false
	}
	name := strings.TrimPrefix(p.words[at-1].value, p.file().option)
	clean := path.Clean(name)
	if strings.HasPrefix(name, "./") && !strings.HasPrefix(clean, "../") {
		clean = "./" + clean
	}
	if clean == name {
		return "", false
	}
	return p.WithFile(clean), true
}

// Span is a piece of an action string: known text, or a gap that may hold any text.
type Span struct {
	Text string
	Gap  bool
}

// Expands reports whether some word of the part is not fully known.
func (p *Part) Expands() bool {
	for i := range p.words {
		if p.words[i].gaps != nil {
			return true
		}
	}
	return false
}

// AppendSpans appends the action string of the part under a tool, with gaps for unknown text.
func (p *Part) AppendSpans(to []Span, tool string) []Span { return appendSpans(to, tool, p.words) }

// AppendFileSpans is AppendSpans for the file that a part reads or writes.
func (p *Part) AppendFileSpans(to []Span) []Span {
	tool, _, _ := action.Split(p.Action)
	if dir := p.cwd.places()[0]; dir != "" && (p.words[1].head() == "" || p.words[1].head()[0] != '/') {
		return append(to, Span{Text: action.Join(tool, "")}, Span{Gap: true}) // it may lead out of the directory
	}
	return appendSpans(to, tool, p.words[1:])
}

// AppendGitSpans is AppendSpans for the git tool, without git's global options.
// It appends nothing if the part is not a git command.
func (p *Part) AppendGitSpans(to []Span) []Span {
	if p.extra == nil || p.extra.gitWords == nil {
		return to
	}
	return appendSpans(to, "git", p.extra.gitWords)
}

func appendSpans(to []Span, tool string, words []word) []Span {
	to = slices.Grow(to, 2*len(words)+6)
	if tool == "bash" {
		to = append(to, Span{Text: action.Bash})
	} else {
		to = append(to, Span{Text: action.Join(tool, "")})
	}
	for i := range words {
		if i > 0 {
			to = append(to, Span{Text: " "})
		}
		if words[i].gaps == nil {
			to = append(to, Span{Text: words[i].text})
		} else {
			to = append(to, words[i].gaps.spans...)
		}
	}
	return to
}

// Tree is a shell command taken apart.
type Tree struct {
	Command string
	Parts   []Part
	Err     error // why the rest could not be parsed; Parts holds what was read
}

// All calls f for every part with its depth, parents first.
func (t Tree) All(f func(p *Part, depth int)) { all(t.Parts, 0, f) }

func all(parts []Part, depth int, f func(*Part, int)) {
	for i := range parts {
		f(&parts[i], depth)
		all(parts[i].Children, depth+1, f)
	}
}
