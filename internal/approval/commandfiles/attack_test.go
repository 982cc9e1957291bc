//go:build unix

package commandfiles

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// scripts is a workspace in which each file that is run says so in a log.
func scripts(t *testing.T) (dir, log string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, log = filepath.Join(base, "work"), filepath.Join(base, "log")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"work/b.sh", "work/c.sh", "work/sub/b.sh", "work/sub/deep/b.sh", "work/bin/tool", "work/1.sh", "other/b.sh"} {
		write(name, fmt.Sprintf("#!/bin/sh\necho %s >>%s\n", filepath.Join(base, name), log))
	}
	for _, name := range []string{"work/p.py", "work/lib/json.py", "work/lib/mod.py", "work/sub/test_x.py"} {
		write(name, fmt.Sprintf("open(%q, 'a').write(%q)\n", log, filepath.Join(base, name)+"\n"))
	}
	for _, name := range []string{"work/m.mk", "work/inc.mk", "work/sub/Makefile"} {
		write(name, fmt.Sprintf("$(shell echo %s >>%s)\nall:\n\t@true\n", filepath.Join(base, name), log))
	}
	write("work/inc/Makefile", "-include ../inc.mk\n")
	write("work/runs/Makefile", "all:\n\t@sh ../b.sh\n")
	write("work/npm/package.json", `{"name":"x","version":"1.0.0","scripts":{"test":"sh ../b.sh"}}`)
	write("work/gen/go.mod", "module x\n")
	write("work/gen/x.go", "package x\n\n//go:generate sh ../b.sh\n")
	write("work/names", "b.sh\n")
	write("work/programs", "./b.sh\n")
	write("work/folder", "sub\n")
	write("work/cmd", "cd sub && sh b.sh\n")
	write("work/e.awk", fmt.Sprintf("BEGIN { print %q >> %q }\n", filepath.Join(dir, "e.awk"), log))
	for i := range 20 {
		write(fmt.Sprintf("work/d%d/x", i), "")
	}
	for link, to := range map[string]string{"link": "sub/deep", "up": "sub", "b2.sh": "c.sh"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, log
}

