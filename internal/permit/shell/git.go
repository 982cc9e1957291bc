package shell

import (
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// git also gives a git command its name under the git tool, without the options before the subcommand.
func (w *walker) git(p *Part, words []word, rd *reading) {
	if rd.lost {
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("git", ""))
		return
	}
	if len(rd.path) == 0 {
		return
	}
	at := 1 + rd.outer[0].operands[0].at
	rest := words[at:]
	also := p.addExtra()
	also.gitWords = rest
	detail := text(rest)
	also.stricter = append(also.stricter, action.Join("git", detail))
	if at > 1 {
		also.deny = append(also.deny, action.Join("bash", "git "+detail))
	}
	if GitChangesRemote(argv(nil, rest)) {
		also.stricter = append(also.stricter, action.Join("remote", "git "+detail))
	}
	sub := rd.path[0]
	if !IsGitCommand(sub) {
		p.opaque("git " + sub + " may be an alias")
	}
	for _, x := range rest[1:] {
		if strings.HasPrefix(x.value, "ext::") {
			p.opaque("git's ext transport starts programs")
		}
		if sub == "config" && gitConfigRuns(strings.ToLower(x.value)) {
			p.opaque("git config that starts programs later")
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

// IsGitCommand reports whether a word is one of git's own commands. Any
// other word may be an alias, which may run anything.
func IsGitCommand(word string) bool { return slices.Contains(programs().program("git").commands, word) }

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
