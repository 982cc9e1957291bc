package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper describes the options of a program that starts another.
type wrapper struct {
	short string   // short options that take a value
	long  []string // long options that take a value in the next word
	skip  int      // words before the command
	sets  bool     // takes NAME=value before the command
	// raises means that it gives the child more rights: its own text must be allowed too,
	// and the child can only make the verdict stricter.
	raises bool
	// query options make it print something instead of starting anything.
	query string
}

var wrappers = map[string]wrapper{
	"env":     {short: "uCS", long: []string{"--unset", "--chdir", "--split-string"}, sets: true},
	"nohup":   {},
	"nice":    {short: "n", long: []string{"--adjustment"}},
	"ionice":  {short: "cnpPu", long: []string{"--class", "--classdata"}},
	"chrt":    {short: "pTPD", skip: 1},
	"taskset": {skip: 1, short: "c"},
	"timeout": {short: "ks", long: []string{"--kill-after", "--signal"}, skip: 1},
	"time":    {short: "fo", long: []string{"--format", "--output"}},
	"stdbuf":  {short: "ioe", long: []string{"--input", "--output", "--error"}},
	"setsid":  {},
	"xargs": {short: "InPLsdEa", long: []string{
		"--replace", "--max-args", "--max-procs", "--max-lines", "--max-chars", "--delimiter", "--arg-file", "--process-slot-var",
	}},
	"command": {query: "vV"},
	"builtin": {},
	"exec":    {short: "a"},
	"busybox": {},
	"toybox":  {},
	"sudo": {short: "ughpCrtTUDR", long: []string{
		"--user", "--group", "--host", "--prompt", "--close-from", "--role", "--type", "--command-timeout", "--other-user", "--chdir", "--chroot",
	}, sets: true, raises: true, query: "lvKkV"},
	"doas":       {short: "uC", raises: true, query: "L"},
	"pkexec":     {long: []string{"--user"}, raises: true},
	"npx":        {short: "p", long: []string{"--package"}, raises: true},
	"pnpx":       {short: "p", long: []string{"--package"}, raises: true},
	"bunx":       {raises: true},
	"uvx":        {long: []string{"--from", "--with", "--python"}, raises: true},
	"caffeinate": {short: "tw"},
	"unbuffer":   {},
	"chronic":    {},
	"strace":     {short: "eopsSuPIOabX", raises: true},
	"ltrace":     {short: "eopsSulnaAxF", raises: true},
	"chroot":     {skip: 1, long: []string{"--userspec"}, raises: true},
}

// runners are programs with subcommands that are followed by a command.
var runners = map[string][]string{
	"poetry": {"run"}, "uv": {"run"}, "pipx": {"run"}, "bundle": {"exec"}, "npm": {"exec", "x"}, "pnpm": {"exec", "dlx"},
	"yarn": {"exec", "dlx"}, "pipenv": {"run"}, "rye": {"run"}, "hatch": {"run"}, "mise": {"exec", "x"}, "conda": {"run"},
}

// unwrapped adds what a program that starts others would start; it is false for other
// programs.
func (w *walker) unwrapped(p *Part, prog string, words []word, redirs []*syntax.Redirect) bool {
	switch prog {
	case "eval":
		w.evalArgs(p, words[1:])
		return true
	case "trap":
		w.trap(p, words[1:])
		return true
	case "find", "fd", "fdfind":
		w.findExec(p, prog, words)
		return true
	case "watch":
		w.joined(p, afterOptions(words[1:], wrapper{short: "n", long: []string{"--interval"}}))
		return true
	case "su", "runuser":
		w.suCommand(p, words)
		return true
	}
	if subs, ok := runners[prog]; ok {
		return w.runner(p, subs, words)
	}
	spec, ok := wrappers[prog]
	if !ok {
		return false
	}
	w.wrap(p, prog, spec, words, redirs)
	return true
}

