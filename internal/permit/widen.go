package permit

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// anyArguments are further words, or none.
const anyArguments = `(?: .*)?`

// wider are the steps beyond the literal, each wider than the one before; none
// where people had better say it themselves.
func wider(d Decision, opt JudgeOptions) []wide {
	tool, detail, ok := Split(d.Action)
	if !ok {
		return nil
	}
	switch {
	case slices.Contains(shellTools, tool):
		return widerCommand(tool, d)
	case slices.Contains(pathTools, tool):
		return widerPath(tool, detail, opt)
	case tool == "git":
		verb, _, _ := strings.Cut(detail, " ")
		if remoteGit(strings.Fields(detail)) || !slices.Contains(gitCommands, verb) {
			return nil
		}
		return []wide{{rules: []string{literal(Action("git", verb)) + anyArguments}, means: "git " + verb + " with any arguments"}}
	case tool == "web_fetch":
		return widerURL(detail)
	case strings.HasPrefix(tool, "mcp__"):
		return []wide{{rules: []string{literal(Action(tool, "")) + ".*"}, means: tool + " with any arguments"}}
	}
	return nil
}

// verbs are programs of which the first word says what they do; the number is how
// many words that takes.
var verbs = map[string]int{
	"git": 1, "go": 1, "npm": 1, "pnpm": 1, "yarn": 1, "bun": 1, "cargo": 1, "docker": 1, "podman": 1, "kubectl": 1, "helm": 1, "terraform": 1, "tofu": 1, "make": 1,
	"just": 1, "task": 1, "gh": 2, "glab": 2, "pip": 1, "pip3": 1, "uv": 1, "poetry": 1, "bundle": 1, "rake": 1, "gradle": 1, "gradlew": 1, "mvn": 1, "dotnet": 1,
	"apt": 1, "brew": 1, "systemctl": 1, "aws": 2, "gcloud": 3, "az": 2, "doctl": 2, "rustup": 1, "mix": 1, "composer": 1, "swift": 1, "flutter": 1, "deno": 1, "nix": 1,
}

// longVerbs take one word more: npm run build.
var longVerbs = []string{"run", "compose", "tool", "remote", "exec", "workspace"}

// sharp are programs whose every use deserves its own answer.
var sharp = strings.Fields(`rm rmdir shred unlink dd truncate chmod chown chgrp mv ln install tee kill pkill killall sudo doas su runuser pkexec curl wget http
https xh find fd fdfind eval source . exec xargs crontab at reboot shutdown mount umount systemctl iptables nft passwd useradd usermod userdel mkfs trap
nc ncat socat telnet ftp sftp scp rsync gpg openssl env printenv strace ltrace chroot npx pnpx bunx uvx sqlite3 psql mysql sed awk gawk perl alias export set`)

// widerCommand widens a simple command by its words.
func widerCommand(tool string, d Decision) []wide {
	argv := d.Argv
	if len(argv) == 0 || d.Kind != KindCommand && d.Kind != KindGuess || d.tight != "" && !strings.HasPrefix(d.tight, "tool:git:") {
		return nil
	}
	if yes, _ := changesRemote(path.Base(argv[0]), knownWords(argv[1:])); yes {
		return nil
	}
	n := leading(argv)
	if n == 0 {
		return nil
	}
	head := text(knownWords(argv[:n]))
	if _, detail, _ := Split(d.Action); detail != head && !strings.HasPrefix(detail, head+" ") {
		return nil // written in a way that a rule for its beginning would not match
	}
	var steps []wide
	if n == 1 && len(argv) > 1 {
		steps = append(steps, sameFolder(tool, d)...)
	}
	all := wide{rules: []string{literal(Action(tool, head)) + anyArguments}, means: head + " with any arguments"}
	if _, detail, ok := Split(d.tight); ok {
		verb, _, _ := strings.Cut(detail, " ")
		if remoteGit(strings.Fields(detail)) {
			return nil
		}
		all.under = []string{literal(Action("git", verb)) + anyArguments}
	}
	return append(steps, all)
}

