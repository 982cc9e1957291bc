package shell

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/action"
)

// knownProgram handles a command whose program is known.
func (w *walker) knownProgram(p *Part, prog string, words []word, redirs []*syntax.Redirect) {
	r := programs().program(prog)
	var rd *reading
	switch {
	case prog == "eval":
		w.evalArgs(p, words[1:])
	case prog == "trap":
		w.trap(p, words[1:])
	case prog == "." || prog == "source":
		w.sourced(p, words)
	case isShell(prog):
		w.shellProgram(p, words, redirs)
	case prog == "cd" || prog == "pushd" || prog == "popd":
		w.chdir(p, words)
	case isPlain(prog, words):
		p.Kind = KindPlain
	case w.funcs[prog] && !strings.Contains(words[0].value, "/"):
		p.Kind = KindPlain // its body became parts where it was declared
		if w.moves[prog] {
			w.moveTo(cwd{unknown: true})
		}
	case r != nil:
		rd = w.byTable(p, prog, r, words, redirs)
		if r.own && len(r.options) == 0 { // nothing else is known about it: its words may be a command
			w.startsMaybe(p, words[1:])
		}
	default:
		w.startsMaybe(p, words[1:])
	}
	if why := changesNames(prog, words[1:]); why != "" {
		p.opaque(why)
	}
	if prog == "unset" || prog == "enable" || prog == "shopt" || prog == "alias" {
		clear(w.funcs) // from here on, names may mean something else
	}
	if why := setsVariable(prog, words[1:]); why != "" {
		p.opaque(why)
	}
	nameRemote(p, prog, words, rd)
	if rd != nil {
		*w.readings = append(*w.readings, rd)
	}
}

// byTable handles a program that is in the table and returns how its words were read.
func (w *walker) byTable(p *Part, prog string, r *row, words []word, redirs []*syntax.Redirect) *reading {
	rd := w.reading()
	rd.read(prog, r, words)
	if prog != "command" && prog != "builtin" { // a cd behind these moves the script itself
		here, visited := w.cwd, w.visited
		defer func() { w.cwd, w.visited = here, visited }()
	}
	w.workIn(p, rd)
	for i := range rd.outer {
		w.optionEffects(p, prog, words, 1, &rd.outer[i])
		if u := &rd.outer[i]; u.oddAt < u.operands[0].at {
			p.opaque(cmp.Or(u.odd, u.unsure) + " before the subcommand is not an option of " + prog + " that is known here")
		}
	}
	inner := rd.row()
	if inner.input && (w.piped || readsStdin(redirs)) {
		p.opaque(rd.name + " runs what it reads from its input")
	}
	switch {
	case inner.opens && len(words) == 2 && slices.Contains([]string{"--version", "--help", "-V"}, words[1].value):
	case inner.opens:
		p.opaque(rd.name + " starts other programs")
	}
	if inner.maybe {
		w.startsMaybe(p, words[1:])
	}
	if prog == "git" {
		w.git(p, words, rd)
	}
	if rd.lost {
		p.opaque("the " + prog + " command is not known before it runs")
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
		return rd
	}
	w.optionEffects(p, rd.name, words, rd.from, &rd.usage)
	switch prog {
	case "ssh", "slogin", "autossh", "dbclient":
		w.ssh(p, rd)
		return rd
	case "docker", "podman", "nerdctl", "docker-compose":
		w.container(p, words, rd)
		return rd
	case "kubectl", "oc":
		w.pod(p, rd)
		return rd
	case "find", "fd", "fdfind":
		w.find(p, prog, &rd.usage)
		return rd
	case "deno", "bun":
		scriptOrVerb(p, words, rd)
	case "npm", "pnpm", "yarn":
		if len(rd.path) > 0 && strings.HasPrefix(rd.path[0], "ru") && len(rd.operands) > 1 && rd.operands[0].value == "env" {
			p.opaque(rd.name + " env starts what follows it")
		}
	case "curl":
		if slices.ContainsFunc(words, func(x word) bool { return strings.Contains(x.value, "%output{") }) {
			p.opaque("curl --write-out writes a file")
		}
		if slices.ContainsFunc(words, func(x word) bool { return strings.HasPrefix(x.value, "--expand-") }) {
			p.opaque("curl --expand- takes the value of an option from a variable")
		}
	}
	w.operandEffects(p, prog, words, rd, redirs)
	return rd
}

