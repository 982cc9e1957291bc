package process

import (
	"regexp"
	"slices"
	"strings"

	"chorus/internal/sandbox"
)

// A command of plain words needs no shell: `go test ./...` is a program and its
// arguments, and bash would only look it up and replace itself by it. Starting it
// directly spares bash's own start, which costs more than many commands do.
// Whatever could mean more than its letters, and whatever bash does by itself,
// still goes through the shell.

// direct is the argument vector of a plain command; nil when it needs the shell. A
// program that is not there fails to start and goes to the shell too, which says it.
func direct(command sandbox.Command) []string {
	words := plainWords(command.Shell)
	if len(words) == 0 || shellsOwn(words[0]) {
		return nil
	}
	if slices.ContainsFunc(command.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		return nil // it is our PATH that is searched
	}
	return words
}

// portable reports a command that every shell takes for the same thing: plain words
// with &&, ||, ; and | between them, plain redirections, and of the shell's own
// commands only those that have no dialects. The system's sh starts in half the time
// of bash.
func portable(s string) bool {
	rest := s
	for {
		part, behind, more := cutOperator(rest)
		words := plainWords(withoutRedirections(part))
		if len(words) == 0 || shellsOwn(words[0]) && !sameEverywhere(words) {
			return false
		}
		if !more {
			return true
		}
		rest = behind
	}
}

// cutOperator cuts a command before its first operator outside of quotes.
func cutOperator(s string) (part, behind string, more bool) {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.HasPrefix(s[i:], "&&"), strings.HasPrefix(s[i:], "||"):
			return s[:i], s[i+2:], true
		case c == ';' || c == '|' && !strings.HasPrefix(s[i:], "|&"):
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

var redirection = regexp.MustCompile(`(^|\s)(2>&1|[12]?>>?\s*[A-Za-z0-9_./-]+|<\s*[A-Za-z0-9_./-]+)(?:\s|$)`)

// withoutRedirections takes the redirections to and from plain names out, one after
// the other; what is left of any other kind is no plain word.
func withoutRedirections(s string) string {
	for strings.ContainsAny(s, "<>") {
		at := redirection.FindStringIndex(s)
		if at == nil {
			return s
		}
		s = s[:at[0]] + " " + s[at[1]:]
	}
	return s
}

// sameEverywhere reports the shell's own commands that bash and every other sh agree on.
func sameEverywhere(words []string) bool {
	switch words[0] {
	case "true", "false", ":", "pwd":
		return len(words) == 1 || !strings.HasPrefix(words[1], "-")
	case "cd":
		return len(words) == 2 && !strings.HasPrefix(words[1], "-")
	case "exit":
		return len(words) <= 2
	case "echo":
		// -n, -e and backslashes are where the dialects of echo begin.
		return len(words) == 1 || !strings.HasPrefix(words[1], "-") && !slices.ContainsFunc(words[1:], func(w string) bool { return strings.Contains(w, "\\") })
	default:
		return false
	}
}

// plainWords splits a command into its words. It gives nil as soon as anything
// stands in it that a shell could take for more than itself.
func plainWords(s string) []string {
	var words []string
	var word strings.Builder
	in := false // inside a word, which may be empty ('')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ' || c == '\t':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		case c == '\'' || c == '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return nil
			}
			quoted := s[i+1 : i+1+end]
			if c == '"' && strings.ContainsAny(quoted, "$`\\!") || strings.ContainsAny(quoted, "\x00\n") {
				return nil
			}
			word.WriteString(quoted)
			in = true
			i += end + 1
		case plainByte(c):
			if len(words) == 0 && c == '=' {
				return nil // an assignment
			}
			word.WriteByte(c)
			in = true
		default:
			return nil
		}
	}
	if in {
		words = append(words, word.String())
	}
	if len(words) > 0 && words[0] == "" {
		return nil
	}
	return words
}

// plainByte reports characters that mean themselves wherever they stand.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-./:=,@%+", c) >= 0
}

// shellsOwn reports what bash does itself, or takes for grammar.
func shellsOwn(name string) bool {
	_, found := slices.BinarySearch(builtins, name)
	return found
}

// builtins of bash, and its reserved words; sorted.
var builtins = strings.Fields(`! . : [ [[ alias bg bind break builtin caller case cd command compgen complete compopt
	continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for
	function getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray
	readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask
	unalias unset until wait while`)
