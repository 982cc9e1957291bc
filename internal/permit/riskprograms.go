package permit

import (
	"path"
	"slices"
	"strings"

	"chorus/internal/permit/shell"
)

// programSet is a set of program names, separated by spaces.
type programSet string

func (s programSet) has(name string) bool { return slices.Contains(strings.Fields(string(s)), name) }

// What programs are for, as far as it matters to people who are asked. Options that write
// or start something have parts of their own, so find counts as a reader here. Nothing is
// known about programs that are in none of these sets.
const (
	readingPrograms = programSet(`ls cat head tail wc grep egrep fgrep zgrep rg ag ack find fd tree file stat du df pwd ps free uptime which whereis type sort uniq cut
		tr nl tac rev fold column paste join comm diff cmp md5sum sha1sum sha256sum sha512sum cksum xxd od hexdump strings basename dirname realpath readlink jq yq
		less more sed awk gawk mawk test [ [[ lsof lsblk nproc getconf locale gofmt staticcheck zcat xzcat bat exa eza tokei cloc`)
	printingPrograms = programSet(`echo printf date cal whoami id groups hostname uname seq expr man help history env printenv arch tty yes`)
	waitingPrograms  = programSet(`sleep wait`)
	shellPrograms    = programSet(`true false : cd pushd popd set export unset`) // at most they change their own shell
	writingPrograms  = programSet(`touch mkdir cp mv ln tee install chmod chown chgrp patch dd tar unzip zip gzip gunzip bzip2 xz split csplit mktemp prettier rustfmt black goimports`)
	deletingPrograms = programSet(`rm rmdir unlink shred truncate srm trash wipe`)
	codePrograms     = programSet(`go make cargo npm pnpm yarn bun node deno python python2 python3 ruby perl php lua java javac mvn gradle gradlew pytest tox nox coverage behave jest vitest mocha ava c8 nyc phpunit prove
		dotnet cmake ninja meson just rake bundle rspec gcc g++ cc c++ clang clang++ rustc swift tsc bash sh zsh dash ksh fish source . eval exec xargs nix bazel ctest`)
	networkPrograms = programSet(`curl wget nc ncat netcat telnet ftp ping dig nslookup host traceroute whois http https xh httpie lynx w3m yt-dlp gh glab`)
	remotePrograms  = programSet(`ssh scp sftp rsync mosh aws gcloud az kubectl helm terraform tofu ansible ansible-playbook doctl flyctl fly heroku vercel netlify psql mysql mongosh redis-cli`)
	rightsPrograms  = programSet(`sudo doas su runuser pkexec`)
	machinePrograms = programSet(`systemctl service reboot shutdown halt poweroff init mount umount useradd userdel usermod groupadd passwd chpasswd visudo crontab at iptables nft ufw
		ip ifconfig route sysctl modprobe insmod rmmod apt apt-get dpkg dnf yum rpm pacman apk zypper snap flatpak brew port launchctl`)
	endingPrograms    = programSet(`kill pkill killall`)
	containerPrograms = programSet(`docker podman nerdctl docker-compose`)
)

// Subcommands that only report something, by program.
var tellingCommands = map[string]programSet{
	"git":    "status log diff show blame describe rev-parse rev-list ls-files ls-tree cat-file shortlog reflog grep name-rev merge-base show-ref check-ignore version help",
	"go":     "version env list doc help",
	"npm":    "ls list view outdated version help",
	"cargo":  "tree metadata version help",
	"docker": "ps images logs inspect version info",
	"podman": "ps images logs inspect version info",
	"gh":     "version help",
	"pip":    "list show freeze",
	"pip3":   "list show freeze",
}

// Subcommands that fetch programs from elsewhere.
var installingCommands = map[string]programSet{
	"npm": "install i ci add update", "pnpm": "install i add update", "yarn": "install add upgrade", "bun": "install add update", "pip": "install download", "pip3": "install download",
	"uv": "add sync pip", "poetry": "install add update", "gem": "install update", "cargo": "install add update fetch", "go": "get install", "composer": "install require update",
	"docker": "pull build", "podman": "pull build",
}

