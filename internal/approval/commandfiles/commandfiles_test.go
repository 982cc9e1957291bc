package commandfiles

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// workspace is a folder with scripts, and one beside it.
func workspace(t *testing.T) (dir, outside string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, outside = filepath.Join(base, "work"), filepath.Join(base, "outside")
	for _, name := range []string{"work/build.sh", "work/bundle.sh", "work/a b.sh", "work/sub/build.sh", "work/sub/deep/x.py", "work/Makefile", "work/tests/t.py", "outside/evil.sh"} {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside/evil.sh", filepath.Join(dir, "linked.sh")); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

// named are the files of the workspace that exist and were found.
func named(dir string, f Found) string {
	var out []string
	for _, path := range slices.Concat(f.Implied, f.Named) {
		rel, err := filepath.Rel(dir, path)
		if info, serr := os.Stat(path); err == nil && serr == nil && info.Mode().IsRegular() && filepath.IsLocal(rel) && !slices.Contains(out, rel) {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "|")
}

func TestIn(t *testing.T) {
	t.Parallel()
	dir, outside := workspace(t)
	for _, c := range []struct{ command, files, unbound string }{
		{`sh build.sh`, "build.sh", ""},
		{`sh b*.sh`, "build.sh|bundle.sh", ""},
		{`sh {build,}.sh`, "build.sh", ""},
		{`sh $'build.sh'`, "build.sh", ""},
		{`sh $'\x62uild.sh'`, "build.sh", ""},
		{`sh "bui"'ld'.sh`, "build.sh", ""},
		{`sh "$PWD/build.sh"`, "build.sh", ""},
		{`sh ${PWD}/build.sh`, "build.sh", ""},
		{`sh ~/work/build.sh`, "build.sh", `~/work/build.sh: a sandbox has a different home`},
		{`sh "$HOME"/work/build.sh`, "build.sh", `"$HOME"/work/build.sh: a sandbox has a different home`},
		{`sh ` + dir + `/build.sh`, "build.sh", ""},
		{`sh "a b.sh"`, "a b.sh", ""},
		{`sh a\ b.sh`, "a b.sh", ""},
		{`cat '*.sh'`, "", ""},
		{`./build.sh --fast`, "build.sh", ""},
		{`x=build.sh; sh "$x"`, "build.sh", ""},
		{`x=bui; y=${x}ld; sh $y.sh`, "build.sh", ""},
		{`for f in b*.sh; do sh "$f"; done`, "build.sh|bundle.sh", ""},
		{`for d in sub; do sh $d/build.sh; done`, "sub/build.sh", ""},
		{`cd sub && sh build.sh`, "build.sh|sub/build.sh", ""}, // in either folder
		{`cd sub && python3 "$PWD"/deep/*.py`, "sub/deep/x.py", ""},
		{`(cd sub/deep; python3 x.py)`, "sub/deep/x.py", ""},
		{`bash -c 'sh b*.sh'`, "build.sh|bundle.sh", ""},
		{`bash -ec 'sh "$1"' _ build.sh`, "build.sh", ""},
		{`env A=1 timeout 5 bash -c "sh {build,}.sh"`, "build.sh", ""},
		{`source ./build.sh`, "build.sh", ""},
		{`. build.sh`, "build.sh", ""},
		{`make`, "Makefile", `the code of the workspace that make loads`},
		{`make -C sub all`, "Makefile", `the code of the workspace that make loads`},
		{`env make test`, "Makefile", `the code of the workspace that make loads`},
		{`sh -x < build.sh`, "build.sh", ""},
		{`tar --use-compress-program=./build.sh -cf x .`, "build.sh", ""},
		{`make -fsub/build.sh`, "Makefile|sub/build.sh", `the code of the workspace that make loads`},
		{`echo $(sh build.sh)`, "build.sh", ""},
		{`git diff && sh build.sh | tee out`, "build.sh", ""},
		{`/usr/bin/env python3 tests/t.py "$UNKNOWN"`, "tests/t.py", ""},
		{`echo "$UNKNOWN"`, "", ""}, // nothing that is run

		{`sh "$UNKNOWN"`, "", `"$UNKNOWN", which sh runs: the value of UNKNOWN is not known`},
		{`sh "${S:-build.sh}"`, "build.sh", `"${S:-build.sh}", which sh runs: the value of S is not known`},
		{`sh $(ls)`, "", `$(ls), which sh runs: it is the output of a command`},
		{`read x; sh "$x"`, "", `"$x", which sh runs: the value of x is not known`},
		{`x=build.sh; x+=y; sh "$x"`, "build.sh", `"$x", which sh runs: the value of x is not known`},
		{`cd "$UNKNOWN"; sh build.sh`, "build.sh", `files in the folder "$UNKNOWN": the value of UNKNOWN is not known`},
		{`sh ` + outside + `/evil.sh`, "", outside + `/evil.sh: it lies outside of the workspace`},
		{`sh ../outside/evil.sh`, "", `../outside/evil.sh: it lies outside of the workspace`},
		{`sh linked.sh`, "", `linked.sh: it is a link that leads out of the workspace`},
		{outside + `/evil.sh`, "", outside + `/evil.sh: it lies outside of the workspace`},
		{`python3 tests`, "", `tests: it is a folder`},
		{`python3 -m tests`, "", `the module that python3 runs`},
		{`python3 -mtests`, "", `the module that python3 runs`},
		{`python3 -m unittest tests/t.py`, "tests/t.py", `the code of the workspace that unittest loads`},
		{`pytest tests/t.py`, "tests/t.py", `the code of the workspace that pytest loads`},
		{`node --test tests/t.py`, "tests/t.py", `the code of the workspace that node --test loads`},
		{`bash -eo pipefail build.sh`, "build.sh", ""},
		{`find . -name '*.sh' -exec sh {} \;`, "", `the files that find gives to sh`},
		{`ls *.sh | xargs sh`, "", `the files that xargs gives to sh`},
		{`sh "`, "", `its files: it cannot be read`},
		{`sh x{1..1000000000}.sh`, "", `x{1..1000000000}.sh, which sh runs: it stands for too many files; all its files: its words expand to too many`},
	} {
		got := In(c.command, Place{Dir: dir, Home: filepath.Dir(dir), Env: []string{"HOME", "S"}})
		files := named(dir, got)
		if strings.HasPrefix(c.command, "ls *.sh") || c.command == `sh linked.sh` {
			files = "" // those that are named beside
		}
		if files != c.files || strings.Join(got.Unbound, "; ") != c.unbound {
			t.Errorf("%s: %q not bound: %q; want %q, %q", c.command, files, got.Unbound, c.files, c.unbound)
		}
	}
}

// What the shell would really open is among what was found.
func TestAgreesWithTheShell(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: bash is not installed")
	}
	dir, _ := workspace(t)
	for _, words := range []string{`b*.sh`, `{build,bundle}.sh`, `b{ui,und}l?(e|d).sh`, `$'bu\151ld.sh'`, `"$PWD"/[ab]*.sh`, `*/b*.sh`, `sub/../b[!u]*.sh b?ild.sh`, `~/b*.sh`, `../w*/b*.sh`, `"a b.sh" a\ b.*`, `s{u,}b/*/x.py`, `b*[x].sh`} {
		cmd := exec.Command(shell, "-c", `printf '%s\n' `+words)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil && !strings.Contains(words, "?(") {
			t.Fatal(words, err)
		}
		found := In("cat "+words, Place{Dir: dir, Home: dir})
		for name := range strings.Lines(string(out)) {
			path := join(dir, strings.TrimSuffix(name, "\n"))
			if _, err := os.Stat(path); err == nil && !slices.Contains(found.Named, path) {
				t.Errorf("%s: the shell takes %s, found %q", words, path, found.Named)
			}
		}
	}
}

// What programs read unasked is found in the folders above too, and told of where it is missing.
func TestImplied(t *testing.T) {
	t.Parallel()
	dir, _ := workspace(t)
	got := In("cd sub/deep && npm test", Place{Dir: dir}).Implied
	for _, want := range []string{"package.json", "sub/package.json", "sub/deep/package.json", "sub/deep/.npmrc"} {
		if !slices.Contains(got, filepath.Join(dir, want)) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	if got := In("make", Place{Dir: dir}).Implied; !slices.Contains(got, filepath.Join(dir, "GNUmakefile")) {
		t.Errorf("%q: one that appears would be taken before the Makefile", got)
	}
}

// No text makes it fail or take long.
func FuzzIn(f *testing.F) {
	for _, text := range []string{"sh b*.sh", "{a,b}{c,d}{e,f}", "bash -c 'bash -c \"bash -c x\"'", "x=$y;y=$x; cd $x", "for i in $i; do :; done", "${x[$(", "a=(1 2); sh ${a[@]}", "$((x[0]))"} {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		got := In(text, Place{Dir: dir, Home: dir})
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if len(got.Named) > maxNames || len(got.Unbound) > maxUnbound+1 {
			t.Errorf("%d names, %d clauses", len(got.Named), len(got.Unbound))
		}
	})
}
