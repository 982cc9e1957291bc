package shell

import (
	"regexp"
	"slices"
	"strings"
)

// isPlain reports whether a command only controls the script. Beside other commands it
// needs no rule.
func isPlain(prog string, words []word) bool {
	switch prog {
	case ":", "true", "false", "exit", "return", "break", "continue", "wait", "shift", "getopts", "umask", "local", "times":
		return true
	case "[", "test":
		return !slices.ContainsFunc(words, func(x word) bool { return x.known && runsWhenEvaluated(x.value) })
	case "set":
		return !slices.ContainsFunc(words[1:], func(x word) bool { return !x.known })
	}
	return false
}

// interpreter says how a program takes code as an argument.
type interpreter struct {
	code  string   // short options whose value is code
	long  []string // the same, long
	takes string   // short options that take another value
}

var interpreters = map[string]interpreter{
	"python": {code: "c", takes: "mWX"}, "python2": {code: "c", takes: "mWX"}, "python3": {code: "c", takes: "mWX"}, "pypy3": {code: "c", takes: "mWX"},
	"perl": {code: "eE", takes: "IMmxiFDC0l"}, "ruby": {code: "e", takes: "IrEFxK"}, "node": {code: "ep", long: []string{"--eval", "--print", "--require", "--import"}, takes: "r"},
	"nodejs": {code: "ep", long: []string{"--eval", "--print"}}, "bun": {code: "ep", long: []string{"--eval", "--print"}}, "deno": {},
	"php": {code: "rBRE"}, "lua": {code: "e", takes: "l"}, "luajit": {code: "e"}, "Rscript": {code: "e"}, "osascript": {code: "e"},
	"tclsh": {}, "expect": {code: "c"}, "ipython": {code: "c"}, "julia": {code: "eE"}, "elixir": {code: "e"}, "ghci": {code: "e"},
	"groovy": {code: "e"}, "scala": {code: "e"}, "sqlite3": {}, "psql": {}, "mysql": {}, "pwsh": {code: "cC"}, "powershell": {code: "cC"},
}

// launchers start other programs in ways that this package does not follow.
var launchers = map[string]bool{
	"parallel": true, "script": true, "screen": true, "tmux": true, "at": true, "batch": true, "crontab": true, "systemd-run": true, "unshare": true, "nsenter": true, "flatpak-spawn": true,
	"firejail": true, "bwrap": true, "entr": true, "watchexec": true, "socat": true, "ncat": true, "dbus-send": true, "gdb": true, "lldb": true, "ld.so": true, "start-stop-daemon": true, "daemonize": true,
	"setpriv": true, "run-parts": true, "fakeroot": true, "proot": true, "sshpass": true, "xdg-open": true, "dtach": true, "mosh": true, "zargs": true, "rlwrap": true, "capsh": true, "faketime": true, "sg": true, "newgrp": true,
	"flock": true, "setarch": true, "linux32": true, "linux64": true, "i386": true, "x86_64": true, "prlimit": true, "choom": true, "numactl": true, "valgrind": true, "perf": true, "xvfb-run": true, "dbus-run-session": true,
	"torify": true, "torsocks": true, "proxychains": true, "proxychains4": true, "chpst": true, "envdir": true, "sem": true, "nix-shell": true, "machinectl": true, "apptainer": true, "singularity": true, "eatmydata": true,
	"catchsegv": true, "cgexec": true, "aa-exec": true, "runcon": true, "compgen": true, "complete": true, "bind": true, "fc": true,
}

// launchingVerbs are subcommands of otherwise harmless programs that run another command
// or open a shell.
var launchingVerbs = map[string][]string{
	"nix": {"run", "shell", "develop"}, "direnv": {"exec"}, "asdf": {"exec"}, "adb": {"shell"}, "lxc": {"exec"}, "incus": {"exec"}, "vagrant": {"ssh"},
	"multipass": {"exec", "shell"}, "op": {"run"}, "aws-vault": {"exec"}, "gcloud": {"ssh"}, "heroku": {"run"}, "fly": {"ssh"}, "flyctl": {"ssh"},
	"minikube": {"ssh"}, "hash": {"-p"}, "distrobox": {"enter"}, "toolbox": {"run"}, "systemctl": {"edit"},
}

