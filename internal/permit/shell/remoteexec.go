package shell

import (
	"path"
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// onOtherMachine returns the parts that f adds. Their working directory is not known.
func (w *walker) onOtherMachine(p *Part, f func()) []Part {
	before, here := len(p.Children), w.cwd
	w.cwd = cwd{unknown: true}
	kind := p.Kind
	f()
	p.Kind, w.cwd = kind, here
	return p.Children[before:]
}

// ssh handles "ssh [options] host [options] command words".
func (w *walker) ssh(p *Part, rd *reading) {
	if rd.has(effectQuery) {
		return
	}
	if rd.unsure != "" {
		p.opaque("arguments of ssh that are not known before it runs")
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
		return
	}
	rest := rd.rest
	if len(rest) > 0 {
		behind := readOptions(rd.rows, rest[1:], true) // options may also follow the host
		w.optionEffects(p, rd.name, p.words, len(p.words)-len(rest)+1, &behind)
		if rest = behind.rest; behind.has(effectQuery) {
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

// container handles docker run, exec and create, including those under container or compose. What runs
// inside does not affect this machine, so it can only make the verdict stricter.
func (w *walker) container(p *Part, words []word, rd *reading) {
	for i := range rd.outer {
		rd.outer[i].leavesContainer(p)
	}
	rd.leavesContainer(p)
	if len(rd.path) == 0 {
		return
	}
	verb := rd.path[len(rd.path)-1]
	if !slices.Contains([]string{"run", "exec", "create"}, verb) || len(rd.rest) == 0 {
		return
	}
	image, command := rd.rest[0], rd.rest[1:]
	if g := rd.given("--entrypoint"); g != nil && g.has {
		command = append([]word{g.value}, command...)
	}
	if !image.known && image.split {
		p.opaque("arguments of " + rd.name + " that are not known before it runs")
	}
	if verb != "exec" && len(command) == 0 {
		p.runsFile(words, len(words)-len(rd.rest), unreadImage)
		return
	}
	got := w.onOtherMachine(p, func() { w.child(p, command, nil) })
	markGuess(got)
	p.liftFile(got)
}

func (u *usage) leavesContainer(p *Part) {
	for i := range u.options {
		if why := leavesContainer(u.options[i].name, u.options[i].value.value); why != "" {
			p.opaque(why)
		}
	}
}

// leavesContainer returns why an option gives a container access to the machine, or "".
func leavesContainer(name, value string) string {
	switch name {
	case "-H", "--host", "--context", "--url", "--connection":
		return "another machine's containers"
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
			for f := range strings.SplitSeq(value, ",") {
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

// pod handles kubectl exec, run and debug, which always change or enter something on another machine.
func (w *walker) pod(p *Part, rd *reading) {
	if len(rd.operands) == 0 {
		return
	}
	switch rd.operands[0].value {
	case "exec", "run", "debug", "rsh", "attach":
	default:
		return
	}
	p.addExtra().stricter = append(p.addExtra().stricter, action.Join("remote", p.Text))
	rest := rd.rest
	if rd.dashes < 0 && rd.operands[0].value != "run" && len(rd.operands) > 2 {
		rest = rd.words[rd.operands[2].at:] // the old form without dashes: the pod, then the command
	}
	if len(rest) == 0 {
		p.opaque("a shell, or an image, on another machine")
		return
	}
	got := w.onOtherMachine(p, func() { w.child(p, rest, nil) })
	markGuess(got)
	p.liftFile(got)
}

var (
	// readOnlyPrograms change nothing, whatever their arguments are.
	readOnlyPrograms = strings.Fields(`ls cat head tail grep egrep fgrep rg wc df du ps uptime uname whoami id hostname date printenv which stat file free dmesg ss
netstat echo printf test [ pwd true false sort uniq cut tr md5sum sha1sum sha256sum lsblk lscpu nproc w who last cd : basename dirname readlink realpath diff cmp`)
	changingPrograms = strings.Fields(`rm mv cp mkdir rmdir touch tee chmod chown chgrp ln dd reboot shutdown poweroff halt kill pkill killall apt apt-get yum dnf
apk pacman useradd userdel usermod passwd groupadd truncate install mkfs mount umount iptables nft crontab shred unlink`)
)

// changesHost reports whether commands that run on another machine change it, or may change it.
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