// workIn follows options like git -C, which change where the command works.
func (w *walker) workIn(p *Part, rd *reading) {
	for level := range len(rd.outer) + 1 {
		u := &rd.usage
		if level < len(rd.outer) {
			u = &rd.outer[level]
		}
		for i := range u.options {
			g := &u.options[i]
			if g.spec.effect != effectChdir || !g.has {
				continue
			}
			dir := path.Clean(g.value.value)
			if !g.value.known || g.value.home || path.IsAbs(dir) || dir == ".." || strings.HasPrefix(dir, "../") || w.cwd.unknown {
				p.opaque(rd.name + " " + g.name + " works in another folder")
				w.cwd = cwd{unknown: true}
				return
			}
			var dirs []string
			for _, from := range w.cwd.places() {
				dirs = append(dirs, joinDir(from, dir))
			}
			w.cwd = cwd{dirs: dirs}
		}
	}
}

// operandEffects handles the words that are not options.
func (w *walker) operandEffects(p *Part, prog string, words []word, rd *reading, redirs []*syntax.Redirect) {
	u := &rd.usage
	switch r := rd.row(); r.words {
	case wordsCommand:
		w.wrapped(p, prog, words, u, redirs)
	case wordsShell:
		w.joined(p, u.rest)
	case wordsLogin:
		if !u.has(effectShell) {
			p.opaque("an interactive shell")
		}
	case wordsScript:
		w.interpreter(p, words, rd)
	case wordsSed, wordsAwk:
		w.scripted(p, words, rd)
	case wordsSQL:
		w.database(p, prog, words, u, w.piped || readsStdin(redirs))
	case wordsTar:
		w.tar(p, rd)
	case wordsTarget, wordsOutput:
		if t := u.given("-t", "--target-directory"); t != nil && t.spec.effect == effectTarget {
			break // the option already covers it
		}
		n := len(u.operands)
		switch {
		case prog == "install" && u.given("-d", "--directory") != nil:
			for _, x := range u.operands {
				w.written(p, *x.word, "install makes folders", true)
			}
		case n > 1 && u.given("--parents") != nil && slices.ContainsFunc(u.operands[:n-1], func(x operand) bool { return !x.known || strings.Contains(x.value, "..") }):
			p.opaque(rd.name + " --parents writes where the names of its sources lead")
		case n > 1 && (prog == "scp" || prog == "rsync") && isRemotePath(u.operands[n-1].value):
		case n > 1 && r.loose: // any of the words may be the value of an option
			for _, x := range u.operands[1:] {
				w.written(p, *x.word, rd.name+" writes its last argument", r.words == wordsTarget)
			}
		case n > 1:
			w.written(p, *u.operands[n-1].word, rd.name+" writes its last argument", r.words == wordsTarget)
		}
	case wordsFirst:
		for i, x := range u.operands {
			if i == 0 || r.loose {
				w.written(p, *x.word, rd.name+" writes its first argument", true)
			}
		}
	case wordsWritten:
		for _, x := range u.operands {
			w.written(p, *x.word, rd.name+" writes its arguments", true)
		}
	}
}

// optionEffects handles the options of a command. from is the index of the first option among all words.
func (w *walker) optionEffects(p *Part, name string, words []word, from int, u *usage) {
	for i := range u.options {
		w.optionEffect(p, name, words, from, u, &u.options[i])
	}
	if u.unsure != "" && (u.couldRun() || u.row().words == wordsCommand || u.row().words == wordsScript) {
		p.opaqueUnless(u.unsure+" may become an option of "+name+" that starts a program", "write -- or ./ before it")
	} else if u.unsure != "" && u.couldWrite() {
		w.written(p, word{value: u.unsure, text: u.unsure, gaps: oneGap}, u.unsure+" may become an option of "+name+" that writes a file; write -- or ./ before it", true)
	}
	if u.row().sets && u.row().words != wordsCommand {
		for _, x := range u.operands {
			if key, value, ok := strings.Cut(x.value, "="); ok {
				if why := cmp.Or(changesPrograms(key, value, x.known), makes(key, value)); why != "" {
					p.opaque(why)
				}
				w.suppose(p, value, x.known)
			}
		}
	}
	if u.odd != "" && len(u.row().reads) > 0 && (len(u.operands) == 0 || u.oddAt < u.operands[0].at) {
		p.opaque(u.odd + " before the subcommand is not an option of " + name + " that is known here")
	}
	if u.odd != "" && !u.row().loose {
		p.opaque(u.odd + " is not an option of " + name + " that is known here; it may start a program or write a file")
	}
}