func (w *walker) wrap(p *Part, prog string, spec wrapper, words []word, redirs []*syntax.Redirect) {
	rest, query := options(words[1:], spec)
	if query {
		return
	}
	for len(rest) > 0 && spec.sets {
		name, value, ok := strings.Cut(rest[0].value, "=")
		if !ok {
			break // every word with "=" is a variable here, also "BASH_FUNC_x%%=…"
		}
		w.noteData(&rest[0])
		if why := changesPrograms(name, value, rest[0].known); why != "" {
			p.opaque(why)
		}
		rest = rest[1:]
	}
	if prog == "env" {
		rest = w.envSplit(p, words, rest)
	}
	if len(rest) == 0 {
		if prog == "sudo" && shellFlag(words[1:]) {
			p.opaque("an interactive shell")
		}
		return
	}
	if prog == "xargs" {
		rest = w.xargs(p, words, rest)
	}
	if prog == "exec" || prog == "command" || prog == "builtin" {
		// These ignore functions, so the name means the program or builtin.
		saved := w.funcs
		w.funcs = map[string]bool{}
		defer func() { w.funcs = saved }()
	}
	if !spec.raises {
		p.Kind = KindWrapper
		if !rest[0].known {
			p.Kind = KindCommand
		}
		w.child(p, rest, redirs)
		return
	}
	before := len(p.Children)
	w.child(p, rest, redirs)
	markGuess(p.Children[before:])
	p.liftFile(p.Children[before:])
}

// options skips a wrapper's own options and gives the command; query is true if it starts
// none.
func options(words []word, spec wrapper) (rest []word, query bool) {
	i := 0
	for i < len(words) {
		v := words[i].value
		if !words[i].known || !strings.HasPrefix(v, "-") || v == "-" {
			break
		}
		i++
		if v == "--" {
			break
		}
		if strings.HasPrefix(v, "--") {
			if slices.Contains(spec.long, v) {
				i++
			}
			continue
		}
		for j := 1; j < len(v); j++ {
			if strings.IndexByte(spec.query, v[j]) >= 0 {
				return nil, true
			}
			if strings.IndexByte(spec.short, v[j]) >= 0 {
				if j == len(v)-1 {
					i++
				}
				break
			}
		}
	}
	return words[min(i+spec.skip, len(words)):], false
}

func afterOptions(words []word, spec wrapper) []word {
	rest, _ := options(words, spec)
	return rest
}

func shellFlag(words []word) bool {
	for _, x := range words {
		if v := x.value; v == "-s" || v == "-i" || v == "--shell" || v == "--login" {
			return true
		}
	}
	return false
}

// envSplit treats env -S 'command words'.
func (w *walker) envSplit(p *Part, words, rest []word) []word {
	for i, x := range words {
		code, ok := strings.CutPrefix(x.value, "--split-string=")
		switch {
		case ok:
		case strings.HasPrefix(x.value, "-") && !strings.HasPrefix(x.value, "--") && strings.Contains(x.value, "S"):
			if _, code, _ = strings.Cut(x.value, "S"); code == "" && i+1 < len(words) {
				code = words[i+1].value
			}
		case x.value == "--split-string" && i+1 < len(words):
			code = words[i+1].value
		default:
			continue
		}
		p.opaque("env -S")
		w.nested(p, code)
		return nil
	}
	return rest
}

// xargs appends the words that it reads from its input, if the script tells them, or an
// unknown one.
func (w *walker) xargs(p *Part, words, rest []word) []word {
	gap := word{unseen: true, split: true, gaps: oneGap}
	if in := w.printed(); in != nil {
		gap.gaps = &gaps{spans: oneGap.spans, values: []string{*in}}
	}
	for _, x := range words[1 : len(words)-len(rest)] {
		if v := x.value; strings.HasPrefix(v, "-I") || strings.HasPrefix(v, "-i") || strings.HasPrefix(v, "--replace") {
			mark := "{}"
			if len(v) > 2 && !strings.HasPrefix(v, "--") {
				mark = v[2:]
			} else if v == "-I" {
				mark = nextValue(words, v, mark)
			}
			return w.replaced(p, rest, mark, gap)
		}
	}
	return append(slices.Clone(rest), gap)
}

