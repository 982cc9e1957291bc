package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper describes a program that starts another: all its options, since one that is misread moves the place where
// the other's name stands. An option that is not here, also an abbreviated one, makes the command opaque.
type wrapper struct {
	values string   // short options that take a value
	flags  string   // short options that take none
	long   []string // long options that take a value, behind = or in the next word
	bare   []string // long options that take none, or one behind = only
	skip   int      // words before the command
	digits bool     // -5 is an option
	dash   bool     // a single - is an option
	sets   bool     // takes NAME=value before the command
	// raises means that it gives the child more rights: its own text must be allowed too,
	// and the child can only make the verdict stricter.
	raises bool
	// query options make it print something instead of starting anything.
	query string
	// writes are options that name a file to be written, or a program to be started.
	writes string
}

// wrappers are the programs that start another one, as their manuals describe them.
var wrappers = map[string]wrapper{
	"env": {values: "uCS", flags: "i0v", long: []string{"--unset", "--chdir", "--split-string"}, dash: true, sets: true,
		bare: []string{"--ignore-environment", "--null", "--debug", "--block-signal", "--default-signal", "--ignore-signal", "--list-signal-handling"}},
	"nohup":   {},
	"nice":    {values: "n", long: []string{"--adjustment"}, digits: true},
	"ionice":  {values: "cnpPu", flags: "t", long: []string{"--class", "--classdata", "--pid", "--pgid", "--uid"}, bare: []string{"--ignore"}},
	"chrt":    {values: "TPD", flags: "abdfiorRvm", bare: []string{"--batch", "--deadline", "--fifo", "--idle", "--other", "--rr", "--reset-on-fork", "--all-tasks", "--verbose"}, skip: 1, query: "p"},
	"taskset": {flags: "ac", bare: []string{"--all-tasks", "--cpu-list"}, skip: 1, query: "p"},
	"timeout": {values: "ks", flags: "vfp", long: []string{"--kill-after", "--signal"}, bare: []string{"--foreground", "--preserve-status", "--verbose"}, skip: 1},
	"time":    {values: "fo", flags: "apqv", long: []string{"--format", "--output"}, bare: []string{"--append", "--portability", "--quiet", "--verbose"}, query: "V", writes: "o--output"},
	"stdbuf":  {values: "ioe", long: []string{"--input", "--output", "--error"}},
	"setsid":  {flags: "cfw", bare: []string{"--ctty", "--fork", "--wait"}},
	"xargs": {values: "InPLsdEa", flags: "0rtxpo", long: []string{"--max-args", "--max-procs", "--max-chars", "--delimiter", "--arg-file", "--process-slot-var"},
		bare: []string{"--null", "--no-run-if-empty", "--verbose", "--exit", "--interactive", "--open-tty", "--replace", "--max-lines", "--eof", "--show-limits"}},
	"command": {flags: "p", query: "vV"},
	"builtin": {},
	"exec":    {values: "a", flags: "cl"},
	"busybox": {},
	"toybox":  {},
	"sudo": {values: "ughpCrtTUDR", flags: "AbBEHknNPS", long: []string{
		"--user", "--group", "--host", "--prompt", "--close-from", "--role", "--type", "--command-timeout", "--other-user", "--chdir", "--chroot",
	}, bare: []string{"--askpass", "--background", "--bell", "--preserve-env", "--set-home", "--reset-timestamp", "--non-interactive", "--no-update", "--preserve-groups", "--stdin"},
		sets: true, raises: true, query: "lvKV"},
	"doas":       {values: "uC", flags: "n", raises: true, query: "L"},
	"pkexec":     {long: []string{"--user"}, bare: []string{"--disable-internal-agent", "--keep-cwd"}, raises: true},
	"npx":        {values: "p", flags: "yq", long: []string{"--package"}, bare: []string{"--yes", "--no", "--no-install", "--quiet", "--prefer-offline", "--offline"}, raises: true},
	"pnpx":       {values: "p", flags: "s", long: []string{"--package"}, bare: []string{"--silent"}, raises: true},
	"bunx":       {bare: []string{"--bun", "--silent", "--verbose"}, raises: true},
	"uvx":        {values: "p", flags: "qv", long: []string{"--from", "--with", "--python"}, bare: []string{"--quiet", "--verbose", "--offline", "--isolated", "--refresh"}, raises: true},
	"caffeinate": {values: "tw", flags: "dimsu"},
	"unbuffer":   {flags: "p"},
	"chronic":    {flags: "ev"},
	"ssh-agent":  {values: "aEPt", flags: "csdD", query: "k"},
	"strace":     {values: "aAbeEIoOpPsSuUX", flags: "cCdDfFhiknNqrtTvVwxyYzZ", raises: true, writes: "o"},
	"ltrace":     {values: "aADeFlnopsuwxX", flags: "bcCfhiLrStTV", raises: true, writes: "o"},
	"chroot":     {bare: []string{"--userspec", "--groups", "--skip-chdir"}, skip: 1, raises: true},
}