// What a command runs of the workspace is bound, or the card says what is not. What a script that is bound starts in turn is
// neither.
func TestWhatRunsIsBoundOrSaid(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: bash is not installed")
	}
	dir, log := scripts(t)
	many := ""
	for i := range 20 {
		many += fmt.Sprintf("cd d%d; cd ..; ", i)
	}
	for _, command := range []string{
		// folders
		`cd sub && sh b.sh`, `"cd" sub && sh b.sh`, `builtin cd sub && sh b.sh`, `command cd sub && sh b.sh`, `cd -- sub; sh b.sh`, `cd sub extra 2>/dev/null || cd sub; sh b.sh`,
		`cd ./sub/deep/.. && sh b.sh`, `cd link && sh b.sh`, `cd link && cd .. && sh b.sh`, `cd -P link && cd .. && sh b.sh`, `cd -P link/.. && sh b.sh`, `sh link/../b.sh`, `./link/../b.sh`, `. link/../b.sh`,
		`env -C sub sh b.sh`, `env --chdir=sub sh b.sh`, `env -Csub sh b.sh`, `pushd sub >/dev/null; sh b.sh`, `CDPATH=sub cd deep >/dev/null && sh b.sh`, `cd sub; cd - >/dev/null; cd sub/deep; sh b.sh`,
		`cd ../other && sh b.sh`, `cd "$(cat folder)" && sh b.sh`, `cd $(cat folder); ./b.sh`, `(cd sub; exec sh b.sh)`, `find sub -maxdepth 1 -name b.sh -execdir sh b.sh \;`, `find . -name b.sh -execdir ./b.sh \;`,
		`find sub -maxdepth 1 -name b.sh -execdir {} \;`, `d=sub; cd $d; sh b.sh`, `for d in sub; do (cd $d && ./b.sh); done`, `read d <folder; cd "$d"; sh b.sh`, `d=d1; read d <folder; cd "$d"; sh b.sh`,
		many + `cd sub; sh b.sh`, `eval "cd sub; sh b.sh"`, `eval 'cd sub; sh b.sh'`, `trap 'cd sub; sh b.sh' EXIT`, `sh -c "cd sub; ./b.sh"`, `sh <<<'cd sub; sh b.sh'`,
		"sh <<'E'\ncd sub\nsh b.sh\nE", "bash -s <<E\ncd sub\n./b.sh\nE", `echo 'cd sub; sh b.sh' | sh`, `printf 'cd sub\nsh b.sh\n' | bash -s`, `cat cmd | sh`, `sh < <(echo 'cd sub; sh b.sh')`,
		`source <(echo 'cd sub; sh b.sh')`, `bash <(echo 'cd sub; sh b.sh')`, `bash -c "$(cat cmd)"`, `eval "$(cat cmd)"`, `eval $(<cmd)`, `xargs -I{} sh -c '{}' <cmd`, `timeout 5 sh -c 'cd sub && sh b.sh'`,
		// variables
		`x=./c.sh; read x <programs; "$x"`, `$(cat programs)`, `eval $(cat programs)`, `nice $(cat programs)`, `env $(cat programs)`, `x=c.sh; read x <names; sh "$x"`, `x=c.sh; read -r x < <(cat names); sh "$x"`, `x=c.sh; x=$(cat names); sh $x`, `x=c.sh; mapfile -t x <names; sh "$x"`, `x=c.sh; printf -v x %s "$(cat names)"; sh "$x"`,
		`x=c.sh; declare -n y=x; y=$(cat names); sh "$x"`, `set -- $(cat names); sh "$1"`, `bash -c 'set -- $(cat names); sh "$1"' _ c.sh`, `bash -c 'f() { sh "$1"; }; f $(cat names)' _ c.sh`, `bash -c 'shift; sh "$1"' _ c.sh b.sh`,
		`x=c; : $((x=1)); sh $x.sh`, `x=c; let x=1; sh $x.sh`, `x=c; ((x=1)); sh $x.sh`, `for ((x=1;x<2;x++)); do sh $x.sh; done`, `x=c; for ((x=1;x<2;x++)); do sh $x.sh; done`, `x=c; while read x; do sh "$x"; done <names`,
		`a=(c.sh b.sh); sh ${a[1]}`, `a=([3]=b.sh); sh "${a[@]}"`, `x=b; sh ${x}.sh`, `x=xb.sh; sh ${x#x}`, `x=b.txt; sh ${x%.txt}.sh`, `x=B.SH; sh ${x,,}`, `x=bXsh; sh ${x/X/.}`, `x=names; y=x; sh $(cat ${!y})`, `x=b.sh; y=x; sh ${!y}`,
		`export x=b.sh; sh -c 'sh "$x"'`, `x=b.sh sh -c 'sh "$x"'`, `x=c.sh; x=$(cat names) sh -c 'sh "$x"'`, `unset x; sh ${x:-b.sh}`, `unset x; sh ${x:=b.sh}; sh $x`, `IFS=,; x=c.sh,b.sh; sh ${x#*,}`, `x='b.sh'; sh ${x@Q} || sh ${x@P}`,
		`getopts a: o -ab.sh; sh "$OPTARG"`, `OPTARG=c.sh; getopts a: o -a $(cat names); sh "$OPTARG"`, `select x in b.sh; do sh $x; break; done <<<1`, `x=c.sh; select x in $(cat names); do sh $x; break; done <<<1`,
		`coproc cat names; read x <&${COPROC[0]}; sh $x`, `x=c.sh; unset x; x+=b.sh; sh $x`, `PATH=bin:$PATH tool`, `PATH=bin:$PATH; tool`, `export PATH="$PWD/bin:$PATH"; tool`, `env PATH=bin:$PATH tool`, `hash -p bin/tool ls; ls`,
		`BASH_ENV=b.sh bash -c :`, `ENV=b.sh sh -i -c : </dev/null`, "shopt -s expand_aliases; alias x='cd sub; sh b.sh'\nx", `sh() { command sh b.sh; }; sh`, `PYTHONPATH=lib python3 -m mod`, `PYTHONPATH=lib python3 -c 'import mod'`,
		// names
		`sh *.sh`, `sh [b].sh`, `sh ?.sh`, "shopt -s extglob\nsh @(b).sh", `sh b2.sh`, `shopt -s extglob; eval 'sh @(b).sh'`, `shopt -s nullglob; sh b*.sh`, `shopt -s globstar; for f in **/b.sh; do sh $f; done`, `set -f; sh b.sh`, `sh ./././b.sh`, `sh "$(pwd)/b.sh"`, "sh `cat names`",
		`: {1..20000}; make -sf m.mk`, `: {1..20000}; awk -f e.awk`, `make -sfm.mk`, `make -sf m.mk`, `make -s -f m.mk`, `make --file=m.mk -s`, `make -s --makefile m.mk`, `awk -fe.awk`, `awk -f e.awk`, `make -sf "$(echo m.mk)"`, `x=$(echo m.mk); make -sf $x`, `make -sf$(echo m.mk)`,
		`awk -f "$(echo e.awk)"`, `MAKEFILES=m.mk make -s -C runs`, `make -s -C sub`, `make -sC sub`, `make -s -Csub`, `make -s --directory=sub`, `make -s -I . -C inc`, `make -s -C inc`, `make -s -C runs`, `cd runs && make -s`, `cd sub && make -s`, `cd sub && nice make -s`, `\make -s -C sub`,
		`make -s -C "$(echo sub)"`, `make -s -C up`, `make -s -C link/..`, `npm --prefix npm test`, `cd npm && npm test`, `go -C gen generate`, `cd gen && go generate ./...`, `python3 p.py`, `python3 - <p.py`, `python3 <p.py`, `cat p.py | python3`, `python3 -c "exec(open('p' + '.py').read())"`,
		`cd lib && python3 -c 'import mod'`, `cd lib && python3 -m mod`, `cd sub && python3 -m unittest -q`, `cd sub && python3 -m unittest discover -q`, `python3 -m unittest discover -s sub`, `python3 -W ignore p.py`, `python3 -I p.py`, `python3 -X dev p.py`,
		`xargs -a names sh`, `xargs -a names -I{} sh {}`, `<names xargs sh`, `xargs sh <names`, `cat names | xargs -n1 sh`, `xargs -a names env sh`, `sh -- b.sh`, `sh -e -- b.sh`, `sh +e b.sh`, `bash --norc b.sh`, `bash --rcfile b.sh -i </dev/null`, `bash --init-file b.sh -i </dev/null`, `bash -o errexit b.sh`, `bash +o posix b.sh`,
		`exec sh b.sh`, `exec -a x sh b.sh`, `time sh b.sh`, `! sh b.sh`, `nohup sh b.sh`, `setsid -w sh b.sh`, `nice -n 5 sh b.sh`, `env -S 'sh b.sh'`, `env -i sh b.sh`, `env - sh b.sh`, `env -S"sh\_b.sh"`, `timeout 5 ./b.sh`, `timeout -k 1 5 ./sub/b.sh`, `nice ./b.sh`, `flock names ./b.sh`, `flock names -c 'cd sub; sh b.sh'`, `script -qc 'cd sub; sh b.sh' /dev/null`,
		`busybox sh b.sh`, `git -c alias.x='!cd sub; sh b.sh' x`, `find . -maxdepth 1 -name 'b.sh' -exec sh {} +`, `find . -maxdepth 1 -name b.sh | while read f; do sh $f; done`, `ls b.sh | sh -c 'read f; sh $f'`, `sh "$(ls | grep '^b.sh')"`,
		`/bin/sh b.sh`, `/usr/bin/env sh b.sh`, `/usr/bin/env -S sh b.sh`, `perl -e 'system("cd sub; sh b.sh")'`, `awk 'BEGIN{system("cd sub; sh b.sh")}'`, `sed -n '1e cd sub; sh b.sh' names`, `tar -cf /dev/null --checkpoint=1 --checkpoint-action='exec=cd sub; sh b.sh' names`, `split --filter='cd sub; sh b.sh' names`, `python3 -c 'import os; os.system("cd sub; sh b.sh")'`,
		`cp b.sh sub/n.sh; sh sub/n.sh`, `mv b.sh n.sh; sh n.sh; mv n.sh b.sh`, `ln -sf b.sh l.sh; sh l.sh; rm l.sh`, `cat b.sh >n.sh; sh n.sh; rm n.sh`,
	} {
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		found := In(command, Place{Dir: dir, Home: filepath.Dir(dir)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, shell, "-c", command)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, []string{"HOME=" + filepath.Dir(dir), "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "GOCACHE=" + filepath.Join(filepath.Dir(dir), "cache"), "PYTHONDONTWRITEBYTECODE=1"}, time.Second
		out, _ := cmd.CombinedOutput() // how it ends does not matter
		cancel()
		ran, err := os.ReadFile(log)
		if err != nil {
			t.Logf("%s: runs nothing here: %s", command, out)
			continue
		}
		for name := range strings.Lines(string(ran)) {
			name = strings.TrimSuffix(name, "\n")
			if len(found.Unbound) == 0 && !slices.ContainsFunc(slices.Concat(found.Named, found.Implied), func(path string) bool { return same(path, name) }) {
				t.Errorf("%s: it runs %s, which is neither bound nor said", command, strings.TrimPrefix(name, filepath.Dir(dir)))
			}
		}
	}
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}