// ordinaryHelpers are programs that other programs are commonly told to start, and that do nothing else.
var ordinaryHelpers = strings.Fields("ssh gzip bzip2 xz zstd pigz pbzip2 lz4 lzop cat less lld mold gold bfd")

func (w *walker) optionEffect(p *Part, name string, words []word, from int, u *usage, g *given) {
	if !g.spec.effect.matters() {
		return
	}
	option := name + " " + g.name
	switch g.spec.effect {
	case effectRun:
		if g.has && g.value.known && slices.Contains(ordinaryHelpers, g.value.value) {
			return
		}
		p.opaque(option + " starts a program")
		w.wouldRun(p, strings.TrimPrefix(g.value.value, "exec="), g.has && g.value.known)
	case effectShell:
		w.optionShell(p, name, g)
	case effectCode:
		p.opaque(option + " runs code that is not read here")
	case effectFile:
		v := g.value.value
		if !g.value.known || v == "-" || strings.HasPrefix(v, "/dev/") || strings.HasPrefix(v, "/proc/") || p.file().at > 0 || !g.has {
			p.opaque(option + " runs a file that is not known before it runs")
			return
		}
		p.runsValue(words, from, g, unreadFile)
	case effectSetting:
		w.setting(p, name, u, g)
	case effectFlags:
		if !g.value.known || !plainFlags(g.value.value) {
			p.opaque(option + " may make a compiler or linker start a program or write a file")
		}
	case effectSet:
		if key, value, ok := strings.Cut(g.value.value, "="); ok {
			if why := cmp.Or(changesPrograms(key, value, g.value.known), loadsOwn(key, value)); why != "" {
				p.opaque(why)
			}
		}
	case effectWrite, effectTarget:
		if code, pipe := strings.CutPrefix(g.value.value, "|"); pipe { // to strace it is a command
			p.opaque(option + " starts a program")
			w.wouldRun(p, code, g.value.known)
		} else if _, file, section := strings.Cut(g.value.value, "="); section && g.name == "--dump-section" && g.value.known {
			w.written(p, knownWord(file), option+" writes a file", false)
		} else if g.has {
			w.written(p, g.value, option+" writes a file", g.spec.effect == effectTarget)
		} else {
			p.opaque(option + " writes a file")
		}
	case effectDelete:
		w.removed(p, option, u)
	case effectEdit:
		if strings.Contains(g.value.value, "/") || g.has && !g.value.known {
			p.opaque(option + " may write a copy anywhere")
		}
		for i, x := range u.operands {
			if u.row().words != wordsSed || i > 0 || u.has(effectScript) || u.has(effectFile) {
				w.written(p, *x.word, option+" changes files", true)
			}
		}
	}
}

// wouldRun adds what a text that a program starts would do, as far as it can
// be read. The parts may be denied but need no rule.
func (w *walker) wouldRun(p *Part, code string, known bool) {
	if !known || code == "" {
		return
	}
	before := len(p.Children)
	w.nested(p, code)
	markGuess(p.Children[before:])
}

// optionShell handles an option whose value is a command for a shell.
func (w *walker) optionShell(p *Part, name string, g *given) {
	if !g.has || !g.value.known {
		p.opaque("a command that is not known before it runs")
		return
	}
	before := len(p.Children)
	w.nested(p, g.value.value)
	if name == "su" || name == "runuser" {
		markGuess(p.Children[before:]) // runs as somebody else: the outer command needs its own rule
	}
}