// watcher is watch, which joins its words into one text for a shell.
var watcher = wrapper{values: "nqs", flags: "bcdegprtwxC", long: []string{"--interval", "--equexit", "--shotsdir"},
	bare: []string{"--beep", "--color", "--no-color", "--differences", "--errexit", "--chgexit", "--precise", "--no-rerun", "--no-title", "--no-wrap", "--exec"}}

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
		rest, _, odd := options(words[1:], watcher)
		w.joined(p, rest)
		p.oddOption(prog, odd)
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
	rest, query, odd := options(words[1:], spec)
	p.oddOption(prog, odd)
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
	if prog == "sudo" && shellFlag(words[1:len(words)-len(rest)]) {
		p.opaque("an interactive shell")
	}
	if len(rest) == 0 {
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

// oddOption makes a command opaque whose options could mean something else than they seem to.
func (p *Part) oddOption(prog, option string) {
	if option != "" {
		p.opaque(option + " of " + prog + " may start a program or write a file")
	}
}

// options skips a wrapper's own options and gives the command. query is true if it starts none; odd is an option that
// is not known, or that writes a file.
func options(words []word, spec wrapper) (rest []word, query bool, odd string) {
	i := 0
	for i < len(words) {
		v := words[i].value
		if !words[i].known || !strings.HasPrefix(v, "-") || v == "-" && !spec.dash {
			break
		}
		i++
		if v == "--" {
			break
		}
		name, _, given := strings.Cut(v, "=")
		switch {
		case v == "-" || slices.Contains([]string{"--help", "--version"}, v):
			continue
		case strings.HasPrefix(v, "--"):
			switch {
			case slices.Contains(spec.long, name):
				if !given {
					i++
				}
				if strings.Contains(spec.writes, name) {
					odd = cmp.Or(odd, name)
				}
			case !slices.Contains(spec.bare, name):
				odd = cmp.Or(odd, name)
			}
			continue
		}
		value, asks, strange := spec.letters(v[1:])
		if asks {
			return nil, true, odd
		}
		odd = cmp.Or(odd, strange)
		if value {
			i++
		}
	}
	return words[min(i+spec.skip, len(words)):], false, odd
}

// letters reads short options that stand together. value is true if the value of the last one is the next word.
func (spec wrapper) letters(v string) (value, query bool, odd string) {
	for j := range len(v) {
		c := v[j]
		switch {
		case strings.IndexByte(spec.query, c) >= 0:
			return false, true, odd
		case strings.IndexByte(spec.values, c) >= 0:
			if strings.IndexByte(spec.writes, c) >= 0 {
				odd = cmp.Or(odd, "-"+v[j:j+1])
			}
			return j == len(v)-1, false, odd
		case strings.IndexByte(spec.flags, c) >= 0 || spec.digits && c >= '0' && c <= '9':
		default:
			odd = cmp.Or(odd, "-"+v[j:j+1])
		}
	}
	return false, false, odd
}

// afterOptions is what follows the options of a program that takes none with a value.
func afterOptions(words []word) []word {
	for i, x := range words {
		switch {
		case !x.known || !strings.HasPrefix(x.value, "-") || x.value == "-":
			return words[i:]
		case x.value == "--":
			return words[i+1:]
		}
	}
	return nil
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
	rest := afterOptions(words[2:])
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