// codeOptions are options of common programs that start other programs.
var codeOptions = map[string][]string{
	"tar":   {"--checkpoint-action", "--to-command", "-I", "--use-compress-program", "--info-script", "-F", "--new-volume-script", "--rsh-command"},
	"rsync": {"-e", "--rsh", "--rsync-path"},
	"scp":   {"-S", "-o"}, "sftp": {"-S", "-o"},
	"man": {"-P", "--pager"}, "sort": {"--compress-program"}, "zip": {"-T", "-TT", "--unzip-command"},
	"vim": {"-c", "--cmd", "+"}, "vi": {"-c", "--cmd", "+"}, "nvim": {"-c", "--cmd", "+"}, "ex": {""}, "ed": {""}, "emacs": {"--eval", "-e", "-l", "-f"},
	"go": {"-exec", "-toolexec", "-vettool"}, "make": {"--eval", "-E", "SHELL="}, "gmake": {"--eval", "-E", "SHELL="},
	"curl": {"-K", "--config"}, "wget": {"--use-askpass"}, "nmap": {"--script", "--interactive"}, "tcpdump": {"-z"},
	"split": {"--filter"}, "gcc": {"-wrapper"}, "rg": {"--pre", "--hostname-bin"}, "ripgrep": {"--pre"}, "openssl": {"-engine"},
	"docker": {"-H", "--host"}, "cargo": {"--config"}, "mount": {"-o"}, "pip": {"--python"}, "less": {"+"}, "more": {"+"}, "watch": {"--exec"},
	"fzf": {"--preview", "--bind"}, "bat": {"--pager"}, "delta": {"--pager"}, "ag": {"--pager"}, "ack": {"--pager"},
}

var (
	awkRuns = regexp.MustCompile(`system|getline|\||print[^;}\n]*>|@load|@include`)
	// sedRuns finds the commands e and w of GNU sed, and the flags e and w of its s.
	sedRuns = regexp.MustCompile(`(?:^|[;{}\n0-9$/!]|\b)\s*[eEwW](?:\s|$)|[^a-zA-Z\s][gpiImM0-9]*[ewE][gpiImM0-9]*\s*(?:[;}\n]|$)|[^a-zA-Z\s][gpiImM0-9]*w\s`)
)

// runsCode says why a program's arguments are code, which this package does not read. file
// is the index of the word that names a script, or 0.
func runsCode(prog string, words []word, stdin bool) (why string, file int) {
	args := words[1:]
	if in, ok := lookInterpreter(prog); ok {
		return interpreterCode(in, prog, args, stdin)
	}
	return startsPrograms(prog, args), 0
}

// startsPrograms says why a program that is no interpreter starts others, or "".
func startsPrograms(prog string, args []word) string {
	if verbs, ok := launchingVerbs[prog]; ok {
		for _, x := range args[:min(3, len(args))] {
			if slices.Contains(verbs, x.value) || !x.known {
				return prog + " " + x.value + " starts other programs"
			}
		}
	}
	if launchers[prog] {
		if slices.ContainsFunc(args, func(x word) bool { return x.value == "--version" || x.value == "--help" || x.value == "-V" }) && len(args) == 1 {
			return ""
		}
		return prog + " starts other programs"
	}
	switch prog {
	case "awk", "gawk", "mawk", "nawk":
		for _, x := range args {
			if x.known && awkRuns.MatchString(x.value) {
				return "awk code that starts programs or writes files"
			}
			if x.value == "-f" || strings.HasPrefix(x.value, "--exec") || !x.known && strings.Contains(x.value, "$(") {
				return "awk code that is not known before it runs"
			}
		}
	case "sed", "gsed":
		return sedCode(args)
	case "alias", "enable":
		if len(args) > 0 {
			return prog + " changes what names mean"
		}
	case "mapfile", "readarray":
		if slices.ContainsFunc(args, func(x word) bool { return strings.HasPrefix(x.value, "-C") }) {
			return "a callback"
		}
	case "printf", "read", "let", "unset", "[", "test":
		if slices.ContainsFunc(args, func(x word) bool { return x.known && runsWhenEvaluated(x.value) && strings.Contains(x.value, "[") }) {
			return "quoted code in a subscript"
		}
	}
	for _, x := range args {
		for _, o := range codeOptions[prog] {
			if x.value == o || o == "" || (strings.HasPrefix(o, "--") || strings.HasSuffix(o, "=") || o == "+") && strings.HasPrefix(x.value, o) ||
				len(o) == 2 && o[0] == '-' && strings.HasPrefix(x.value, o) && prog != "vim" && prog != "emacs" && prog != "make" ||
				strings.HasPrefix(x.value, o+"=") {
				return prog + " " + o + " starts programs"
			}
		}
	}
	return ""
}

