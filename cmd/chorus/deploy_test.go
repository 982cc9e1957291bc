package main

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"chorus/cmd/chorus/readiness"
	"chorus/internal/config"
	"chorus/internal/transport/repl"
)

// The files in which Chorus is shipped are held to the program itself: the flags and
// variables they name must be there. Where a docker daemon or systemd is at hand, they judge too.

func deployed(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// instructions are the lines of a Dockerfile with their continuations, without comments.
func instructions(text string) [][2]string {
	var out [][2]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		word, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && !strings.HasPrefix(word, "#") {
			out = append(out, [2]string{word, strings.TrimSpace(rest)})
		}
	}
	return out
}

// unit reads a systemd unit: all values of each key.
func unit(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			out[key] = append(out[key], value)
		}
	}
	return out
}

// understood fails where the program does not know the arguments.
func understood(t *testing.T, where string, args []string) {
	t.Helper()
	c := &program{console: repl.Standard(), getenv: os.Getenv}
	cmd, rest, err := c.root().Find(args)
	if err != nil || !cmd.Runnable() {
		t.Fatalf("%s: chorus %s: %v", where, strings.Join(args, " "), err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: chorus %s: %v", where, strings.Join(args, " "), err)
	} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%s: chorus %s: %v", where, strings.Join(args, " "), err)
	}
}

// knownVariables are those that the program reads by name; TestVariablesAreRead keeps this true.
var knownVariables = []string{"CHORUS_HOME", "CHORUS_ADDR", "CHORUS_NODE", "CHORUS_LOG_FORMAT", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"}

// variable fails where nothing in the program reads it.
func variable(t *testing.T, where, name string) {
	t.Helper()
	isKey := slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Variable() == name })
	if !isKey && !slices.Contains(knownVariables, name) {
		t.Errorf("%s sets %s, which nothing reads", where, name)
	}
}

func TestVariablesAreRead(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, folder := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			code.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range knownVariables {
		if !strings.Contains(code.String(), `"`+name+`"`) {
			t.Errorf("nothing reads %s", name)
		}
	}
}

func TestImageFitsTheProgram(t *testing.T) {
	t.Parallel()
	text := deployed(t, "Dockerfile")
	last := map[string]string{}
	builds := false
	for _, in := range instructions(text) {
		if in[0] == "FROM" {
			clear(last) // the last stage is what is shipped
		}
		builds = builds || in[0] == "RUN" && strings.Contains(in[1], "CGO_ENABLED=0") && strings.Contains(in[1], "./cmd/chorus")
		last[in[0]] = in[1]
	}
	if !builds {
		t.Error("the program is not built as one static file")
	}
	if user := last["USER"]; user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
		t.Errorf("the image runs as %q", user)
	}
	for _, pair := range strings.Fields(last["ENV"]) {
		name, _, _ := strings.Cut(pair, "=")
		variable(t, "Dockerfile", name)
	}
	if !strings.Contains(last["ENV"], "CHORUS_HOME="+last["VOLUME"]+" ") || last["VOLUME"] == "" {
		t.Errorf("the home of ENV %s is not the volume %q", last["ENV"], last["VOLUME"])
	}
	if !strings.Contains(last["ENV"], "CHORUS_ADDR=0.0.0.0:"+last["EXPOSE"]+" ") {
		t.Errorf("ENV %s listens elsewhere than EXPOSE %s says", last["ENV"], last["EXPOSE"])
	}
	_, health, _ := strings.Cut(last["HEALTHCHECK"], "CMD ")
	for where, list := range map[string]string{"HEALTHCHECK": health, "ENTRYPOINT and CMD": strings.ReplaceAll(last["ENTRYPOINT"]+last["CMD"], "][", ", ")} {
		var argv []string
		if err := yaml.Unmarshal([]byte(list), &argv); err != nil || len(argv) < 2 || argv[0] != "chorus" {
			t.Errorf("%s: %s: %v", where, list, err)
			continue
		}
		understood(t, where, argv[1:])
	}
}

func TestComposeFitsTheImage(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Ports, Volumes []string
			Environment    map[string]string
			Grace          string `yaml:"stop_grace_period"`
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	s, ok := file.Services["chorus"]
	if !ok {
		t.Fatal("there is no service chorus")
	}
	if !slices.Equal(s.Ports, []string{"127.0.0.1:8420:8420"}) {
		t.Errorf("ports %v: without TLS nobody else may reach it", s.Ports)
	}
	if !slices.Contains(s.Volumes, "data:/data") {
		t.Errorf("volumes %v: the home is not kept", s.Volumes)
	}
	if _, ok := file.Volumes["data"]; !ok {
		t.Error("the volume data is not declared")
	}
	for name := range s.Environment {
		variable(t, "compose.yaml", name)
	}
	if grace, err := time.ParseDuration(s.Grace); err != nil || grace < 20*time.Second {
		t.Errorf("stop_grace_period %q is too short for the server to finish: %v", s.Grace, err)
	}
}

