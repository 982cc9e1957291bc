package shell

import (
	"iter"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/pattern"
	"chorus/internal/permit/action"
)

// homeMark stands for Chorus's data directory in a guessed value.
const homeMark = "$CHORUS_HOME"

// systemRoots are directories that the machine needs to work, or that hold people's files.
var systemRoots = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys",
	"/usr", "/var", "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/var/lib", "/Users", "/System", "/Library", "/Applications", "/Volumes",
	"/mnt", "/media", "/private",
}

// ownable are system directories whose owner may legitimately be changed.
var ownable = []string{"/home", "/opt", "/srv", "/mnt", "/media", "/run", "/usr/local", "/Volumes"}

var (
	blockDevice = pattern.Lazy(`^/dev/(?:(?:sd|hd|vd|xvd)[a-z]|nvme[0-9]|mmcblk[0-9]|loop[0-9]|md[0-9]|dm-[0-9]|r?disk[0-9]|mapper/|disk/|mem$|kmem$|port$|nbd[0-9])`)
	// rootGlob matches patterns that name things directly below the root.
	rootGlob = pattern.Lazy(`^/[^/]*[*?\[][^/]*/?$`)
	homeDir  = pattern.Lazy(`^/(?:home|Users)/[^/]+$`)
)

// Place holds what must be known about the machine to tell which paths are protected.
type Place struct {
	Home      string // Chorus's data directory, which no command may write to; "" protects nothing
	Workspace string // base of relative paths
	UserHome  string // what ~ stands for; may be ""

	clean bool // the paths are already clean
}

// Clean returns the place with clean paths, for callers that use it often.
func (o Place) Clean() Place {
	o.Home, o.Workspace, o.clean = cleanPath(o.Home), cleanPath(o.Workspace), true
	return o
}

// cleanPath is path.Clean, but keeps "".
func cleanPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// Catastrophe returns why a part must be refused under every profile, or "".
func (p *Part) Catastrophe(place Place) string {
	if p.extra != nil && p.extra.catastrophe != "" {
		return p.extra.catastrophe
	}
	j := catastropheCheck{part: p, place: place}
	switch p.Kind {
	case KindRead, KindUnknown:
		return ""
	}
	if len(p.words) < 1 {
		return ""
	}
	if p.Kind == KindWrite || len(p.words) == 2 && strings.Trim(p.words[0].value, ">") == "" { // a guess may be a write too
		return j.overwritten(p.words[1:])
	}
	prog := program(p.words)
	args := p.words[1:]
	switch prog {
	case "rm", "shred", "unlink", "rmdir", "srm", "trash", "wipe", "truncate":
		return j.removed(prog, args)
	case "chmod", "chown", "chgrp", "chattr", "setfacl":
		if recursive(args) {
			// Home directories and mounts may change owner; the system may not.
			args = slices.DeleteFunc(slices.Clone(args), func(x word) bool { return homeDir().MatchString(x.value) || slices.Contains(ownable, x.value) })
			return j.systemDir(args, "a recursive "+prog+" on")
		}
	case "mv":
		if len(args) > 1 {
			if why := j.systemDir(args[:len(args)-1], "moving away"); why != "" {
				return why
			}
			if why := j.ownHome(args, "moving"); why != "" {
				return why
			}
		}
	case "wipefs", "blkdiscard", "fdisk", "sfdisk", "sgdisk", "gdisk", "parted", "mkswap", "pvcreate", "cryptsetup", "badblocks", "hdparm":
		if prog == "fdisk" && slices.ContainsFunc(args, func(x word) bool { return x.value == "-l" }) {
			return ""
		}
		return j.overwritten(args)
	}
	if (prog == "mkfs" || strings.HasPrefix(prog, "mkfs.") || prog == "mke2fs" || prog == "newfs") && len(args) > 0 &&
		args[0].value != "--help" && args[0].value != "-V" && args[0].value != "--version" {
		return "making a file system"
	}
	return ""
}

// catastropheCheck checks the targets of one part.
type catastropheCheck struct {
	part  *Part
	place Place
}

// targets yields the absolute or home-relative paths that a word may name.
func (j catastropheCheck) targets(x *word) iter.Seq[string] {
	return func(yield func(string) bool) {
		if x.known && (x.home || !strings.HasPrefix(x.value, "~")) {
			j.paths(x.value, yield) // the common case, without allocating a list
			return
		}
		for _, v := range x.possibleValues() {
			if !j.paths(v, yield) {
				return
			}
		}
	}
}