func nextValue(words []word, opt, otherwise string) string {
	for i := range words[:len(words)-1] {
		if words[i].value == opt {
			return words[i+1].value
		}
	}
	return otherwise
}

// replaced puts a gap in place of a marker like {}.
func (w *walker) replaced(p *Part, rest []word, mark string, gap word) []word {
	out := slices.Clone(rest)
	for i := range out {
		if mark == "" || !strings.Contains(out[i].value, mark) {
			continue
		}
		if i == 0 {
			p.opaque("the program comes from the input")
		}
		if out[i].value == mark {
			out[i] = gap
			out[i].value, out[i].text, out[i].unseen = mark, mark, false
			continue
		}
		spans := []Span{}
		for j, s := range strings.Split(out[i].value, mark) {
			if j > 0 {
				spans = append(spans, Span{Gap: true})
			}
			spans = append(spans, Span{Text: s})
		}
		out[i].gaps = &gaps{spans: spans, values: out[i].values()}
		if i > 0 && isShell(program(out)) {
			p.opaque("input becomes part of a script")
		}
	}
	return out
}

// evalArgs adds the script that eval is given as words.
func (w *walker) evalArgs(p *Part, words []word) {
	code := make([]string, len(words))
	for i, x := range words {
		if !x.known && !x.glob {
			p.opaque("eval of text that is not known before it runs")
			if v := x.possibleValues(); len(v) > 0 {
				code[i] = v[0]
				continue
			}
		}
		code[i] = x.value
	}
	if !p.Opaque {
		p.Kind = KindWrapper
	}
	w.nested(p, strings.Join(code, " "))
	if p.Opaque {
		markGuess(p.Children)
	}
}

// joined treats a program that joins its arguments into one script.
func (w *walker) joined(p *Part, words []word) {
	if len(words) == 0 {
		return
	}
	w.evalArgs(p, words)
	p.Kind = KindCommand
}

func (w *walker) trap(p *Part, words []word) {
	if len(words) > 0 && words[0].value == "--" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0].value, "-") {
		p.Kind = KindPlain
		return
	}
	if !words[0].known {
		p.opaque("a trap that is not known before it runs")
		return
	}
	p.Kind = KindPlain
	w.nested(p, words[0].value)
}

func (w *walker) suCommand(p *Part, words []word) {
	for i, x := range words {
		code, ok := strings.CutPrefix(x.value, "--command=")
		if (x.value == "-c" || x.value == "--command") && i+1 < len(words) {
			code, ok = words[i+1].value, words[i+1].known
		}
		if ok {
			before := len(p.Children)
			w.nested(p, code)
			markGuess(p.Children[before:])
			return
		}
	}
	p.opaque("an interactive shell")
}

// runner treats "poetry run CMD" and similar commands. People write rules for the runner, so
// the inner command can only make the verdict stricter.
func (w *walker) runner(p *Part, subs []string, words []word) bool {
	if len(words) < 3 || !slices.Contains(subs, words[1].value) {
		return false
	}
	rest := afterOptions(words[2:], wrapper{})
	before := len(p.Children)
	w.child(p, rest, nil)
	markGuess(p.Children[before:])
	p.liftFile(p.Children[before:])
	return true
}

