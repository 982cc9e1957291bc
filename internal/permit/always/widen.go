package always

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
)

// anyArguments matches further words, or none.
const anyArguments = `(?: .*)?`

// wider returns the steps beyond the literal one, each wider than the one before. It
// returns none where people had better write the rule themselves.
func wider(d permit.Decision, opt permit.JudgeOptions) []step {
	tool, detail, ok := action.Split(d.Action)
	if !ok {
		return nil
	}
	switch {
	case action.IsShell(tool):
		return widerCommand(tool, d)
	case action.IsPath(tool):
		return widerPath(tool, detail, opt)
	case tool == "git":
		verb, _, _ := strings.Cut(detail, " ")
		if shell.GitChangesRemote(strings.Fields(detail)) || !shell.IsGitCommand(verb) {
			return nil
		}
		return []step{{rules: []string{literal(action.Join("git", verb)) + anyArguments}, means: "git " + verb + " with any arguments"}}
	case tool == "web_fetch":
		return widerURL(detail)
	case strings.HasPrefix(tool, "mcp__"):
		return []step{{rules: []string{literal(action.Join(tool, "")) + ".*"}, means: tool + " with any arguments"}}
	}
	return nil
}

// widerCommand widens a simple command by its words.
func widerCommand(tool string, d permit.Decision) []step {
	argv := d.Argv
	if len(argv) == 0 || d.Kind != shell.KindCommand && d.Kind != shell.KindGuess || d.Stricter != "" && !strings.HasPrefix(d.Stricter, "tool:git:") {
		return nil
	}
	n := shell.Leading(argv)
	if n == 0 {
		return nil
	}
	head := shell.Join(argv[:n])
	if _, detail, _ := action.Split(d.Action); detail != head && !strings.HasPrefix(detail, head+" ") {
		return nil // a rule for its first words would not match the way it is written
	}
	var steps []step
	if n == 1 && len(argv) > 1 {
		steps = append(steps, sameFolder(tool, d)...)
	}
	all := step{rules: []string{literal(action.Join(tool, head)) + anyArguments}, means: head + " with any arguments"}
	if _, detail, ok := action.Split(d.Stricter); ok {
		verb, _, _ := strings.Cut(detail, " ")
		if shell.GitChangesRemote(strings.Fields(detail)) {
			return nil
		}
		all.stricter = []string{literal(action.Join("git", verb)) + anyArguments}
	}
	return append(steps, all)
}

// sameFolder widens a command whose last word is a file to other files of the same folder.
func sameFolder(tool string, d permit.Decision) []step {
	last := d.Argv[len(d.Argv)-1]
	dir := path.Dir(last)
	_, detail, _ := action.Split(d.Action)
	if !strings.Contains(last, "/") || strings.HasPrefix(last, "-") || !ownFolder(dir) || shell.Join([]string{last}) != last || !strings.HasSuffix(detail, " "+last) {
		return nil
	}
	head := strings.TrimSuffix(detail, path.Base(last))
	return []step{{rules: []string{literal(action.Join(tool, head)) + `[^/\s'"$` + "`" + `*?\[{~.\\][^/\s'"$` + "`" + `*?\[{~\\]*`}, means: strings.TrimSuffix(detail, last) + "a file in " + dir}}
}

// ownFolder reports whether a folder is an ordinary one below the command's working directory.
func ownFolder(dir string) bool {
	if path.IsAbs(dir) || strings.HasPrefix(dir, "~") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(path.Clean(dir), "/"), func(elem string) bool {
		return strings.HasPrefix(elem, ".") && elem != "."
	})
}

// widerPath widens to the folder, then to everything below it, but never to files that git runs by itself.
func widerPath(tool, detail string, opt permit.JudgeOptions) []step {
	dir := path.Dir(detail)
	if !ownFolder(dir) || opt.Place().TouchesHome(dir, true) {
		return nil
	}
	if dir == "." {
		return []step{{rules: []string{literal(action.Join(tool, "")) + permit.FirstNamePattern}, means: tool + " files directly in the workspace"}}
	}
	in := literal(action.Join(tool, dir+"/")) + permit.NamePattern
	return []step{
		{rules: []string{in}, means: tool + " files in " + dir},
		{rules: []string{in + `(?:/` + permit.NamePattern + `)*`}, means: tool + " files in " + dir + " and below"},
	}
}

// widerURL widens to the whole host.
func widerURL(detail string) []step {
	u, err := url.Parse(detail)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") || !strings.HasPrefix(detail, u.Scheme+"://"+u.Host) {
		return nil
	}
	return []step{{rules: []string{literal(action.Join("web_fetch", u.Scheme+"://"+u.Host)) + `(?:[/?#].*)?`}, means: "any page of " + u.Host}}
}