// paths yields the paths that one value names. It returns false if yield did.
func (j catastropheCheck) paths(v string, yield func(string) bool) bool {
	for _, dir := range j.part.cwd.places() {
		if !j.path(joinDir(dir, v), yield) {
			return false
		}
	}
	return true
}

func (j catastropheCheck) path(v string, yield func(string) bool) bool {
	if ws := j.place.Workspace; ws != "" && strings.HasPrefix(v, "..") && !yield(path.Join(ws, v)) {
		return false
	}
	if rest, ok := strings.CutPrefix(v, homeMark); ok && j.place.Home != "" {
		v = j.place.Home + rest
	}
	if rest, ok := strings.CutPrefix(v, "~"); ok && j.place.UserHome != "" && (rest == "" || rest[0] == '/') {
		return yield(v) && yield(j.place.UserHome+rest)
	}
	return yield(v)
}

// removed checks rm and similar programs.
func (j catastropheCheck) removed(prog string, args []word) string {
	if prog == "rm" {
		if slices.ContainsFunc(args, func(x word) bool { return x.value == "--no-preserve-root" }) {
			return "removing the root directory"
		}
		if recursive(args) {
			if why := j.systemDir(args, "removing"); why != "" {
				return why
			}
		}
	}
	if why := j.overwritten(args); why != "" {
		return why
	}
	return j.ownHome(args, "removing")
}

func (j catastropheCheck) systemDir(args []word, what string) string {
	for i := range args {
		if strings.HasPrefix(args[i].value, "-") && args[i].known {
			continue
		}
		for v := range j.targets(&args[i]) {
			if isSystemDir(v) {
				return what + " " + v
			}
		}
	}
	return j.ownHome(args, what)
}

// isSystemDir reports whether a path is the root, a home directory or a system
// directory, or a pattern for everything in one of them.
func isSystemDir(v string) bool {
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
	if rootGlob().MatchString(path.Clean(v)) {
		return true
	}
	c := path.Clean(v)
	for strings.HasSuffix(c, "/*") || strings.HasSuffix(c, "/.*") {
		c = path.Dir(c)
	}
	return c == "/" || slices.Contains(systemRoots, c) || homeDir().MatchString(c)
}

// overwritten checks paths that are written.
func (j catastropheCheck) overwritten(args []word) string {
	for i := range args {
		for v := range j.targets(&args[i]) {
			if isBlockDevice(v) {
				return "writing to the device " + v
			}
			if j.place.TouchesHome(v, false) {
				return "writing to Chorus's own home"
			}
		}
	}
	return ""
}

func isBlockDevice(v string) bool {
	if !strings.HasPrefix(v, "/") {
		return false
	}
	c := path.Clean(v)
	return strings.HasPrefix(c, "/dev/") && blockDevice().MatchString(c) // rules out most paths cheaply
}

// ownHome protects Chorus's data directory. A workspace inside it belongs to the agent and is not protected.
func (j catastropheCheck) ownHome(args []word, what string) string {
	if j.place.Home == "" {
		return ""
	}
	for i := range args {
		for v := range j.targets(&args[i]) {
			if j.place.TouchesHome(v, what == "removing" || what == "moving") {
				return what + " Chorus's own home"
			}
		}
	}
	return ""
}

// TouchesHome reports whether a path lies in Chorus's data directory but not in the
// workspace. With whole, it also reports paths that contain the data directory.
func (o Place) TouchesHome(v string, whole bool) bool {
	if o.Home == "" || v == "" || v[0] == '-' {
		return false
	}
	if !o.clean {
		o = o.Clean()
	}
	home, ws := o.Home, o.Workspace
	if !path.IsAbs(v) {
		if rest, ok := strings.CutPrefix(v, "~/"); ok {
			return o.UserHome == "" && path.Base(home) == strings.SplitN(path.Clean(rest), "/", 2)[0] && strings.HasPrefix(path.Base(home), ".")
		}
		if ws == "" || strings.HasPrefix(v, "~") {
			return false
		}
		if !strings.Contains(v, "..") && !strings.Contains(v, "*") && !action.Within(home, ws) {
			return false // the path stays in the workspace, which does not contain the data directory
		}
		v = path.Join(ws, v)
	}
	v = path.Clean(v)
	for strings.HasSuffix(v, "/*") {
		v = path.Dir(v)
	}
	if ws != "" && action.Within(v, ws) && action.Within(ws, home) {
		return false
	}
	return action.Within(v, home) || whole && action.Within(home, v)
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

// isForkBomb reports whether a function starts itself more than once.
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