// findExec treats find -exec, -execdir, -ok, -okdir and fd -x, -X.
func (w *walker) findExec(p *Part, prog string, words []word) {
	starts := []string{"-exec", "-execdir", "-ok", "-okdir"}
	if prog != "find" {
		starts = []string{"-x", "-X", "--exec", "--exec-batch"}
	}
	gap := word{value: "{}", text: "{}", gaps: &gaps{spans: oneGap.spans, values: findRoots(words)}}
	for i := 1; i < len(words); i++ {
		if !words[i].known && words[i].split {
			p.opaque("arguments of find that are not known before it runs")
		}
		if !slices.Contains(starts, words[i].value) {
			continue
		}
		end := i + 1
		for end < len(words) && words[end].value != ";" && words[end].value != "+" {
			end++
		}
		inner := w.replaced(p, words[i+1:end], "{}", gap)
		if prog != "find" && len(inner) == end-i-1 {
			inner = append(inner, gap)
		}
		w.child(p, inner, nil)
		i = end
	}
}

// findRoots are the starting points of a find without any test: -exec gets everything below
// them.
func findRoots(words []word) []string {
	var out []string
	for _, x := range words[1:] {
		if strings.HasPrefix(x.value, "-") || x.value == "!" || x.value == "(" {
			break
		}
		out = append(out, x.possibleValues()...)
	}
	for _, x := range words[1:] {
		if slices.Contains([]string{"-name", "-iname", "-path", "-ipath", "-regex", "-mtime", "-mmin", "-newer", "-size", "-user", "-empty", "-perm"}, x.value) {
			return nil
		}
	}
	return out
}

func isShell(prog string) bool {
	switch prog {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "fish":
		return true
	}
	return false
}

// shellProgram treats sh -c 'code', a script file, and a script on the input.
func (w *walker) shellProgram(p *Part, words []word, redirs []*syntax.Redirect) {
	code, script, found := shellArgs(words[1:])
	switch {
	case found && code != nil:
		if !code.known {
			p.opaque("the script is not known before it runs")
			for _, v := range code.possibleValues() {
				w.nested(p, v)
			}
			markGuess(p.Children)
			return
		}
		if !p.Opaque {
			p.Kind = KindWrapper
		}
		w.nested(p, code.value)
	case script != nil:
		if !script.known || strings.HasPrefix(script.value, "/dev/") || strings.HasPrefix(script.value, "/proc/") {
			p.opaque("the script is not known before it runs")
			break
		}
		at := slices.IndexFunc(words[1:], func(x word) bool { return x.text == script.text })
		p.runsFile(words, at+1, unreadFile)
	default:
		w.shellInput(p, redirs)
	}
}

// shellArgs finds the code of -c, or the script's path.
func shellArgs(words []word) (code, script *word, found bool) {
	c := false
	for i := 0; i < len(words); i++ {
		v := words[i].value
		if !words[i].known && words[i].split {
			return &words[i], nil, true
		}
		if (strings.HasPrefix(v, "-") || strings.HasPrefix(v, "+")) && len(v) > 1 && v != "--" {
			if strings.HasPrefix(v, "--") {
				if v == "--rcfile" || v == "--init-file" {
					return &word{value: v}, nil, true
				}
				continue
			}
			c = c || strings.Contains(v[1:], "c")
			if strings.HasSuffix(v, "o") || strings.HasSuffix(v, "O") {
				i++
			}
			if strings.Contains(v[1:], "s") && !c {
				return nil, nil, false
			}
			continue
		}
		if v == "--" || v == "-" {
			continue
		}
		if c {
			return &words[i], nil, true
		}
		return nil, &words[i], true
	}
	return nil, nil, false
}

// shellInput treats a script that comes from a here-document or a pipe.
func (w *walker) shellInput(p *Part, redirs []*syntax.Redirect) {
	for _, r := range redirs {
		body := r.Hdoc
		if r.Op == syntax.WordHdoc {
			body = r.Word
		}
		if body == nil {
			continue
		}
		in := w.join(w.pieces(body.Parts))
		if in.known || in.glob {
			p.Kind = KindWrapper
			w.nested(p, in.value)
			return
		}
	}
	p.opaque("the script comes from the input")
	if in := w.printed(); in != nil {
		before := len(p.Children)
		w.nested(p, *in)
		markGuess(p.Children[before:])
	}
}

func isName(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
