package canonical

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call writes a simple command.
func (w *writer) call(c *syntax.CallExpr) {
	name := ""
	if len(c.Args) > 0 {
		if name = w.commandName(c.Args[0]); w.opaque != nil {
			return
		}
	}
	for i, a := range c.Assigns {
		if i > 0 {
			w.put(" ")
		}
		if name == "read" && w.bash && a.Name.Value == "IFS" && a.Array == nil && a.Index == nil && !a.Append {
			w.put("IFS=") // limited to this command, it only controls how a line is split
			if a.Value != nil {
				w.putWord(a.Value)
			}
			continue
		}
		before := w.scope
		w.assign(a)
		if len(c.Args) > 0 {
			w.scope = before // assigned for this command only
		}
	}
	if len(c.Args) == 0 {
		return
	}
	if len(c.Assigns) > 0 {
		w.put(" ")
	}
	if _, why, plain := builtin(name); why != "" && !(name == "exec" && len(c.Args) == 1) { // exec without a program only redirects
		w.fail(why, nonEmpty(plain)...)
		return
	}
	if name == "trap" {
		w.trap(c.Args)
		return
	}
	w.builtinArguments(name, c.Args[1:])
	script := w.shellArguments(name, c.Args)
	for i, a := range c.Args {
		if i > 0 {
			w.put(" ")
		}
		if i == script {
			w.put(w.innerScript(c.Args, i))
			continue
		}
		w.putWord(a)
	}
}

// commandName checks the word that names what runs.
func (w *writer) commandName(word *syntax.Word) string {
	name, ok := literal(word)
	if !ok {
		w.fail("what it runs is computed", "write the name of the program")
		return ""
	}
	rest := strings.TrimPrefix(name, "~/")
	for _, r := range rest {
		if r <= ' ' || r > '~' || strings.ContainsRune("*?{}~=$`\"'\\()<>|&;#!", r) || (r == '[' || r == ']') && name != "[" {
			w.fail(fmt.Sprintf("%q is an unusual name for a program", name))
			return ""
		}
	}
	if rest == "" || isReserved(name) || strings.HasPrefix(name, "%") {
		w.fail(fmt.Sprintf("%q is not a program", name))
		return ""
	}
	if slices.Contains(w.names, name) {
		w.fail("the function " + name + " is not known to a shell inside")
	}
	return name
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// shellArguments finds a shell among the words of a command and returns the index of the text that the
// shell runs, or -1 if it runs none. Words after that text are only its parameters.
func (w *writer) shellArguments(name string, args []*syntax.Word) int {
	script := -1
	for i, a := range args {
		lit, ok := literal(a)
		if !ok || !isShell(path.Base(lit)) || i == script || i > 0 && (readsNames(name) || strings.HasSuffix(lit, "/")) {
			continue
		}
		at := i + 1
		for at < len(args) && isStrictOption(args[at]) {
			at++
		}
		option := ""
		if at < len(args) {
			if option, ok = literal(args[at]); !ok && script < 0 {
				w.fail("what a shell runs is computed", "write the command itself")
				return -1
			}
		}
		switch {
		case isCommandOption(option) && at+1 < len(args):
			if !isPOSIX(path.Base(lit)) {
				w.fail("the language of "+lit+" is not judged", "use bash")
			}
			if script >= 0 {
				w.fail("it starts several shells", "run one after the other")
			}
			script = at + 1
		case script >= 0: // a parameter of the script
		case option == "--version" || option == "--help":
		case option == "", option == ";", strings.HasPrefix(option, "-"), strings.HasPrefix(option, "+"):
			w.fail("a shell reads its commands from somewhere else", "give them to bash -c '…', or run a file")
		}
	}
	return script
}

// isStrictOption reports whether a word is an option that only makes a shell stricter or more verbose.
func isStrictOption(word *syntax.Word) bool {
	lit, ok := literal(word)
	return ok && len(lit) > 1 && lit[0] == '-' && strings.Trim(lit[1:], "eux") == ""
}

// isCommandOption reports whether s is -c, alone or combined with options that only make a shell stricter.
func isCommandOption(s string) bool {
	letters, ok := strings.CutPrefix(s, "-")
	return ok && strings.HasSuffix(letters, "c") && strings.Trim(letters[:len(letters)-1], "eux") == ""
}

// trap writes a text that the same shell runs later.
func (w *writer) trap(args []*syntax.Word) {
	w.onlyBash("trap")
	w.put("trap")
	for i, a := range args[1:] {
		lit, ok := literal(a)
		switch {
		case !ok:
			w.fail("what trap runs later is computed", "write the command itself in single quotes")
			return
		case w.nested >= maxNested:
			w.fail("shells are nested too deeply")
			return
		case i == 0 && lit != "" && lit != "-" && !strings.HasPrefix(lit, "-"):
			out, _, err := write(lit, w.dialect, w.nested+1)
			if err != nil {
				o := err.(*Opaque)
				w.fail("in the text of trap: "+o.Reason, nonEmpty(o.Plain)...)
				return
			}
			w.put(" " + quote(out))
		case i > 0 && lit != "EXIT":
			w.fail("trap for "+lit+" runs a text between other commands", "use EXIT")
			return
		default:
			w.put(" ")
			w.putWord(a)
		}
	}
}

// innerScript writes the text that an inner shell runs.
func (w *writer) innerScript(args []*syntax.Word, at int) string {
	inner, ok := literal(args[at])
	if !ok {
		return w.fail("the text that a shell runs is computed", "write the command itself, or put values behind the text as $1, $2")
	}
	if w.nested >= maxNested {
		return w.fail("shells are nested too deeply")
	}
	shell := ""
	for _, a := range args[:at-1] { // the last shell before the text runs it
		if lit, ok := literal(a); ok && isShell(path.Base(lit)) {
			shell = lit
		}
	}
	d := dialect{bash: path.Base(shell) == "bash", names: slices.Concat(w.names, w.functions)}
	out, _, err := write(inner, d, w.nested+1)
	if err != nil {
		o := err.(*Opaque)
		return w.fail("in the text of "+shell+" -c: "+o.Reason, nonEmpty(o.Plain)...)
	}
	return quote(out)
}
