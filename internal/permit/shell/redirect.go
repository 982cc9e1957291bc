package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/action"
)

func (w *walker) redirects(list []*syntax.Redirect) {
	for _, r := range list {
		w.redirect(r)
	}
}

func (w *walker) redirect(r *syntax.Redirect) {
	if r.Hdoc != nil {
		w.substitutions(r.Hdoc)
	}
	w.substitutions(r.Word)
	for _, text := range []*syntax.Word{r.Hdoc, r.Word} {
		if text != nil && strings.ContainsAny(w.source(text), "$`\\") { // most contain no code
			x := w.join(w.pieces(text.Parts))
			w.noteData(&x)
		}
	}
	kind, sign := KindWrite, ">"
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return
	case syntax.RdrIn:
		kind, sign = KindRead, "<"
	case syntax.AppOut, syntax.AppAll, syntax.AppClob:
		sign = ">>"
	}
	for _, target := range w.read(nil, r.Word) {
		if r.Op == syntax.DplOut && isDescriptor(target.value) {
			continue
		}
		if !isStream(target.value) {
			parts := w.redirectParts(kind, sign, target, int(r.OpPos.Offset()))
			for i := range parts {
				w.emit(&parts[i])
			}
		}
	}
}

// redirectParts returns the files that a redirection may read or write,
// one for each directory that it may happen in.
func (w *walker) redirectParts(kind Kind, sign string, target word, offset int) []Part {
	dirs := w.cwd.places()
	if !target.known || path.IsAbs(target.value) || strings.HasPrefix(target.value, "~") {
		dirs = dirs[:1]
	}
	out := make([]Part, 0, len(dirs))
	for i := range dirs {
		out = append(out, w.redirectPart(kind, sign, target, offset, dirs[i:i+1:i+1]))
	}
	return out
}

// signWord returns the redirection operator as a word, quoted.
func signWord(sign string) word {
	switch sign {
	case ">":
		return word{value: sign, text: "'>'", known: true}
	case ">>":
		return word{value: sign, text: "'>>'", known: true}
	case "<":
		return word{value: sign, text: "'<'", known: true}
	}
	return knownWord(sign)
}

// redirectPart returns the part for one directory, the only one in dir.
func (w *walker) redirectPart(kind Kind, sign string, target word, offset int, dir []string) Part {
	tool := "write"
	if kind == KindRead {
		tool = "read"
	}
	p := Part{
		Argv: []string{sign, target.value}, Text: sign + " " + target.text, Kind: kind,
		words: []word{signWord(sign), target}, cwd: cwd{dirs: dir, unknown: w.cwd.unknown}, offset: offset,
	}
	at := target.value
	if target.known {
		at = joinDir(dir[0], at)
		if relative := !strings.HasPrefix(at, "/"); relative && w.cwd.unknown {
			p.Opaque, p.Why = true, "the directory is not known here"
		}
		if target.home {
			p.Opaque, p.Why = true, "a path in a home directory"
		}
	} else {
		p.Opaque, p.Why = true, "the path is not known before it runs"
	}
	if strings.HasPrefix(at, "/dev/tcp/") || strings.HasPrefix(at, "/dev/udp/") {
		p.addExtra().stricter = append(p.addExtra().stricter, action.Join("remote", p.Text))
	}
	p.Action = action.Join(tool, at)
	return p
}

func isDescriptor(s string) bool {
	s = strings.TrimSuffix(s, "-")
	return strings.Trim(s, "0123456789") == ""
}

// isStream reports whether a path is one of the streams that every process has.
func isStream(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full":
		return true
	}
	return strings.HasPrefix(p, "/dev/fd/") && isDescriptor(p[len("/dev/fd/"):])
}
