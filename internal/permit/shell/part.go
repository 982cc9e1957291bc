package shell

import (
	"path"
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// Kind is what a part of a command is.
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

// Part is one thing a shell command does.
type Part struct {
	Argv     []string
	Text     string // the words joined by one space, quoted as the shell would need
	Action   string
	Kind     Kind
	Opaque   bool // the text does not tell what runs
	Why      string
	Children []Part // what it starts: substitutions in its words, wrapped commands

	words  []word
	cwd    cwd
	offset int    // byte position in the command; -1 in text that was unwrapped
	extra  *extra // nil for most parts
}

// extra is what few parts have. It is separate because parts are many and copied often.
type extra struct {
	gitWords    []word   // the words after git's global options
	deny        []string // further names under which the part may be denied
	stricter    []string // further names that may make the verdict stricter
	maybe       []string // prefixes of names the part would have, depending on unknown words
	file        codeFile
	catastrophe string // why it is catastrophic whatever its words are
	derived     string // why the part is there, if the text does not show it: "sort --output writes a file"
	purpose     bool   // writing the file is what the command is for
}

// addExtra gives the extra fields for writing.
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

// adopt adds children. The first ones are not copied, since parts are large.
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

// Names gives the action strings that a part has besides Action: those that may only
// make the verdict stricter (deny, or an explicit ask), and those that may only deny.
func (p *Part) Names() (stricter, denyOnly []string) {
	if p.extra == nil {
		return nil, nil
	}
	return p.extra.stricter, p.extra.deny
}

// ChangesRemote reports a command that certainly changes things on another machine.
func (p *Part) ChangesRemote() bool {
	return p.extra != nil && slices.ContainsFunc(p.extra.stricter, func(name string) bool { return strings.HasPrefix(name, "tool:remote:") })
}

// Derived says why the part is there, if it stands for what an option or the nature of a program does, or "".
func (p *Part) Derived() string {
	if p.extra == nil {
		return ""
	}
	return p.extra.derived
}

// IsPurpose reports a written file that the command is there to write: a rule for the command covers it where it lies in
// the workspace.
func (p *Part) IsPurpose() bool { return p.extra != nil && p.extra.purpose }

// MaybeNames gives prefixes of action strings that the part may have, depending on
// words whose values are not known before it runs.
func (p *Part) MaybeNames() []string {
	if p.extra == nil {
		return nil
	}
	return p.extra.maybe
}

// RunsFile gives the reason for which a rule must name the file that this part runs,
// or "" if it runs none: the file's contents decide what happens, and they are not read.
func (p *Part) RunsFile() string { return p.file().why }

// IsRunner reports that what RunsFile speaks of is no file, but what makes an interpreter run the code of the folder that it
// works in, as make and pytest do: a rule that names no program at all allows it like these.
func (p *Part) IsRunner() bool { return p.file().runner }

// WithFile is the text of a part for which RunsFile gives a reason, if the file had
// another name.
func (p *Part) WithFile(name string) string {
	file := knownWord(name)
	file.text = p.file().option + file.text // an option needs no quotes
	return p.withWord(p.file().at-1, file)
}

// WithProgram is the text of a part if its program had another name.
func (p *Part) WithProgram(name string) string { return p.withWord(0, knownWord(name)) }

func (p *Part) withWord(at int, with word) string {
	words := slices.Clone(p.words)
	words[at] = with
	return text(words)
}

// CleanFile is the text of a part that runs a file if the path of the file were written without detours; false if it is.
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

// AppendSpans appends the action string of the part under a tool, with gaps where its
// words are not known.
func (p *Part) AppendSpans(to []Span, tool string) []Span { return appendSpans(to, tool, p.words) }

// AppendFileSpans is AppendSpans for the file that a part reads or writes.
func (p *Part) AppendFileSpans(to []Span) []Span {
	tool, _, _ := action.Split(p.Action)
	if dir := p.cwd.places()[0]; dir != "" && (p.words[1].head() == "" || p.words[1].head()[0] != '/') {
		return append(to, Span{Text: action.Join(tool, "")}, Span{Gap: true}) // it may lead out of the directory
	}
	return appendSpans(to, tool, p.words[1:])
}

// AppendGitSpans is AppendSpans for the git tool, without git's global options. It
// appends nothing for a part that is no git command.
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
	Err     error // why the rest could not be parsed; Parts has what was read
}

// All calls f for every part with its depth, parents first.
func (t Tree) All(f func(p *Part, depth int)) { all(t.Parts, 0, f) }

func all(parts []Part, depth int, f func(*Part, int)) {
	for i := range parts {
		f(&parts[i], depth)
		all(parts[i].Children, depth+1, f)
	}
}
