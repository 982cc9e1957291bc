package isolate

import (
	"context"
	"os/exec"
	"slices"
)

// Fact describes one aspect of where commands run, for people.
type Fact struct {
	Name   string // "sandbox bwrap", "sandbox auto", "limit memory", …
	OK     bool
	Detail string // the current state
	Fix    string // how to fix it if it is not OK; may be empty
}

// isolationFacts are the names of the executor's facts about isolation; the rest are limits.
var isolationFacts = []string{"namespaces", "nested namespaces", "symlink races", "landlock", "exec gate"}

// Facts reports which sandboxes work here, which one auto means, and which isolation and
// limits work. It tries bubblewrap, which takes tens of milliseconds.
func (i *Isolation) Facts(ctx context.Context) []Fact {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	made := i.newBwrap("")
	defer made.Close()
	err := made.Probe(ctx)
	var out []Fact
	if err != nil {
		out = append(out, Fact{"sandbox bwrap", false, err.Error(), bwrapFix})
	} else {
		out = append(out, Fact{Name: "sandbox bwrap", OK: true, Detail: "works: own files, processes, users and network"})
	}
	out = append(out, dockerFact(ctx), Fact{Name: "sandbox host", OK: true, Detail: "always works, is no sandbox, and must be chosen"}, autoFact(err))
	for _, f := range made.Facts() {
		kind := "limit "
		if slices.Contains(isolationFacts, f.Name) {
			kind = "isolation "
		}
		out = append(out, Fact{Name: kind + f.Name, OK: f.Holds && err == nil, Detail: f.Words})
	}
	return append(out, networkFact(err))
}

// bwrapFix says what to do if bubblewrap does not work.
const bwrapFix = "install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap), or choose --sandbox host, which is no sandbox"

func autoFact(err error) Fact {
	if err == nil {
		return Fact{Name: "sandbox auto", OK: true, Detail: "bwrap: the strongest that works here"}
	}
	return Fact{"sandbox auto", false, "host if a person is asked about every command; commands that would run unasked are refused", bwrapFix}
}

func networkFact(err error) Fact {
	if err != nil {
		return Fact{"network", false, "without a sandbox commands reach whatever this machine reaches", bwrapFix}
	}
	return Fact{Name: "network", OK: true, Detail: "off, except for the hosts of egress.hosts and of the profile, through a proxy"}
}

func dockerFact(ctx context.Context) Fact {
	path, err := exec.LookPath("docker")
	if err != nil {
		return Fact{"sandbox docker", false, "there is no docker program", "install docker if commands should run in a container; nothing else needs it"}
	}
	if err := exec.CommandContext(ctx, path, "version", "--format", "{{.Server.Version}}").Run(); err != nil {
		return Fact{"sandbox docker", false, "no docker daemon answers", "start it if commands should run in a container; nothing else needs it"}
	}
	return Fact{Name: "sandbox docker", OK: true, Detail: "a daemon answers; name a running container with --sandbox docker:NAME"}
}
