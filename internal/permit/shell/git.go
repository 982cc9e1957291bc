package shell

import (
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// gitCommands are git's own. Any other word may be an alias, which may run anything.
var gitCommands = strings.Fields(`add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore
check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph commit-tree config
count-objects credential describe diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack
filter-branch fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep gui hash-object help hook http-fetch http-push
imap-send index-pack init init-db instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge
merge-base merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes p4 pack-objects pack-refs
patch-id prune pull push range-diff read-tree rebase receive-pack reflog remote repack replace request-pull rerere reset restore rev-list
rev-parse revert rm send-email send-pack shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace
submodule subtree svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-pack var
verify-commit verify-pack verify-tag version whatchanged worktree write-tree`)

// gitSafeConfig are keys of git -c that start nothing.
var gitSafeConfig = []string{
	"user.name", "user.email", "color.", "core.quotepath", "commit.gpgsign", "tag.gpgsign", "init.defaultbranch", "advice.", "log.",
	"diff.renames", "diff.algorithm", "status.", "push.default", "pull.rebase", "pull.ff", "merge.ff", "core.autocrlf", "gc.auto",
	"protocol.version", "fetch.prune", "column.", "core.abbrev", "safe.directory",
}

// git gives a git command the name of the git tool too, without the options before the
// subcommand.
func (w *walker) git(p *Part, words []word) {
	rest := w.gitGlobal(p, words[1:])
	if len(rest) == 0 {
		return
	}
	if !rest[0].known {
		p.opaque("the git command is not known before it runs")
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("git", ""), action.Join("remote", ""))
		return
	}
	also := p.addExtra()
	also.gitWords = rest
	detail := text(rest)
	also.stricter = append(also.stricter, action.Join("git", detail))
	if len(rest) < len(words)-1 {
		also.deny = append(also.deny, action.Join("bash", "git "+detail))
	}
	if GitChangesRemote(argv(nil, rest)) {
		also.stricter = append(also.stricter, action.Join("remote", "git "+detail))
	}
	sub := rest[0].value
	if !IsGitCommand(sub) && sub != "--version" && sub != "--help" {
		p.opaque("git " + sub + " may be an alias")
	}
	w.gitRuns(p, sub, rest[1:])
}

// gitGlobal skips git's global options.
func (w *walker) gitGlobal(p *Part, words []word) []word {
	for i := 0; i < len(words); i++ {
		v := words[i].value
		if !words[i].known && words[i].split {
			return words[i:]
		}
		if !strings.HasPrefix(v, "-") || v == "--version" || v == "--help" {
			return words[i:]
		}
		name, value, has := strings.Cut(v, "=")
		switch name {
		case "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source":
			if !has {
				i++
			}
			if name == "--git-dir" || name == "-C" && i < len(words) && strings.HasPrefix(words[i].value, "/") {
				p.opaque("another repository's configuration")
			}
		case "-c", "--config-env":
			if !has && i+1 < len(words) {
				i++
				value = words[i].value
			}
			key, _, _ := strings.Cut(strings.ToLower(value), "=")
			if !slices.ContainsFunc(gitSafeConfig, func(s string) bool { return key == s || strings.HasSuffix(s, ".") && strings.HasPrefix(key, s) }) {
				p.opaque("git -c may start programs")
				w.gitConfigured(p, value)
			}
		case "--exec-path":
			if has {
				p.opaque("git --exec-path changes what runs")
			}
		}
	}
	return nil
}

// gitConfigured adds the command that a configuration of git -c would run.
func (w *walker) gitConfigured(p *Part, setting string) {
	key, value, ok := strings.Cut(setting, "=")
	if !ok || value == "" || !gitConfigRuns(strings.ToLower(key)) {
		return
	}
	code, shell := strings.CutPrefix(value, "!")
	if !shell && strings.HasPrefix(strings.ToLower(key), "alias.") {
		code = "git " + code
	}
	before := len(p.Children)
	w.nested(p, code)
	markGuess(p.Children[before:])
}

// gitRuns adds what git commands that start other commands would run.
func (w *walker) gitRuns(p *Part, sub string, args []word) {
	switch sub {
	case "submodule", "bisect":
		verb := map[string]string{"submodule": "foreach", "bisect": "run"}[sub]
		if i := slices.IndexFunc(args, func(x word) bool { return x.value == verb }); i >= 0 {
			rest := afterOptions(args[i+1:])
			if sub == "bisect" {
				w.child(p, rest, nil)
			} else {
				w.joined(p, rest)
			}
		}
	case "rebase":
		for i, x := range args {
			code, ok := strings.CutPrefix(x.value, "--exec=")
			known := x.known
			if (x.value == "-x" || x.value == "--exec") && i+1 < len(args) {
				code, ok, known = args[i+1].value, true, args[i+1].known
			}
			if ok && !known {
				p.opaque("a command that is not known before it runs")
			} else if ok {
				w.nested(p, code)
			}
		}
	case "config":
		for _, x := range args {
			if gitConfigRuns(strings.ToLower(x.value)) {
				p.opaque("git config that starts programs later")
			}
		}
	case "filter-branch", "difftool", "mergetool", "instaweb", "gui", "citool", "hook", "credential", "send-email", "svn", "p4":
		p.opaque("git " + sub + " starts programs")
	default:
		for _, x := range args {
			for _, o := range []string{"--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--open-files-in-pager", "--template", "-O"} {
				if x.value == o || strings.HasPrefix(x.value, o+"=") || o == "-O" && sub == "grep" && strings.HasPrefix(x.value, o) {
					p.opaque("git " + sub + " " + o + " may start programs")
				}
			}
			if strings.HasPrefix(x.value, "ext::") {
				p.opaque("git's ext transport starts programs")
			}
		}
	}
}

func gitConfigRuns(key string) bool {
	for _, s := range []string{"alias.", "filter.", "difftool.", "mergetool.", "credential.", "include", "url.", "pager.", "remote.", "gpg."} {
		if strings.HasPrefix(key, s) {
			return true
		}
	}
	for _, s := range []string{"core.hookspath", "core.fsmonitor", "core.sshcommand", "core.pager", "core.editor", "core.askpass",
		"core.gitproxy", "core.attributesfile", "core.worktree", "diff.external", "sequence.editor", "core.alternaterefscommand", "uploadpack.packobjectshook"} {
		if key == s || strings.HasPrefix(key, s+"=") {
			return true
		}
	}
	return strings.HasSuffix(key, ".textconv") || strings.HasSuffix(key, ".command") || strings.HasSuffix(key, ".driver") || strings.HasSuffix(key, ".cmd")
}

// IsGitCommand reports whether a word is one of git's own commands; any other may be an
// alias, which may run anything.
func IsGitCommand(word string) bool { return slices.Contains(gitCommands, word) }

// GitChangesRemote reports whether git with these arguments changes another repository.
func GitChangesRemote(args []string) bool {
	if len(args) == 0 {
		return false
	}
	second := ""
	if len(args) > 1 {
		second = args[1]
	}
	switch args[0] {
	case "push", "send-pack", "http-push", "merge_request", "send-email", "imap-send":
		return true
	case "svn":
		return second == "dcommit" || second == "set-tree" || second == "branch" || second == "tag"
	case "p4":
		return second == "submit"
	case "subtree", "lfs":
		return second == "push"
	}
	return false
}
