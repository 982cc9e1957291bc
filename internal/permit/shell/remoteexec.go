package shell

import (
	"path"
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// remoteExec adds what a program runs on another machine or in a container; it is false for
// other programs. A local rule for the inner command says nothing about other machines, so
// the inner command can only make the verdict stricter: the outer one needs its own rule.
func (w *walker) remoteExec(p *Part, prog string, words []word) bool {
	switch prog {
	case "ssh", "slogin", "autossh", "dbclient":
		w.ssh(p, words)
		return true
	case "docker", "podman", "nerdctl", "docker-compose":
		return w.container(p, prog, words)
	case "kubectl", "oc":
		return w.pod(p, words)
	}
	return false
}

// onOtherMachine gives the parts that f adds; their working directory is not known.
func (w *walker) onOtherMachine(p *Part, f func()) []Part {
	before, here := len(p.Children), w.cwd
	w.cwd = cwd{unknown: true}
	kind := p.Kind
	f()
	p.Kind, w.cwd = kind, here
	return p.Children[before:]
}

const (
	sshValues  = "BbcDEeFIiJLlmOopPQRSWw"
	sshQueries = "VGQ"
)

// ssh treats "ssh [options] host [options] command words".
func (w *walker) ssh(p *Part, words []word) {
	rest, host := words[1:], false
	for len(rest) > 0 {
		x := rest[0]
		v := x.value
		if !x.known && x.split {
			p.opaque("arguments of ssh that are not known before it runs")
			p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
			return
		}
		if v == "--" {
			rest = rest[1:]
			if !host && len(rest) > 0 {
				rest = rest[1:]
			}
			break
		}
		if !strings.HasPrefix(v, "-") || v == "-" {
			if host {
				break
			}
			host = true
			rest = rest[1:]
			continue
		}
		var query bool
		if rest, query = w.sshOption(p, rest); query {
			return
		}
	}
	if len(rest) == 0 {
		p.opaque("a shell on another machine")
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
		return
	}
	got := w.onOtherMachine(p, func() { w.joined(p, rest) })
	if yes, maybe := changesHost(got); yes {
		p.addExtra().stricter = append(p.addExtra().stricter, action.Join("remote", p.Text))
	} else if maybe {
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
	}
	markGuess(got)
	p.liftFile(got)
}

// sshOption skips one option word with its value; query is true when ssh only
// prints something.
func (w *walker) sshOption(p *Part, rest []word) (after []word, query bool) {
	v := rest[0].value
	for j := 1; j < len(v); j++ {
		if strings.IndexByte(sshQueries, v[j]) >= 0 {
			return nil, true
		}
		if strings.IndexByte(sshValues, v[j]) < 0 {
			continue
		}
		value, skip := v[j+1:], 1
		if value == "" && len(rest) > 1 {
			value, skip = rest[1].value, 2
		}
		switch v[j] {
		case 'F':
			p.opaque("another configuration of ssh may start programs")
		case 'o':
			at := max(strings.IndexAny(value, "= "), 0)
			key, code := strings.ToLower(value[:at]), strings.TrimLeft(value[at:], "= ")
			if strings.HasSuffix(key, "command") && key != "remotecommand" || key == "include" || key == "match" {
				p.opaque("ssh -o " + key + " starts programs here")
				before := len(p.Children)
				w.nested(p, code)
				markGuess(p.Children[before:])
			}
		}
		return rest[min(skip, len(rest)):], false
	}
	return rest[1:], false
}

// containerSwitches are the long options without a value; all others have one.
var containerSwitches = []string{
	"--rm", "--detach", "--interactive", "--tty", "--init", "--privileged", "--read-only", "--no-healthcheck", "--oom-kill-disable", "--publish-all",
	"--quiet", "--sig-proxy", "--disable-content-trust", "--no-TTY", "--no-tty", "--no-deps", "--service-ports", "--use-aliases", "--build",
	"--remove-orphans", "--tls", "--tlsverify", "--debug", "--replace", "--latest", "--remote", "--rmi", "--compatibility", "--all-resources", "--help",
}

// container treats docker run, exec and create, also under container or compose.
func (w *walker) container(p *Part, prog string, words []word) bool {
	rest, verb := words[1:], ""
	for verb == "" {
		rest = containerOptions(p, rest, "fpcHl")
		if len(rest) == 0 {
			return false
		}
		if !rest[0].known {
			p.opaque("the " + prog + " command is not known before it runs")
			p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
			return true
		}
		switch v := rest[0].value; v {
		case "run", "exec", "create":
			verb = v
		case "container", "compose":
		default:
			return false
		}
		rest = rest[1:]
	}
	entry := entryPoint(rest)
	rest = containerOptions(p, rest, "aceEhlmpuvwf")
	if len(rest) == 0 {
		return true
	}
	command := rest[1:]
	if entry != nil {
		command = append([]word{*entry}, command...)
	}
	if !rest[0].known && rest[0].split {
		p.opaque("arguments of " + prog + " that are not known before it runs")
	}
	if verb != "exec" && len(command) == 0 {
		p.runsFile(words, len(words)-len(rest), unreadImage)
		return true
	}
	got := w.onOtherMachine(p, func() { w.child(p, command, nil) })
	markGuess(got)
	p.liftFile(got)
	return true
}

func entryPoint(words []word) *word {
	for i := range words {
		if v, ok := strings.CutPrefix(words[i].value, "--entrypoint="); ok {
			x := knownWord(v)
			x.known = words[i].known
			return &x
		}
		if words[i].value == "--entrypoint" && i+1 < len(words) {
			return &words[i+1]
		}
		if !strings.HasPrefix(words[i].value, "-") && (i == 0 || !strings.HasPrefix(words[i-1].value, "-")) {
			return nil
		}
	}
	return nil
}

// containerOptions skips options; short lists the letters that take a value.
func containerOptions(p *Part, rest []word, short string) []word {
	for len(rest) > 0 {
		v := rest[0].value
		if !strings.HasPrefix(v, "-") || v == "-" {
			return rest
		}
		if v == "--" {
			return rest[1:]
		}
		name, value, has := strings.Cut(v, "=")
		takes := strings.HasPrefix(v, "--") && !has && !slices.Contains(containerSwitches, v)
		if !strings.HasPrefix(v, "--") {
			if i := strings.IndexAny(v[1:], short); i >= 0 {
				name, value = "-"+v[i+1:i+2], strings.TrimPrefix(v[i+2:], "=")
				takes = value == ""
			}
		}
		rest = rest[1:]
		if takes && len(rest) > 0 {
			value = rest[0].value
			rest = rest[1:]
		}
		if why := leavesContainer(name, value); why != "" {
			p.opaque(why)
		}
	}
	return nil
}

// leavesContainer says why an option gives a container access to the machine, or "".
func leavesContainer(name, value string) string {
	switch name {
	case "-H", "--host", "--context", "-c":
		if name != "-c" {
			return "another machine's containers"
		}
	case "--privileged", "--cap-add", "--device", "--security-opt":
		return "a container that may reach the whole machine"
	case "--pid", "--ipc", "--userns", "--cgroupns":
		if value == "host" {
			return "a container that may reach the whole machine"
		}
	case "-v", "--volume", "--mount":
		from, _, _ := strings.Cut(value, ":")
		if name == "--mount" {
			from = ""
			for _, f := range strings.Split(value, ",") {
				if k, v, _ := strings.Cut(f, "="); k == "source" || k == "src" {
					from = v
				}
			}
		}
		if isSystemDir(from) || path.IsAbs(from) && strings.HasSuffix(from, ".sock") {
			return "a container that may reach the whole machine"
		}
	}
	return ""
}

// pod treats kubectl exec, run and debug, which always change or enter something on another
// machine.
func (w *walker) pod(p *Part, words []word) bool {
	verb := slices.IndexFunc(words, func(x word) bool {
		return x.value == "exec" || x.value == "run" || x.value == "debug" || x.value == "rsh"
	})
	dashes := slices.IndexFunc(words, func(x word) bool { return x.value == "--" })
	if verb < 0 || dashes >= 0 && dashes < verb || slices.ContainsFunc(words[1:verb], func(x word) bool {
		return slices.Contains(readingVerbs["kubectl"], x.value)
	}) {
		return false
	}
	p.addExtra().stricter = append(p.addExtra().stricter, action.Join("remote", p.Text))
	var rest []word
	if dashes >= 0 {
		rest = words[dashes+1:]
	} else if words[verb].value != "run" {
		// The old form without dashes: the pod, then the command.
		rest = containerOptions(&Part{}, words[verb+1:], "cnfl")
		rest = containerOptions(&Part{}, rest[min(1, len(rest)):], "cnfl")
	}
	if len(rest) == 0 {
		p.opaque("a shell, or an image, on another machine")
		return true
	}
	got := w.onOtherMachine(p, func() { w.child(p, rest, nil) })
	markGuess(got)
	p.liftFile(got)
	return true
}

var (
	// readOnlyPrograms change nothing, whatever their arguments are.
	readOnlyPrograms = strings.Fields(`ls cat head tail grep egrep fgrep rg wc df du ps uptime uname whoami id hostname date printenv which stat file free dmesg ss
netstat echo printf test [ pwd true false sort uniq cut tr md5sum sha1sum sha256sum lsblk lscpu nproc w who last cd : basename dirname readlink realpath diff cmp`)
	changingPrograms = strings.Fields(`rm mv cp mkdir rmdir touch tee chmod chown chgrp ln dd reboot shutdown poweroff halt kill pkill killall apt apt-get yum dnf
apk pacman useradd userdel usermod passwd groupadd truncate install mkfs mount umount iptables nft crontab shred unlink`)
)

// changesHost reports whether commands that run on another machine change it, or may.
func changesHost(parts []Part) (yes, maybe bool) {
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case KindWrite:
			yes = true
		case KindWrapper, KindPlain, KindRead:
			maybe = maybe || p.Opaque
		default:
			prog := program(p.words)
			switch {
			case slices.Contains(changingPrograms, prog):
				yes = true
			case p.Opaque || !slices.Contains(readOnlyPrograms, prog):
				maybe = true
			}
		}
		y, m := changesHost(p.Children)
		yes, maybe = yes || y, maybe || m
	}
	return yes, maybe
}
