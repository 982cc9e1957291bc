package permit

import (
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// homeMark stands for Chorus's own home in a guessed value.
const homeMark = "$CHORUS_HOME"

// systemRoots are directories whose loss is the loss of the machine or of a
// person's files.
var systemRoots = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys",
	"/usr", "/var", "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/var/lib", "/Users", "/System", "/Library", "/Applications", "/Volumes",
	"/mnt", "/media", "/private",
}

var givable = []string{"/home", "/opt", "/srv", "/mnt", "/media", "/run", "/usr/local", "/Volumes"}

var (
	blockDevice = regexp.MustCompile(`^/dev/(?:(?:sd|hd|vd|xvd)[a-z]|nvme[0-9]|mmcblk[0-9]|loop[0-9]|md[0-9]|dm-[0-9]|r?disk[0-9]|mapper/|disk/|mem$|kmem$|port$|nbd[0-9])`)
	// rootGlob is a pattern that names things directly below the root.
	rootGlob = regexp.MustCompile(`^/[^/]*[*?\[][^/]*/?$`)
	personal = regexp.MustCompile(`^/(?:home|Users)/[^/]+$`)
)

// catastrophe says why a part must be refused under every profile, or "".
func catastrophe(p *Part, opt JudgeOptions) string {
	if p.rare != nil && p.rare.doom != "" {
		return p.rare.doom
	}
	j := doom{part: p, opt: opt}
	switch p.Kind {
	case KindRead, KindUnknown:
		return ""
	case KindWrite:
		return j.overwritten(p.words[1:])
	}
	if len(p.words) < 1 {
		return ""
	}
	prog := program(p.words)
	args := p.words[1:]
	switch prog {
	case "rm", "shred", "unlink", "rmdir", "srm", "trash", "wipe", "truncate":
		return j.removed(prog, args)
	case "find":
		if slices.ContainsFunc(args, func(x word) bool { return x.value == "-delete" }) {
			return j.deletedBelow(findRoots(p.words))
		}
	case "chmod", "chown", "chgrp", "chattr", "setfacl":
		if recursive(args) {
			// A home or a mount may well be given to its owner; the system may not.
			args = slices.DeleteFunc(slices.Clone(args), func(x word) bool { return personal.MatchString(x.value) || slices.Contains(givable, x.value) })
			return j.rootish(args, "a recursive "+prog+" on")
		}
	case "mv":
		if len(args) > 1 {
			if why := j.rootish(args[:len(args)-1], "moving away"); why != "" {
				return why
			}
			if why := j.ownHome(args, "moving"); why != "" {
				return why
			}
		}
		return j.overwritten(last(args))
	case "cp", "install", "ln", "rsync", "scp":
		return j.overwritten(last(args))
	case "tee", "sponge", "wipefs", "blkdiscard", "fdisk", "sfdisk", "sgdisk", "gdisk", "parted", "mkswap", "pvcreate", "cryptsetup", "badblocks", "hdparm":
		if prog == "fdisk" && slices.ContainsFunc(args, func(x word) bool { return x.value == "-l" }) {
			return ""
		}
		return j.overwritten(args)
	case "dd":
		for _, x := range args {
			for _, v := range x.possible() {
				if of, ok := strings.CutPrefix(v, "of="); ok {
					if why := j.overwritten([]word{knownHome(of)}); why != "" {
						return why
					}
				}
			}
		}
	}
	if (prog == "mkfs" || strings.HasPrefix(prog, "mkfs.") || prog == "mke2fs" || prog == "newfs") && len(args) > 0 &&
		args[0].value != "--help" && args[0].value != "-V" && args[0].value != "--version" {
		return "making a file system"
	}
	return ""
}

func knownHome(v string) word {
	x := knownWord(v)
	x.home = strings.HasPrefix(v, "~")
	return x
}

func last(words []word) []word {
	if len(words) == 0 {
		return nil
	}
	return words[len(words)-1:]
}

// doom looks at the targets of one part.
type doom struct {
	part *Part
	opt  JudgeOptions
}

// targets are the absolute or home-relative places a word may name.
func (j doom) targets(x *word) iter.Seq[string] {
	return func(yield func(string) bool) {
		if x.known && (x.home || !strings.HasPrefix(x.value, "~")) {
			j.places(x.value, yield) // the everyday case, without making a list of one
			return
		}
		for _, v := range x.possible() {
			if !j.places(v, yield) {
				return
			}
		}
	}
}

// places are those one value names; false: enough were seen.
func (j doom) places(v string, yield func(string) bool) bool {
	v = j.part.cwd.join(v)
	if rest, ok := strings.CutPrefix(v, homeMark); ok && j.opt.Home != "" {
		v = j.opt.Home + rest
	}
	if rest, ok := strings.CutPrefix(v, "~"); ok && j.opt.UserHome != "" && (rest == "" || rest[0] == '/') {
		return yield(v) && yield(j.opt.UserHome+rest)
	}
	return yield(v)
}