// units are those of systemd that are shipped, with what each must say.
var units = map[string]map[string]string{
	"chorus.service":       {"Restart": "on-failure", "StateDirectory": "chorus"},
	"chorus-node@.service": {"Restart": "always", "StateDirectory": "chorus-nodes/%i"},
}

func TestUnitFitsTheProgram(t *testing.T) {
	t.Parallel()
	for name, wants := range units {
		u := unit(deployed(t, "deploy/"+name))
		one := func(key string) string {
			if len(u[key]) != 1 {
				t.Errorf("%s: %s is there %d times", name, key, len(u[key]))
				return ""
			}
			return u[key][0]
		}
		argv := strings.Fields(one("ExecStart"))
		if len(argv) < 2 || filepath.Base(argv[0]) != "chorus" || !filepath.IsAbs(argv[0]) {
			t.Fatalf("%s: ExecStart %v", name, argv)
		}
		understood(t, name, argv[1:])
		for key, want := range map[string]string{"Type": "notify", "User": "chorus", "KillMode": "process", "NoNewPrivileges": "yes", "Restart": wants["Restart"], "StateDirectory": wants["StateDirectory"]} {
			if got := one(key); got != want {
				t.Errorf("%s: %s=%s, want %s", name, key, got, want)
			}
		}
		for _, pair := range u["Environment"] {
			set, _, _ := strings.Cut(pair, "=")
			variable(t, name, set)
		}
		if !slices.Contains(u["Environment"], "CHORUS_HOME=%S/"+one("StateDirectory")) {
			t.Errorf("%s: the home %v is not the state directory", name, u["Environment"])
		}
		// These would leave commands without a sandbox.
		for _, key := range []string{"RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups", "ProtectProc", "ProtectHostname", "PrivateUsers", "MemoryDenyWriteExecute"} {
			if len(u[key]) > 0 {
				t.Errorf("%s: %s=%v: bwrap does not work with it", name, key, u[key])
			}
		}
	}
}

// TestSystemdAcceptsTheUnit asks systemd itself, with a program that is there.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here; TestUnitFitsTheProgram has read the unit")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range units {
		text := strings.Replace(deployed(t, "deploy/"+name), "/usr/local/bin/chorus", self, 1)
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", strings.Replace(file, "@.", "@berlin.", 1))
		out, err := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "chorus") { // the machine's own units are no matter of ours
				t.Errorf("systemd-analyze: %s", line)
			}
		}
		if err != nil {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}
}

// TestImageBuilds builds the image where a daemon does, and asks it for its version.
func TestImageBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an image; not with -short")
	}
	docker, err := exec.LookPath("docker")
	if err != nil {
		t.Skip("no docker here; TestImageFitsTheProgram has read the Dockerfile")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, docker, "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		t.Skipf("no docker daemon here; TestImageFitsTheProgram has read the Dockerfile: %s", out)
	}
	const tag = "chorus-deploy-test"
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, docker, args...)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("build", "-t", tag, "--build-arg", "VERSION=deploy-test", ".")
	if out := run("run", "--rm", tag, "version"); !strings.Contains(out, "deploy-test") {
		t.Errorf("the image's version is %q", out)
	}
	if out := run("run", "--rm", "--entrypoint", "id", tag, "-u"); strings.TrimSpace(out) != "10001" {
		t.Errorf("the image runs as %q", out)
	}
}

func TestServeCheck(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusOK)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			status.Store(http.StatusTeapot)
		}
		w.WriteHeader(int(status.Load()))
	}))
	addr := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")
	for _, at := range []string{addr, "0.0.0.0:" + port, ":" + port} {
		if err := readiness.Check(t.Context(), at, false); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	status.Store(http.StatusServiceUnavailable)
	if err := readiness.Check(t.Context(), addr, false); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("a server that is not ready: %v", err)
	}
	srv.Close()
	if err := readiness.Check(t.Context(), addr, false); err == nil || !strings.Contains(err.Error(), "no server answers") {
		t.Errorf("no server: %v", err)
	}
	if err := readiness.Check(t.Context(), "nowhere", false); err == nil {
		t.Error("an address without a port was taken")
	}
}

func TestFromHere(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"127.0.0.1:8420": "127.0.0.1:8420", "0.0.0.0:8420": "localhost:8420", ":8420": "localhost:8420", "[::]:1": "localhost:1",
		"chorus.example.org:443": "chorus.example.org:443", "nowhere": "nowhere"} {
		if got := readiness.LocalAddress(addr); got != want {
			t.Errorf("%s is reached at %s, want %s", addr, got, want)
		}
	}
}