// setting handles an option like git -c key=value. A key that is not known to be harmless may start programs.
func (w *walker) setting(p *Part, name string, u *usage, g *given) {
	text := strings.TrimSpace(g.value.value)
	at := strings.IndexAny(text, "= \t")
	key, value := text, ""
	if at >= 0 {
		key, value = text[:at], strings.TrimLeft(text[at:], "= \t")
	}
	key = strings.ToLower(key)
	for _, r := range u.rows {
		if g.value.known && slices.ContainsFunc(r.safe, func(s string) bool {
			return key == s || key+"="+value == s || strings.HasSuffix(s, ".") && strings.HasPrefix(key, s)
		}) {
			return
		}
	}
	p.opaque(name + " " + g.name + " " + key + " may start programs")
	if !g.value.known {
		return
	}
	if code, shell := strings.CutPrefix(value, "!"); shell || !strings.HasPrefix(key, "alias.") {
		w.wouldRun(p, code, true)
	} else {
		w.wouldRun(p, "git "+code, true)
	}
}

// plainFlags reports whether compiler or linker flags start and write
// nothing: -s, -w, -X name=value, all=-N -l.
func plainFlags(value string) bool {
	fields := strings.Fields(value)
	for i, f := range fields {
		if i == 0 {
			if pattern, flag, ok := strings.Cut(f, "=-"); ok && !strings.HasPrefix(pattern, "-") {
				f = "-" + flag
			}
		}
		switch f {
		case "-s", "-w", "-N", "-l", "-m", "-m=2", "-m=3", "-S", "-B", "-e", "-X", "-race", "-trimpath", "-c=1":
		default:
			if !strings.HasPrefix(f, "-X=") && (i == 0 || fields[i-1] != "-X") {
				return false
			}
		}
	}
	return true
}

// written adds a file that a program writes. purpose says whether writing it is what the program is for.
func (w *walker) written(p *Part, target word, why string, purpose bool) {
	if target.value == "-" || isStream(target.value) {
		return
	}
	parts := w.redirectParts(KindWrite, ">", target, -1)
	for i := range parts {
		child := &parts[i]
		child.addExtra().derived = why
		child.addExtra().purpose = purpose
		if purpose {
			child.Opaque, child.Why = false, ""
		}
		*w.count++
	}
	p.adopt(parts)
}

// isRemotePath reports whether v has the form host:path, which names no local file.
func isRemotePath(v string) bool {
	host, _, ok := strings.Cut(v, ":")
	return ok && host != "" && !strings.Contains(host, "/")
}

// removed adds what an option removes, as an rm command.
func (w *walker) removed(p *Part, option string, u *usage) {
	targets := u.operands
	if u.row().words == wordsTarget && len(targets) > 0 {
		targets = targets[len(targets)-1:]
	}
	if u.row().single { // find removes what it finds
		targets = []operand{{word: &word{value: "{}", text: "{}", gaps: &gaps{spans: oneGap.spans, values: findRoots(u)}}}}
	}
	rm := []word{knownWord("rm"), knownWord("-r")}
	for _, x := range targets {
		rm = append(rm, *x.word)
	}
	w.derived(p, rm, option+" removes files")
}

// derived adds a command that a part stands for.
func (w *walker) derived(p *Part, words []word, why string) {
	before := len(p.Children)
	w.child(p, words, nil)
	for i := before; i < len(p.Children); i++ {
		p.Children[i].addExtra().derived = why
	}
}

// find handles -exec and -delete of find, and -x of fd.
func (w *walker) find(p *Part, prog string, u *usage) {
	// The paths that find finds begin with its starting point.
	known := !slices.ContainsFunc(u.operands, func(x operand) bool { return !x.known })
	gap := word{value: "{}", text: "{}", gaps: &gaps{spans: oneGap.spans, values: findRoots(u), plain: known && prog == "find"}}
	for i := range u.options {
		g := &u.options[i]
		if g.spec.effect != effectCommand {
			continue
		}
		inner := w.replaced(p, g.command, "{}", gap)
		if prog != "find" && len(inner) > 0 && !slices.ContainsFunc(g.command, func(x word) bool { return strings.Contains(x.value, "{") }) {
			inner = append(inner, gap)
		}
		w.child(p, inner, nil)
	}
}

// findRoots returns the starting points of a find without any test: its
// -exec and -delete get everything below them.
func findRoots(u *usage) []string {
	tests := []string{"-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-mtime", "-mmin", "-newer", "-size", "-user", "-empty", "-perm", "-wholename"}
	for i := range u.options {
		if g := &u.options[i]; slices.Contains(tests, g.name) && !(g.has && strings.Trim(g.value.value, "*?.") == "") {
			return nil
		}
	}
	var out []string
	for _, x := range u.operands {
		if x.value == "!" || x.value == "(" {
			break
		}
		out = append(out, x.possibleValues()...)
	}
	return out
}

