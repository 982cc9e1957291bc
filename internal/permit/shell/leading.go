package shell

import (
	"path"
	"slices"
	"strings"
)

// verbs maps programs whose first words are subcommands to the number of such words.
var verbs = map[string]int{
	"git": 1, "go": 1, "npm": 1, "pnpm": 1, "yarn": 1, "bun": 1, "cargo": 1, "docker": 1, "podman": 1, "kubectl": 1, "helm": 1, "terraform": 1, "tofu": 1, "make": 1,
	"just": 1, "task": 1, "gh": 2, "glab": 2, "pip": 1, "pip3": 1, "uv": 1, "poetry": 1, "bundle": 1, "rake": 1, "gradle": 1, "gradlew": 1, "mvn": 1, "dotnet": 1,
	"apt": 1, "brew": 1, "systemctl": 1, "aws": 2, "gcloud": 3, "az": 2, "doctl": 2, "rustup": 1, "mix": 1, "composer": 1, "swift": 1, "flutter": 1, "deno": 1, "nix": 1,
}

// longVerbs are followed by one more word that belongs to the subcommand: npm run build.
var longVerbs = []string{"run", "compose", "tool", "remote", "exec", "workspace"}

// neverWidened are programs of which each use deserves its own decision.
var neverWidened = strings.Fields(`rm rmdir shred unlink dd truncate chmod chown chgrp mv ln install tee kill pkill killall sudo doas su runuser pkexec curl wget http
https xh find fd fdfind eval source . exec xargs crontab at reboot shutdown mount umount systemctl iptables nft passwd useradd usermod userdel mkfs trap
nc ncat socat telnet ftp sftp scp rsync gpg openssl env printenv strace ltrace chroot npx pnpx bunx uvx sqlite3 psql mysql sed awk gawk perl alias export set`)

// Leading returns how many words of a command say what it does: the program and its
// subcommands, or an interpreter and its script. It returns 0 if each use of the command
// deserves its own decision, whatever its further arguments are.
func Leading(argv []string) int {
	if len(argv) == 0 {
		return 0
	}
	prog := path.Base(argv[0])
	if yes, _ := changesRemote(prog, knownWords(argv), nil); yes {
		return 0
	}
	row := programs().program(prog)
	interpreted := row != nil && (row.words == wordsScript || row.words == wordsSQL || prog == "deno" || prog == "bun")
	switch {
	case prog == "python" || prog == "python3":
		if len(argv) > 2 && argv[1] == "-m" {
			return 3
		}
		fallthrough
	case interpreted || isShell(prog):
		if len(argv) > 1 && interpreted && row.options[argv[1]].effect == effectOwn {
			return 2
		}
		if len(argv) < 2 || strings.HasPrefix(argv[1], "-") || slices.Contains(neverWidened, prog) {
			return 0
		}
		return 2
	case slices.Contains(neverWidened, prog) || row != nil && row.opens || strings.HasPrefix(prog, "mkfs"):
		return 0
	}
	words, ok := verbs[prog]
	if !ok {
		if startedByPath(knownWords(argv)) {
			return 1
		}
		if row != nil && row.words == wordsCommand || prog == "ssh" {
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
		return 0 // options before the subcommand, or an incomplete subcommand
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