// leading is how many words of a command say what it does: the program and its
// verbs, or an interpreter and its script. 0 means it is not widened.
func leading(argv []string) int {
	prog := path.Base(argv[0])
	_, interpreted := lookInterpreter(prog)
	switch {
	case prog == "python" || prog == "python3":
		if len(argv) > 2 && argv[1] == "-m" {
			return 3
		}
		fallthrough
	case interpreted || isShell(prog):
		if len(argv) < 2 || strings.HasPrefix(argv[1], "-") || slices.Contains(sharp, prog) {
			return 0
		}
		return 2
	case slices.Contains(sharp, prog) || launchers[prog] || strings.HasPrefix(prog, "mkfs"):
		return 0
	}
	words, ok := verbs[prog]
	if !ok {
		if startedByPath(knownWords(argv)) {
			return 1
		}
		if _, elsewhere := wrappers[prog]; elsewhere || prog == "ssh" {
			return 0
		}
		return 1
	}
	n := 1
	for n < len(argv) && n <= words && isVerb(argv[n]) {
		if slices.Contains(longVerbs, argv[n]) {
			words++
		}
		n++
	}
	if n == 1 || n <= words && n < len(argv) {
		return 0 // options before the verb, or half of one
	}
	if slices.Contains([]string{"docker", "podman", "kubectl"}, prog) && slices.ContainsFunc(argv[1:n], func(v string) bool {
		return v == "run" || v == "exec" || v == "create" || v == "debug"
	}) {
		return 0
	}
	return n
}

func isVerb(s string) bool {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_:-") == ""
}

// sameFolder is the command with another file of the same folder, where its last
// word names one.
func sameFolder(tool string, d Decision) []wide {
	last := d.Argv[len(d.Argv)-1]
	dir := path.Dir(last)
	_, detail, _ := Split(d.Action)
	if !strings.Contains(last, "/") || strings.HasPrefix(last, "-") || !ownFolder(dir) || quote(last) != last || !strings.HasSuffix(detail, " "+last) {
		return nil
	}
	head := strings.TrimSuffix(detail, path.Base(last))
	return []wide{{rules: []string{literal(Action(tool, head)) + `[^/\s'"$` + "`" + `*?\[{~.\\][^/\s'"$` + "`" + `*?\[{~\\]*`}, means: strings.TrimSuffix(detail, last) + "a file in " + dir}}
}

// ownFolder says whether a folder is an ordinary one below where the command runs.
func ownFolder(dir string) bool {
	if path.IsAbs(dir) || strings.HasPrefix(dir, "~") {
		return false
	}
	for _, elem := range strings.Split(path.Clean(dir), "/") {
		if strings.HasPrefix(elem, ".") && elem != "." {
			return false
		}
	}
	return true
}

// widerPath widens to the folder, then to what lies below it. What git runs by
// itself is never in it.
func widerPath(tool, detail string, opt JudgeOptions) []wide {
	dir := path.Dir(detail)
	if !ownFolder(dir) || opt.touchesHome(dir, true) {
		return nil
	}
	if dir == "." {
		return []wide{{rules: []string{literal(Action(tool, "")) + plainOutset}, means: tool + " files of the workspace's own folder"}}
	}
	in := literal(Action(tool, dir+"/")) + plain
	return []wide{
		{rules: []string{in}, means: tool + " files in " + dir},
		{rules: []string{in + `(?:/` + plain + `)*`}, means: tool + " files in " + dir + " and below"},
	}
}

// widerURL widens to the host.
func widerURL(detail string) []wide {
	u, err := url.Parse(detail)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") || !strings.HasPrefix(detail, u.Scheme+"://"+u.Host) {
		return nil
	}
	return []wide{{rules: []string{literal(Action("web_fetch", u.Scheme+"://"+u.Host)) + `(?:[/?#].*)?`}, means: "any page of " + u.Host}}
}