// removed judges rm and its like.
func (j doom) removed(prog string, args []word) string {
	if prog == "rm" {
		if slices.ContainsFunc(args, func(x word) bool { return x.value == "--no-preserve-root" }) {
			return "removing the root directory"
		}
		if recursive(args) {
			if why := j.rootish(args, "removing"); why != "" {
				return why
			}
		}
	}
	if why := j.overwritten(args); why != "" {
		return why
	}
	return j.ownHome(args, "removing")
}

func (j doom) rootish(args []word, what string) string {
	for i := range args {
		if strings.HasPrefix(args[i].value, "-") && args[i].known {
			continue
		}
		for v := range j.targets(&args[i]) {
			if isRootish(v) {
				return what + " " + v
			}
		}
	}
	return j.ownHome(args, what)
}

func (j doom) deletedBelow(roots []string) string {
	for _, v := range roots {
		if v = j.part.cwd.join(v); isRootish(v) {
			return "deleting everything below " + v
		}
	}
	return ""
}

// isRootish says whether a path is the root, a home, or a directory the system
// lives in, or everything in one of them.
func isRootish(v string) bool {
	if v == "" {
		return false
	}
	if strings.HasPrefix(v, "~") {
		who, rest, _ := strings.Cut(v, "/")
		rest = path.Clean("/" + rest)
		return len(who) >= 1 && (rest == "/" || rest == "/*" || rest == "/.*")
	}
	if !strings.HasPrefix(v, "/") {
		return false
	}
	if rootGlob.MatchString(path.Clean(v)) {
		return true
	}
	c := path.Clean(v)
	for strings.HasSuffix(c, "/*") || strings.HasSuffix(c, "/.*") {
		c = path.Dir(c)
	}
	return c == "/" || slices.Contains(systemRoots, c) || personal.MatchString(c)
}

// overwritten judges places that are written.
func (j doom) overwritten(args []word) string {
	for i := range args {
		for v := range j.targets(&args[i]) {
			if strings.HasPrefix(v, "/") && blockDevice.MatchString(path.Clean(v)) {
				return "writing to the device " + v
			}
			if j.opt.touchesHome(v, false) {
				return "writing to Chorus's own home"
			}
		}
	}
	return ""
}

// ownHome protects Chorus's home; a workspace inside it is the agent's own.
func (j doom) ownHome(args []word, what string) string {
	if j.opt.Home == "" {
		return ""
	}
	for i := range args {
		for v := range j.targets(&args[i]) {
			if j.opt.touchesHome(v, what == "removing" || what == "moving") {
				return what + " Chorus's own home"
			}
		}
	}
	return ""
}

// touchesHome says whether a path lies in Chorus's home but not in the workspace;
// with whole, also whether it holds the home.
func (o JudgeOptions) touchesHome(v string, whole bool) bool {
	if o.Home == "" || v == "" || v[0] == '-' {
		return false
	}
	home, ws := path.Clean(o.Home), ""
	if o.Workspace != "" {
		ws = path.Clean(o.Workspace)
	}
	if !path.IsAbs(v) {
		if rest, ok := strings.CutPrefix(v, "~/"); ok {
			return o.UserHome == "" && path.Base(home) == strings.SplitN(path.Clean(rest), "/", 2)[0] && strings.HasPrefix(path.Base(home), ".")
		}
		if ws == "" || strings.HasPrefix(v, "~") {
			return false
		}
		if !strings.Contains(v, "..") && !strings.Contains(v, "*") && !within(home, ws) {
			return false // it stays in the workspace, and the home is elsewhere or around it
		}
		v = path.Join(ws, v)
	}
	v = path.Clean(v)
	for strings.HasSuffix(v, "/*") {
		v = path.Dir(v)
	}
	if ws != "" && within(v, ws) && within(ws, home) {
		return false
	}
	return within(v, home) || whole && within(home, v)
}

func recursive(args []word) bool {
	for _, x := range args {
		v := x.value
		if v == "--" {
			return false
		}
		if strings.HasPrefix(v, "--r") && strings.HasPrefix("--recursive", v) {
			return true
		}
		if len(v) > 1 && v[0] == '-' && v[1] != '-' && strings.ContainsAny(v, "rR") {
			return true
		}
	}
	return false
}

// isForkBomb recognises a function that starts itself more than once without end.
func isForkBomb(name string, body *syntax.Stmt) bool {
	calls, spread := 0, false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == name {
				calls++
			}
		case *syntax.BinaryCmd:
			spread = spread || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.Stmt:
			spread = spread || n.Background
		}
		return true
	})
	return calls >= 2 && spread
}