func lookInterpreter(prog string) (interpreter, bool) {
	if in, ok := interpreters[prog]; ok {
		return in, true
	}
	// python3.12 and similar names
	in, ok := interpreters[strings.TrimRight(prog, "0123456789.")]
	return in, ok
}

// interpreterCode says why an interpreter runs code that is not known: from an argument or
// from its input. If it runs a file, file is the index of the word that names it.
func interpreterCode(in interpreter, prog string, args []word, stdin bool) (why string, file int) {
	switch prog {
	case "deno", "bun":
		return scriptRunner(prog, args)
	case "sqlite3", "psql", "mysql":
		for _, x := range args {
			if dbRuns.MatchString(x.value) || !x.known && !x.glob {
				return prog + " may be told to start programs", 0
			}
		}
	}
	for i := 0; i < len(args); i++ {
		v := args[i].value
		if !args[i].known && args[i].split {
			return "arguments of " + prog + " that are not known before it runs", 0
		}
		if v == "-" {
			return prog + " code from the input", 0
		}
		if !strings.HasPrefix(v, "-") {
			if !args[i].known && !args[i].glob || strings.HasPrefix(v, "/dev/") || strings.HasPrefix(v, "/proc/") {
				return "a script that is not known before it runs", 0
			}
			if in.code == "" && prog != "tclsh" {
				return "", 0 // a database
			}
			return "", i + 1
		}
		if strings.HasPrefix(v, "--") {
			name, _, _ := strings.Cut(v, "=")
			if slices.Contains(in.long, name) {
				return prog + " code", 0
			}
			if v == "--version" || v == "--help" {
				return "", 0
			}
			continue
		}
		for j := 1; j < len(v); j++ {
			if strings.IndexByte(in.code, v[j]) >= 0 {
				return prog + " code", 0
			}
			if strings.IndexByte(in.takes, v[j]) >= 0 {
				if v[j] == 'm' && strings.HasPrefix(prog, "python") {
					return "", 0 // a module with its own arguments
				}
				if j == len(v)-1 {
					i++
				}
				break
			}
			if v[j] == 'V' || v[j] == 'h' || v[j] == 'v' && prog == "node" {
				return "", 0
			}
		}
	}
	if stdin || in.code != "" {
		return prog + " code from the input", 0
	}
	return "", 0
}

// dbRuns finds what makes a database's command line start programs or read more commands.
var dbRuns = regexp.MustCompile(`(?i)\\[!ioe]|\.(?:sh|sy|read|import|load|once|output|excel|edit)|\bsystem\b|\bprogram\b|load_extension|--?(?:cmd|init|file|f)\b`)

// scriptRunner is interpreterCode for deno and bun, whose first word is a subcommand or a
// script.
func scriptRunner(prog string, args []word) (why string, file int) {
	for i, x := range args {
		v := x.value
		switch {
		case v == "eval" || v == "repl" || v == "-e" || v == "-p" || v == "--eval" || v == "--print" || v == "-":
			return prog + " code", 0
		case !x.known && !x.glob:
			return "arguments of " + prog + " that are not known before it runs", 0
		case v == "run" || strings.HasPrefix(v, "-"):
		case strings.ContainsAny(v, "./"):
			return "", i + 1
		default:
			return "", 0 // a subcommand, or a script of the project by its name
		}
	}
	return "", 0
}

func sedCode(args []word) string {
	for i, x := range args {
		if strings.HasPrefix(x.value, "-") && x.value != "-e" {
			if strings.HasPrefix(x.value, "-f") || strings.HasPrefix(x.value, "--file") {
				return "a sed script that is not read here"
			}
			continue
		}
		if x.value == "-e" {
			continue
		}
		if i > 0 && args[i-1].value != "-e" && !strings.HasPrefix(args[i-1].value, "-") {
			continue // a file
		}
		if x.known && sedRuns.MatchString(x.value) {
			return "a sed script that may start programs or write files"
		}
	}
	return ""
}
