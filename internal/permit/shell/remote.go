package shell

import (
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// nameRemote also names a command that changes other machines
// tool:remote:<text>, so that one rule can match all of them.
func nameRemote(p *Part, prog string, words []word, rd *reading) {
	if prog == "git" {
		return
	}
	yes, maybe := changesRemote(prog, words, rd)
	if yes {
		p.addExtra().stricter = append(p.addExtra().stricter, action.Join("remote", prog+strings.TrimPrefix(p.Text, words[0].text)))
	} else if maybe {
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
	}
}

// changesRemote reports whether a command changes other machines, and whether it may, depending on
// its unknown words. rd is how they were read; nil if they were not read yet.
func changesRemote(prog string, words []word, rd *reading) (yes, maybe bool) {
	switch prog {
	case "http", "https", "xh", "xhs", "httpie":
		return httpieSends(words[1:]), hasUnknown(words)
	}
	r := programs().program(prog)
	if r == nil {
		return false, false
	}
	if rd == nil {
		rd = new(reading)
		rd.read(prog, r, words)
	}
	if m := slices.IndexFunc(rd.options, func(g given) bool { return g.spec.effect == effectModule }); m >= 0 && r.words == wordsScript {
		return changesRemote(rd.options[m].value.value, append([]word{rd.options[m].value}, rd.rest...), nil)
	}
	switch {
	case prog == "curl" || prog == "wget" || prog == "wget2" || prog == "lwp-request" || prog == "GET" || prog == "HEAD":
		return rd.sends() || prog == "curl" && slices.ContainsFunc(words, talks), hasUnknown(words)
	case prog == "scp" || prog == "rsync" || prog == "sftp":
		n := len(rd.operands)
		return n > 0 && (isRemotePath(rd.operands[n-1].value) || strings.HasPrefix(rd.operands[n-1].value, "rsync://")), hasUnknown(words)
	case prog == "aws":
		return rd.awsChanges(hasUnknown(words))
	case (prog == "gh" || prog == "glab") && len(rd.operands) > 0 && rd.operands[0].value == "api":
		return rd.apiSends(), hasUnknown(words)
	case len(r.reads) > 0:
		yes, sure := rd.changes(r)
		return yes && sure, !sure || hasUnknown(words)
	case slices.ContainsFunc(rd.all, func(r *row) bool { return len(r.sends) > 0 }):
		return rd.publishes(prog), hasUnknown(words)
	}
	return false, false
}

func hasUnknown(words []word) bool {
	return slices.ContainsFunc(words, func(x word) bool { return !x.known && !x.glob })
}

// verbs returns the words that certainly are subcommands: those before any option that might take the next
// word as its value. sure is false if such an option comes before the first of them.
func (rd *reading) verbs() (out []string, sure bool) {
	out, sure = slices.Clone(rd.path), true
	for i := range rd.outer {
		sure = sure && rd.outer[i].oddAt > rd.outer[i].operands[0].at
	}
	for _, x := range rd.operands {
		if x.at > rd.oddAt || !x.known {
			return out, sure && (len(out) > 0 || x.known)
		}
		out = append(out, x.value)
	}
	return out, sure
}

// queries reports whether the command only prints something, such as its help.
func (rd *reading) queries() bool {
	return rd.has(effectQuery) || slices.ContainsFunc(rd.outer, func(u usage) bool { return u.has(effectQuery) })
}

// changes reports whether the subcommand changes something, for a program whose table row lists
// only subcommands that read. sure is false if the text does not tell.
func (rd *reading) changes(r *row) (yes, sure bool) {
	verbs, sure := rd.verbs()
	if rd.queries() {
		return false, true
	}
	if len(verbs) == 0 {
		return false, rd.oddAt == len(rd.words) && !rd.lost && sure
	}
	if len(r.changes) > 0 {
		for _, v := range verbs {
			if slices.Contains(r.reads, v) || slices.Contains(r.changes, v) {
				return slices.Contains(r.changes, v), sure
			}
		}
		return true, sure
	}
	for _, v := range verbs {
		if !slices.Contains(r.groups, v) {
			return !slices.Contains(r.reads, v), sure
		}
	}
	return false, rd.oddAt == len(rd.words) && sure // a command group alone prints its help
}

// publishes reports whether the subcommand is one of those that change another machine.
func (rd *reading) publishes(prog string) bool {
	var sends []string
	for _, r := range rd.all {
		sends = append(sends, r.sends...)
	}
	if rd.queries() {
		return false
	}
	if rd.has(effectSend) || slices.Contains(sends, "*") {
		return true
	}
	if g := rd.given("--output", "-o"); g != nil && strings.Contains(g.value.value, "type=registry") {
		return true
	}
	verbs := slices.Clone(rd.path)
	for _, x := range rd.operands {
		verbs = append(verbs, x.value)
	}
	most := 3 // later words are for another program: docker run x git push
	if prog == "docker" || prog == "podman" {
		most = 2
	}
	for i, v := range verbs[:min(most, len(verbs))] {
		if !matchesVerb(sends, v) || i > 0 && verbs[i-1] == "run" { // npm run publish is a script of the project
			continue
		}
		return i+1 >= len(verbs) || verbs[i+1] != "ls" && verbs[i+1] != "list" // npm token list reads
	}
	return false
}

// matchesVerb looks up a subcommand in a list that may contain "publish*" and "!publishToMavenLocal*".
func matchesVerb(list []string, verb string) bool {
	found := false
	for _, l := range list {
		pattern, not := strings.CutPrefix(l, "!")
		prefix, open := strings.CutSuffix(pattern, "*")
		if verb == pattern || open && strings.HasPrefix(verb, prefix) {
			if not {
				return false
			}
			found = true
		}
	}
	return found
}

// sends reports whether the command has options that make the program send instead of fetch.
func (u *usage) sends() bool {
	data, get := false, false
	for i := range u.options {
		switch g := &u.options[i]; g.spec.effect {
		case effectSend:
			return true
		case effectMethod:
			if !readingMethod(g.value.value) {
				return true
			}
		case effectData:
			data = true
		case effectGet:
			get = true
		}
	}
	return data && (!get || u.given("--next", "-:") != nil) // each request has its own options
}

func readingMethod(m string) bool {
	switch strings.ToUpper(strings.Trim(m, `"'=`)) {
	case "GET", "HEAD", "OPTIONS":
		return true
	}
	return false
}

// talks reports whether x is an address whose scheme makes curl send text
// from the address or from its input: telnet, gopher or dict.
func talks(x word) bool {
	at := strings.ToLower(x.value)
	return strings.Contains(at, "telnet://") || strings.Contains(at, "gopher://") || strings.Contains(at, "gophers://") || strings.Contains(at, "dict://")
}

func httpieSends(args []word) bool {
	for _, x := range args {
		a := x.value
		switch a {
		case "POST", "PUT", "PATCH", "DELETE":
			return true
		}
		if !strings.HasPrefix(a, "-") && !strings.Contains(a, "://") && !strings.Contains(a, "==") && (strings.Contains(a, "=") || strings.Contains(a, "@")) {
			return true
		}
	}
	return false
}

// apiSends handles gh api and glab api, where a field means POST unless a method is given.
func (rd *reading) apiSends() bool {
	if slices.ContainsFunc(rd.operands, func(x operand) bool { return x.value == "graphql" }) {
		return slices.ContainsFunc(rd.words, func(x word) bool { return strings.Contains(x.value, "mutation") || strings.Contains(x.value, "@") })
	}
	if g := rd.given("-X", "--method"); g != nil {
		return !readingMethod(g.value.value)
	}
	return rd.has(effectData)
}

// awsReads are prefixes of operations that only read.
var awsReads = strings.Fields("describe list get help ls wait lookup search batch-get query scan head validate filter-log tail presign configure")

// awsChanges handles aws, whose operation is the second word.
func (rd *reading) awsChanges(unknown bool) (yes, maybe bool) {
	verbs, sure := rd.verbs()
	switch {
	case rd.queries() || len(verbs) == 0 && rd.oddAt == len(rd.words):
		return false, unknown
	case !sure || len(verbs) < 2 && rd.oddAt < len(rd.words):
		return false, true
	}
	operation := verbs[min(1, len(verbs)-1)]
	if slices.ContainsFunc(awsReads, func(v string) bool { return operation == v || strings.HasPrefix(operation, v+"-") }) || verbs[0] == "help" || verbs[0] == "configure" {
		return false, unknown
	}
	// Copying from a bucket changes nothing there.
	if verbs[0] == "s3" && (operation == "cp" || operation == "sync") && len(verbs) >= 4 {
		return strings.HasPrefix(verbs[3], "s3://"), unknown
	}
	return true, unknown
}
