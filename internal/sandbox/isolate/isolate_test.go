package isolate_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/store/storetest"
	"chorus/internal/transcript"
)

// newApp is an opened home beside a workspace; what is warned about lands in the list.
func newApp(t *testing.T) (a *app.App, work string, warned *[]string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"work", "user/.ssh", "other"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Fresh(t, filepath.Join(base, "home", "chorus.db"))
	warned = &[]string{}
	env := map[string]string{"HOME": filepath.Join(base, "user")}
	a, err = app.Open(t.Context(), app.Options{Env: func(name string) string { return env[name] }, Environ: []string{"HOME=" + env["HOME"], "PATH=" + os.Getenv("PATH")},
		Home: filepath.Join(base, "home"), Warn: func(text string) { *warned = append(*warned, text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, filepath.Join(base, "work"), warned
}

func toolboxOf(t *testing.T, a *app.App, dir string) *runsetup.Toolbox {
	t.Helper()
	id, err := chat.NewThreadID("cli", settings.Place(dir), "one", chat.DefaultAgent)
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Setup.Toolbox(id, dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Who may run commands without a sandbox: only those whose commands a person sees first, unless the
// profile says otherwise.
func TestPlanNeed(t *testing.T) {
	t.Parallel()
	a, work, _ := newApp(t)
	profiles := map[string]config.Profile{
		"guarded": {Hosts: []string{"example.com"}}, // adds to the built-in one
		"loose":   {Allow: []string{".*"}, Sandbox: isolate.Preferred},
		"strict":  {Ask: []string{".*"}, Sandbox: isolate.Required},
		"npm":     {Allow: []string{"tool:npm:.*"}, Ask: []string{"tool:bash:.*"}},
		"mods":    {Ask: []string{".*"}, Allow: []string{`{"rule":"tool:bash:.*","roles":["mod"]}`}},
	}
	mods := []transcript.Sender{{Principal: chat.Principal{Kind: chat.LocalUser, ID: "x", Roles: []string{"mod"}}}}
	for _, tt := range []struct {
		profile string
		yes     bool
		senders []transcript.Sender
		want    string
	}{
		{profile: "standard", want: isolate.Preferred}, {profile: "standard", yes: true, want: isolate.Required},
		{profile: "open", want: isolate.Required}, {profile: "guarded", want: isolate.Required}, {profile: "locked", want: isolate.Preferred},
		{profile: "loose", yes: true, want: isolate.Preferred}, {profile: "strict", want: isolate.Required}, {profile: "npm", want: isolate.Preferred},
		{profile: "mods", want: isolate.Preferred}, {profile: "mods", senders: mods, want: isolate.Required},
	} {
		bot := &config.Bot{Profiles: profiles, Sandbox: "auto"}
		rules, err := settings.Profile(bot, tt.profile)
		if err != nil {
			t.Fatal(err)
		}
		p := a.Isolation.Plan(bot, rules, journal.Thread{Dir: work}, chat.Terms{Yes: tt.yes}, engine.Work{Senders: tt.senders})
		if p.Need != tt.want {
			t.Errorf("%s yes=%v: %s, want %s", tt.profile, tt.yes, p.Need, tt.want)
		}
		if tt.profile == "guarded" && !slices.Equal(p.Hosts, []string{"example.com"}) {
			t.Errorf("hosts of a built-in profile: %q", p.Hosts)
		}
	}
}

// Without a sandbox a command either runs, once with a warning, or does not and says why.
func TestWithoutSandbox(t *testing.T) {
	t.Parallel()
	a, work, warned := newApp(t)
	a.Isolation.Probe.Done, a.Isolation.Probe.Err = true, errors.New("no bubblewrap: install it")
	b := toolboxOf(t, a, work)
	for _, tt := range []struct {
		plan isolate.Plan
		want string // "": it runs
	}{
		{isolate.Plan{Sandbox: "auto", Need: isolate.Preferred, Profile: "standard"}, ""},
		{isolate.Plan{Sandbox: "auto", Need: isolate.Preferred, Profile: "standard"}, ""},
		{isolate.Plan{Sandbox: "auto", Need: isolate.None}, ""},
		{isolate.Plan{Sandbox: "host", Need: isolate.Required}, ""},
		{isolate.Plan{Sandbox: "auto", Need: isolate.Required, Profile: "open"}, "profile open lets commands run unasked"},
		{isolate.Plan{Sandbox: "auto", Need: isolate.Required, Yes: true}, "with --yes commands run unasked"},
		{isolate.Plan{Sandbox: "bwrap", Need: isolate.Preferred}, "a sandbox is required"},
	} {
		ex, err := a.Isolation.ExecutorFor(&b.Site, tt.plan)
		if err != nil {
			t.Fatal(err)
		}
		res, err := ex.Run(t.Context(), sandbox.Command{Shell: "echo ran", Dir: work})
		if tt.want == "" && (err != nil || res.Stdout != "ran\n") {
			t.Errorf("%+v: %+v %v", tt.plan, res, err)
		}
		if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "install it") || !strings.Contains(err.Error(), "--sandbox host")) {
			t.Errorf("%+v: %+v %v", tt.plan, res, err)
		}
	}
	if len(*warned) != 1 || !strings.Contains((*warned)[0], "without a sandbox") {
		t.Errorf("said once: %q", *warned)
	}
	if _, err := a.Isolation.ExecutorFor(&b.Site, isolate.Plan{Sandbox: "host", Need: isolate.Required, Own: true, Profile: "p"}); err == nil {
		t.Error("a profile that requires a sandbox has no host")
	}
	if _, err := a.Isolation.ExecutorFor(&b.Site, isolate.Plan{Sandbox: "auto", Need: isolate.Required, Hosts: []string{"http://x/"}, Profile: "p"}); err == nil || !strings.Contains(err.Error(), "egress.hosts") {
		t.Errorf("a host that is none: %v", err)
	}
}

// inSandbox runs commands as a thread with the plan would, or skips where none works.
func inSandbox(t *testing.T, a *app.App, work string, p isolate.Plan) func(shell string) sandbox.Result {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal("bubblewrap is missing; with CI=true nothing is skipped that could be installed")
	}
	if _, err := a.Isolation.Probe.Executor(t.Context(), a.Isolation); err != nil {
		t.Skipf("!!! the sandbox is NOT TESTED here: %v", err)
	}
	p.Sandbox, p.Need, p.Profile = "auto", isolate.Required, "open"
	ex, err := a.Isolation.ExecutorFor(&toolboxOf(t, a, work).Site, p)
	if err != nil {
		t.Fatal(err)
	}
	return func(shell string) sandbox.Result {
		t.Helper()
		res, err := ex.Run(t.Context(), sandbox.Command{Shell: shell, Dir: work, Merge: true})
		if err != nil {
			t.Fatalf("%s: %v", shell, err)
		}
		return res
	}
}

// What commands must not reach by default, tried by them.
func TestEscapesByDefault(t *testing.T) {
	t.Parallel()
	a, work, _ := newApp(t)
	base := filepath.Dir(work)
	for _, name := range []string{"user/.ssh/id", "other/file", "home/agents/other/docs/note", "home/keys"} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("test-canary"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	run := inSandbox(t, a, work, isolate.Plan{})
	for _, shell := range []string{
		"cat ../user/.ssh/id", "cat ../home/chorus.db ../home/keys", "cat ../home/agents/other/docs/note", "cat ../other/file",
		"ln -s ../user u; cat u/.ssh/id", "ln -s " + base + " b; cat b/home/keys", "cat /proc/1/root" + base + "/other/file",
		"tr '\\0' '\\n' < /proc/$PPID/environ | grep HOME=" + base, "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done | grep " + base + "/user",
		"echo test-canary > ../user/left && cat " + base + "/user/left", "cat /etc/shadow && echo test-canary", "(exec 3<>/dev/tcp/169.254.169.254/80) && echo test-canary",
		"chmod u+s $(command -v sh) 2>/dev/null; cp /bin/sh s && chmod 4755 s && ./s -p -c 'cat ../other/file'", "unshare -Urm true && echo test-canary",
		"mv .. elsewhere; cat ../other/file; cd / && cat ." + base + "/other/file",
	} {
		if res := run(shell); strings.Contains(res.Output, "test-canary") || strings.Contains(res.Output, base+"/user") {
			t.Errorf("%s got out: %s", shell, res.Output)
		}
	}
	if res := run("echo one > f && cat f; echo two > ~/kept"); res.Output != "one\n" {
		t.Errorf("the workspace: %+v", res)
	}
	if res := run("cat ~/kept"); res.Output != "two\n" {
		t.Errorf("the home: %+v", res)
	}
}

// A workspace that is the user's home still does not show its keys, and named roots are
// what they were named.
func TestRootsAndKeys(t *testing.T) {
	t.Parallel()
	a, work, warned := newApp(t)
	base := filepath.Dir(work)
	user := filepath.Join(base, "user")
	if err := os.WriteFile(filepath.Join(user, ".ssh", "id"), []byte("test-canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := inSandbox(t, a, user, isolate.Plan{Roots: []string{base + "/other:rw", base + "/work", "~/.ssh", base + "/home"}})
	if res := run("ls .ssh; cat .ssh/id; ls -d .ssh"); strings.Contains(res.Output, "canary") || !strings.HasSuffix(res.Output, ".ssh\n") {
		t.Errorf("keys: %s", res.Output)
	}
	if res := run("touch ../other/new && echo new; touch ../work/new || echo no; ls ../home/chorus.db"); !strings.Contains(res.Output, "new\n") || !strings.Contains(res.Output, "no\n") ||
		!strings.Contains(res.Output, "chorus.db': No such file") {
		t.Errorf("roots: %s", res.Output)
	}
	if len(*warned) != 2 {
		t.Errorf("roots that are left out are told: %q", *warned)
	}
}

// That the sandbox works is kept in the data directory, and forgotten when it is not true any more.
func TestProbeIsRemembered(t *testing.T) {
	t.Parallel()
	a, work, _ := newApp(t)
	run := inSandbox(t, a, work, isolate.Plan{})
	if !a.Isolation.Remembered() {
		t.Fatal("not remembered")
	}
	run("true")
	if _, err, known := (&isolate.SandboxProbe{}).Known(a.Isolation); err != nil || !known {
		t.Errorf("another process: %v %v", err, known)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &isolate.SandboxProbe{}
	if err := w.Again(ctx, a.Isolation); err == nil || w.Done {
		t.Errorf("a try that was given up is no answer: %v %v", err, w.Done)
	}
	a.Isolation.Remember(false, "")
	if a.Isolation.Remembered() {
		t.Error("remembered although it does not work")
	}
}