// command adds what a program does.
func (r *riskReport) command(d Decision) {
	if len(d.Argv) == 0 {
		return
	}
	name, words := path.Base(d.Argv[0]), d.Argv[1:]
	sub := ""
	if at := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") }); at >= 0 {
		sub = words[at]
	}
	switch {
	case tellsOfItself(d.Argv[0], words):
		r.harmless(d, printsOnly)
	case name == "git":
		r.git(d, d.Argv)
	case d.Remote:
		r.add(HighRisk, "changes something on another machine ("+shownPath(name)+")")
	case rightsPrograms.has(name):
		r.add(HighRisk, "runs with the rights of another user ("+name+")")
	case tellingCommands[name].has(sub):
		r.harmless(d, readsOnly)
	case installingCommands[name].has(sub):
		r.add(MediumRisk, "fetches software from the network and installs it")
	case deletingPrograms.has(name):
		r.deletes(name, words)
	case machinePrograms.has(name), setsMachine(name, words):
		r.add(HighRisk, "changes this machine ("+name+")")
	case remotePrograms.has(name):
		r.add(HighRisk, "works on another machine ("+name+")")
	case containerPrograms.has(name):
		r.add(HighRisk, "starts or changes containers, which may reach the whole machine")
	case networkPrograms.has(name):
		r.add(MediumRisk, "reaches the network ("+name+")")
	case endingPrograms.has(name):
		r.add(MediumRisk, "ends processes")
	case writingPrograms.has(name):
		r.changes(words)
	case printingPrograms.has(name):
		r.harmless(d, printsOnly)
	case waitingPrograms.has(name):
		r.harmless(d, waitsOnly)
	case shellPrograms.has(name):
		r.harmless(d, changesNothing)
	case readingPrograms.has(name):
		r.readsAll(d, words)
	case codePrograms.has(name) || strings.Contains(d.Argv[0], "/"):
		r.add(MediumRisk, "runs code that is not shown here ("+shownPath(strings.TrimSpace(d.Argv[0]+" "+sub))+")")
	case d.Opaque:
		r.unknown(d)
	case d.Kind == shell.KindWrapper: // the parts it starts speak for themselves
	default:
		r.add(MediumRisk, "starts the program "+shownPath(name))
	}
}

// verbPrograms take a subcommand such as "help" or "version". For other
// programs "help" is a file or a target of the workspace.
const verbPrograms = programSet(`git go npm pnpm yarn cargo docker podman kubectl helm terraform tofu gh glab pip pip3 uv poetry aws gcloud az systemctl rustup nix brew`)

// tellsOfItself reports whether a command only prints its version or its help.
// A program of the workspace may do anything instead.
func tellsOfItself(program string, words []string) bool {
	if len(words) != 1 || strings.Contains(program, "/") {
		return false
	}
	switch words[0] {
	case "--version", "-V", "--help", "-version":
		return true
	case "version", "help":
		return verbPrograms.has(program)
	}
	return false
}

// setsMachine reports whether a program that usually prints the time or the machine's name sets it here.
func setsMachine(name string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		switch name {
		case "date":
			return strings.HasPrefix(w, "--s") || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "s") && !strings.ContainsAny(w, "dfrI")
		case "hostname":
			return !strings.HasPrefix(w, "-") || w == "-b" || w == "-F" || strings.HasPrefix(w, "--file")
		}
		return false
	})
}

// deletes adds files that are removed.
func (r *riskReport) deletes(name string, words []string) {
	where, much := "", name == "shred" || name == "wipe" || name == "srm"
	for _, w := range words {
		switch {
		case w == "--recursive", strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rR"):
			much = true
		case !strings.HasPrefix(w, "-") && r.where(w) == placeOutside:
			where = w
		}
	}
	switch {
	case where != "":
		r.add(HighRisk, "deletes outside of the workspace ("+shownPath(where)+")")
	case much:
		r.add(HighRisk, "deletes whole folders, which cannot be undone")
	default:
		r.add(MediumRisk, "deletes files in the workspace")
	}
}

// changes adds the file arguments of a program that writes.
func (r *riskReport) changes(words []string) {
	for _, w := range words {
		if !strings.HasPrefix(w, "-") && (r.where(w) == placeOutside || inGitDir(w)) {
			r.writes(w)
			return
		}
	}
	r.add(MediumRisk, "changes files in the workspace")
}

// readsAll adds the file arguments of a program that reads.
func (r *riskReport) readsAll(d Decision, words []string) {
	r.harmless(d, readsOnly)
	for _, w := range words {
		if !strings.HasPrefix(w, "-") && (strings.ContainsAny(w, "/~") || holdsSecrets(w)) {
			r.reads(w)
		}
	}
}

// git adds what a git command does.
func (r *riskReport) git(d Decision, argv []string) {
	words := argv[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") { // global options of git
		n := 1
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}, words[0]) {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	if len(words) == 0 {
		r.harmless(d, printsOnly)
		return
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(options, w) })
	}
	switch sub := words[0]; {
	case sub == "push" && (has("-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d") || slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "+") })):
		r.add(HighRisk, "overwrites what is in another repository, for everybody who uses it")
	case sub == "push" || sub == "merge_request":
		r.add(HighRisk, "sends commits to another repository, where others see them")
	case sub == "fetch" || sub == "pull" || sub == "clone" || sub == "ls-remote" || sub == "submodule" || sub == "remote" && has("update", "show"):
		r.add(MediumRisk, "reaches the network (git "+sub+")")
	case sub == "clean", sub == "reset" && has("--hard"), sub == "filter-branch", sub == "gc", sub == "branch" && has("-D"), sub == "stash" && has("drop", "clear"):
		r.add(HighRisk, "throws away work that was not committed, or commits (git "+sub+")")
	case sub == "config":
		r.add(MediumRisk, "changes settings of git, which decide what programs it starts")
	case tellingCommands["git"].has(sub):
		r.harmless(d, readsOnly)
	default:
		r.add(MediumRisk, "changes the repository (git "+shownPath(sub)+")")
	}
}