// interpreter handles a program that runs a script: a file among its words, or its input.
func (w *walker) interpreter(p *Part, words []word, rd *reading) {
	u := &rd.usage
	if m := slices.IndexFunc(u.options, func(g given) bool { return g.spec.effect == effectModule }); m >= 0 {
		w.module(p, words, rd, &u.options[m])
		return
	}
	if u.has(effectCode) || u.has(effectFile) {
		return // already handled
	}
	if own := slices.IndexFunc(u.options, func(g given) bool { return g.spec.effect == effectOwn }); own >= 0 {
		at := rd.from + u.options[own].at
		p.runs(codeFile{at: at + 1, why: fmt.Sprintf(ownCode, rd.name+" "+words[at].text), runner: true})
		return
	}
	if len(u.operands) == 0 {
		if !u.has(effectQuery) && u.given("--version", "--help") == nil && !(len(words) == 2 && strings.HasPrefix(words[1].value, "--")) {
			p.opaque(rd.name + " code from the input")
		}
		return
	}
	script := u.operands[0]
	v := script.value
	switch {
	case v == "-":
		p.opaque(rd.name + " code from the input")
	case !script.known && script.split && !script.glob:
		p.opaque("arguments of " + rd.name + " that are not known before it runs")
	case !script.known && !script.glob || strings.HasPrefix(v, "/dev/") || strings.HasPrefix(v, "/proc/"):
		p.opaque("a script that is not known before it runs")
	default:
		p.runsFile(words, rd.from+script.at, unreadFile)
	}
}

// module handles python -m. A module that is not known to be a tool counts as an unread
// file, and a rule must also name modules that run the workspace's code.
func (w *walker) module(p *Part, words []word, rd *reading, g *given) {
	if !g.has || !g.value.known {
		p.opaque("a module that is not known before it runs")
		return
	}
	after := rd.from + g.at + 1
	if !g.inside {
		after++
	}
	module := g.value.value
	name, _, _ := strings.Cut(module, ".")
	python := programs().program("python")
	switch {
	case slices.Contains(python.unsafe, name):
		p.opaque("the module " + name + " runs code that it is given")
		return
	case slices.Contains(python.runners, name):
		p.runsValue(words, rd.from, g, ownCode)
	case !slices.Contains(python.safe, module) && !slices.Contains(python.safe, name):
		p.runsValue(words, rd.from, g, unreadFile)
		return
	}
	if r := programs().row("python " + module); r != nil {
		inner := &reading{usage: readOptions(r.alone, words[after:], false), name: "python -m " + module, all: r.alone, from: after}
		w.optionEffects(p, inner.name, words, inner.from, &inner.usage)
		w.operandEffects(p, "python", words, inner, nil)
		return
	}
	w.startsMaybe(p, append([]word{g.value}, words[after:]...)) // python -m poetry run … is poetry run …
}

// scriptOrVerb handles deno and bun, whose first word is a subcommand or a script.
func scriptOrVerb(p *Part, words []word, rd *reading) {
	if len(rd.path) > 0 && strings.ContainsAny(rd.path[0], "./") {
		p.runsFile(words, rd.from-1, unreadFile)
	}
}

// tar handles the archive that is written, and the folder that an archive is unpacked to.
func (w *walker) tar(p *Part, rd *reading) {
	u := &rd.usage
	extracts := u.given("-x", "--extract", "--get") != nil && u.given("-O", "--to-stdout") == nil
	lists := u.given("-t", "--list", "-d", "--diff", "--compare") != nil
	for i := range u.options {
		switch g := &u.options[i]; g.name {
		case "-f", "--file":
			if isRemotePath(g.value.value) && u.given("--force-local") == nil {
				p.opaque("tar starts a remote shell for an archive on another machine")
			} else if !extracts && !lists {
				w.written(p, g.value, "tar writes the archive", true)
			}
		case "-C", "--directory", "--one-top-level":
			if extracts && g.has {
				w.written(p, g.value, "tar unpacks into that folder", true)
			}
		}
	}
}
