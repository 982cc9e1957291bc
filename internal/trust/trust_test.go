package trust_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/digest"
	"chorus/internal/tool/files"
	"chorus/internal/tool/mcp"
	"chorus/internal/trust"
)

func workspace(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Which files a yes covers, for the ways in which servers are started.
func TestBind(t *testing.T) {
	t.Parallel()
	dir := workspace(t, map[string]string{
		"server.py": "a", "lib/server.js": "b", "pkg/__main__.py": "c", "pkg/deep/more.py": "d", "run.sh": "e", "bin/tool": "#!/bin/sh\n",
		"package.json": `{"scripts": {"prestart": "sh build.sh", "start": "node dist/main.js --x", "other": "sh other.sh"}}`,
		"build.sh":     "f", "dist/main.js": "g", "other.sh": "h", "Makefile": "x:\n", "data.db": "i", "app/main.ts": "j",
		"pysrv/main.py": "import json, helper as h\nfrom .util import deep\n", "pysrv/helper.py": "", "pysrv/util/deep.py": "", "pysrv/util/__init__.py": "", "pysrv/unused.py": "",
		"web/main.mjs": "import x from './a.js'\nconst y = require(\"./lib\")\nimport z from 'react'\n", "web/a.js": "", "web/lib/index.js": "", "web/unused.js": "",
		"start.sh":              "bin/tool --log out/log.txt\nexec node web/a.js\n",
		"node_modules/.bin/srv": "k", "preload.js": "l", "srv.rb": "m",
	})
	if err := os.Symlink("server.py", filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	commands := func(servers ...mcp.Server) (out []trust.Command) {
		for _, s := range servers {
			if s.Command != "" {
				program, _ := mcp.Program(s, dir, []string{"PATH=" + filepath.Join(dir, "bin") + ":/usr/bin:/bin"})
				out = append(out, trust.Command{Program: program, Words: append([]string{s.Command}, s.Args...), Env: s.Env, Dir: s.Dir})
			}
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		server  mcp.Server
		bound   []string // all of them
		unbound string
	}{
		{"a script", mcp.Server{Command: "python3", Args: []string{"server.py"}}, []string{"server.py"}, ""},
		{"by its whole path", mcp.Server{Command: "python3", Args: []string{dir + "/server.py"}}, []string{"server.py"}, ""},
		{"not there yet", mcp.Server{Command: "python3", Args: []string{"later.py"}}, []string{"later.py"}, ""},
		{"in a folder", mcp.Server{Command: "node", Args: []string{"server.js"}, Dir: "lib"}, []string{"lib/server.js"}, ""},
		{"without its ending", mcp.Server{Command: "node", Args: []string{"lib/server"}}, []string{"lib/server.cjs", "lib/server.js", "lib/server.mjs", "lib/server.ts", "lib/server/index.js"}, ""},
		{"an option's value", mcp.Server{Command: "node", Args: []string{"--import=./preload.js", "lib/server.js"}}, nil, ""},
		{"a module", mcp.Server{Command: "python3", Args: []string{"-m", "pkg"}}, []string{"pkg.py", "pkg/__init__.py", "pkg/__main__.py", "pkg/deep/more.py"}, ""},
		{"a module from elsewhere that could be put here", mcp.Server{Command: "python3", Args: []string{"-mmcp.server"}}, []string{"mcp/server.py", "mcp/server/__init__.py", "mcp/server/__main__.py"}, ""},
		{"the command itself", mcp.Server{Command: "./run.sh"}, []string{"run.sh"}, ""},
		{"the command from PATH", mcp.Server{Command: "tool"}, []string{"bin/tool"}, ""},
		{"a shell's text", mcp.Server{Command: "sh", Args: []string{"-c", "cd . && exec sh run.sh"}}, []string{"run.sh"}, ""},
		{"a package script", mcp.Server{Command: "npm", Args: []string{"run", "start"}}, []string{".npmrc", "build.sh", "dist/main.js", "package.json"}, ""},
		{"make", mcp.Server{Command: "make", Args: []string{"x"}}, []string{"GNUmakefile", "Makefile", "makefile"}, ""},
		{"npx", mcp.Server{Command: "npx", Args: []string{"-y", "srv"}}, []string{".npmrc", "node_modules/.bin/srv"}, ""},
		{"the environment", mcp.Server{Command: "true", Env: map[string]string{"NODE_OPTIONS": "--require ./preload.js"}}, []string{"preload.js"}, ""},
		{"a link", mcp.Server{Command: "python3", Args: []string{"link.py"}}, []string{"link.py"}, ""},
		{"what Python loads", mcp.Server{Command: "python3", Args: []string{"pysrv/main.py"}}, []string{"pysrv/helper.py", "pysrv/helper/__init__.py", "pysrv/json.py", "pysrv/json/__init__.py",
			"pysrv/main.py", "pysrv/util.py", "pysrv/util/__init__.py", "pysrv/util/deep.py"}, ""},
		{"what JavaScript loads", mcp.Server{Command: "node", Args: []string{"web/main.mjs"}}, []string{"web/a.js", "web/lib.cjs", "web/lib.js", "web/lib.mjs", "web/lib.ts", "web/lib/index.js", "web/lib/index.ts", "web/main.mjs"}, ""},
		{"a value in the option's word", mcp.Server{Command: "node", Args: []string{"-r./preload.js", "lib/server.js"}}, []string{"lib/server.js", "preload.js"}, ""},
		{"a value without its ending", mcp.Server{Command: "node", Args: []string{"--require=./preload", "lib/server.js"}}, []string{"lib/server.js", "preload.cjs", "preload.js", "preload.mjs", "preload.ts", "preload/index.js"}, ""},
		{"a makefile in the option's word", mcp.Server{Command: "make", Args: []string{"-frun.sh", "x"}}, []string{"GNUmakefile", "Makefile", "makefile", "run.sh"}, ""},
		{"an agent of Java, and a class path", mcp.Server{Command: "java", Args: []string{"-javaagent:run.sh", "-cp", "build.sh:other.sh", "X"}}, []string{"build.sh", "other.sh", "run.sh"}, ""},
		{"Python code", mcp.Server{Command: "python3", Args: []string{"-c", "import pysrv.helper"}}, []string{"pysrv.py", "pysrv/__init__.py", "pysrv/helper.py", "pysrv/helper/__init__.py"}, ""},
		{"a folder that Python runs", mcp.Server{Command: "python3", Args: []string{"pkg"}}, []string{"pkg/__main__.py"}, "pkg is a directory"},
		{"a runner by npx", mcp.Server{Command: "npx", Args: []string{"tsx", "app/main"}}, []string{".npmrc", "app/main.cjs", "app/main.js", "app/main.mjs", "app/main.ts", "app/main/index.js", "node_modules/.bin/tsx"}, ""},
		{"a script of which nothing is known", mcp.Server{Command: "ruby", Args: []string{"-r./srv.rb", "x"}}, []string{"srv.rb"}, "what srv.rb loads is not"},
		{"what a shell starts", mcp.Server{Command: "sh", Args: []string{"start.sh"}}, []string{"bin/tool", "start.sh", "web/a.js"}, ""},
		{"data", mcp.Server{Command: "true", Args: []string{"data.db"}}, nil, "data.db is taken for data"},
		{"a directory", mcp.Server{Command: "go", Args: []string{"run", "./app"}}, []string{"app/go.mod", "app/go.work", "go.mod", "go.work"}, "app is a directory"},
		{"nothing of the workspace", mcp.Server{Command: "sh", Args: []string{"/etc/profile", "-c", "true"}}, nil, ""},
		{"an address", mcp.Server{URL: "https://example.com"}, nil, ""},
	} {
		got := trust.Bind(dir, commands(tt.server))
		var names []string
		for name := range got.Files {
			names = append(names, name)
		}
		slices.Sort(names)
		if tt.name == "an option's value" {
			if got.Files["preload.js"] == "" || got.Files["lib/server.js"] == "" {
				t.Errorf("%s: %q", tt.name, names)
			}
			continue
		}
		if !slices.Equal(names, tt.bound) {
			t.Errorf("%s: %q", tt.name, names)
		}
		if tt.unbound != "" && !strings.Contains(strings.Join(got.Unbound, "\n"), tt.unbound) {
			t.Errorf("%s: not bound: %q", tt.name, got.Unbound)
		}
	}
}

// A record covers what it was made of, and says what changed; the old text is shown where it was kept.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := workspace(t, map[string]string{".mcp.json": "{}", "server.py": "one\ntwo\n", "big.js": strings.Repeat("x\n", 50_000), "other/server.py": "one\ntwo\n"})
	home := t.TempDir()
	store := trust.Store{File: filepath.Join(home, "trusted.json"), Texts: filepath.Join(home, "trusted"), Diff: files.Unified}
	list := filepath.Join(dir, ".mcp.json")
	commands := []trust.Command{{Words: []string{"python3", "server.py"}}, {Words: []string{"node", "big.js"}}}
	record := func() trust.Record {
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		return trust.Record{Digest: digest.Of(data), Files: trust.Bind(dir, commands).Files}
	}
	first := record()
	if store.Get(list).Covers(first.Digest, first.Files) {
		t.Error("nobody has trusted it")
	}
	if err := store.Put(list, dir, first); err != nil {
		t.Fatal(err)
	}
	if !store.Get(list).Covers(first.Digest, first.Files) {
		t.Error("it was trusted")
	}
	for _, tt := range []struct {
		do         func()
		path, how  string
		difference string
	}{
		{func() { write(t, filepath.Join(dir, "server.py"), "one\nthree\n") }, "server.py", "changed", "-two\n+three\n"},
		{func() { write(t, filepath.Join(dir, "big.js"), "small") }, "big.js", "changed", ""},
		{func() { _ = os.Remove(filepath.Join(dir, "server.py")) }, "server.py", "is gone", ""},
		{func() {
			if err := os.Symlink("other/server.py", filepath.Join(dir, "server.py")); err != nil {
				t.Fatal(err)
			}
		}, "server.py", "leads elsewhere", ""},
		{func() { write(t, list, `{"x": 1}`) }, ".mcp.json", "changed", `+{"x": 1}`},
	} {
		tt.do()
		now := record()
		if store.Get(list).Covers(now.Digest, now.Files) {
			t.Errorf("%s %s and is trusted", tt.path, tt.how)
		}
		changes := store.Changes(list, dir, store.Get(list), now)
		i := slices.IndexFunc(changes, func(c trust.Change) bool { return c.Path == tt.path && strings.HasPrefix(c.How, tt.how) })
		if i < 0 || !strings.Contains(changes[i].Diff, tt.difference) {
			t.Errorf("%s %s: %+v", tt.path, tt.how, changes)
		}
	}
}

// What an earlier version trusted bound no files: it holds only where there are none to bind.
func TestOldRecords(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, filepath.Join(home, "trusted.json"), `{"/a/.mcp.json": "abc"}`)
	r := trust.Store{File: filepath.Join(home, "trusted.json")}.Get("/a/.mcp.json")
	if !r.Covers("abc", map[string]string{}) || r.Covers("abc", map[string]string{"server.py": "x"}) || r.Covers("abd", nil) {
		t.Errorf("%+v", r)
	}
}
