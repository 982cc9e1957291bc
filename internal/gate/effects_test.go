//go:build linux

package gate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/permit/permittest/effects"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/settings"
	"chorus/internal/transcript"
)

// onlyByText are effects that only the judge of the text can forbid: the shell has them by itself, in the workspace, or they are
// there because the remote is a folder that these commands can write, or a program that runs does it by itself.
var onlyByText = []string{"perl -e 'unlink \"canary\"'", "PYTHONPATH=pylib pip list", "cd sub 2>/dev/null; echo x > ../f3", "git -C ../remote.git fetch -q ../ws main:main", "git --git-dir=../remote.git fetch -q . main:main"}

// TestEffectsBehindTheGate: the ways around the rules as if the text had not been judged at all, so that only the sandbox and
// the judge of programs are left: by default where a denied program does it, by all rules otherwise. None has its effect.
func TestEffectsBehindTheGate(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal("bubblewrap is missing; with CI=true nothing is skipped that could be installed")
	}
	program := filepath.Join(t.TempDir(), "init")
	build := exec.Command("go", "build", "-o", program, "chorus/internal/sandbox/bwrap/inside/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := effects.Cases()
	for i, c := range effects.More() {
		if i%20 == 0 || os.Getenv("EFFECTS") == "all" { // there are too many to run each of them every time
			all = append(all, c)
		}
	}
	var cases []effects.Case
	for _, c := range all {
		if c.Effect != "none" && !slices.Contains(onlyByText, c.Command) {
			cases = append(cases, c)
		}
	}
	const parts = 4 // each in a project of its own
	for part := range parts {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			t.Parallel()
			var mine []effects.Case
			for i := part; i < len(cases); i += parts {
				mine = append(mine, cases[i])
			}
			effectsBehindTheGate(t, program, mine)
		})
	}
}

// effectsBehindTheGate tries the cases one after the other.
func effectsBehindTheGate(t *testing.T, program string, cases []effects.Case) {
	p := effects.New(t)
	ex := bwrap.New(bwrap.Options{Environ: os.Environ(), Env: effects.Environ(p.Dir), Init: program})
	t.Cleanup(ex.Close)
	if err := ex.Probe(t.Context()); err != nil {
		t.Skipf("!!! the sandbox is NOT TESTED here: %v", err)
	}
	// What is pushed to can be seen, or nothing could be pushed whatever is judged.
	roots := []sandbox.Root{{Path: filepath.Join(p.Dir, "ws"), Writable: true}, {Path: filepath.Join(p.Dir, "remote.git"), Writable: true}, {Path: filepath.Join(p.Dir, "bin")}}
	judges := map[string]sandbox.Judge{}
	for _, c := range cases {
		mode := ChildrenJudge
		if c.Effect == "-ws/canary" || c.Rules == "guarded" && c.Effect == "+pushed" {
			mode = ChildrenDeny
		}
		if judges[c.Rules+mode] == nil {
			judges[c.Rules+mode] = effectJudge(c.Rules, filepath.Join(p.Dir, "ws")).Programs(mode, nil, func(context.Context, string, sandbox.Exec, approval.Audit) error { return nil })("call")
		}
		var said sandbox.Result
		through := p.DoesBy(t, c.Effect, func(ctx context.Context, dir string) {
			res, err := ex.Run(ctx, sandbox.Command{Shell: c.Command, Dir: dir, Merge: true, Roots: roots, Judge: judges[c.Rules+mode]})
			if err != nil {
				t.Errorf("%q: %v", c.Command, err)
			}
			said = res
		})
		if through {
			t.Errorf("%s: %q did %s: %.2000s %q", c.Rules, c.Command, c.Effect, strings.TrimSpace(said.Output), said.Notes)
		}
	}
}

func effectJudge(rules, workspace string) *Judge {
	bot := &config.Bot{Permissions: rules}
	load := func(name string) (*permit.Profile, error) {
		if r, ok := effects.RuleSets()[name]; ok {
			return permit.Compile(name, permit.Rules{Allow: r.Allow, Deny: r.Deny, Ask: r.Ask})
		}
		return settings.Profile(bot, name)
	}
	j := newGate(bot, true)
	j.Limits = LimitsOf(bot, journal.Thread{}, load)
	j.Place.Workspace, j.Place.Sandboxed = workspace, true
	j.Work.Senders = []transcript.Sender{said(ada, chat.Terms{})}
	return j
}
