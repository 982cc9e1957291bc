package canonical

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What stands in a command in many ways is written in one.
func TestText(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`ls -la`:                         `ls -la`,
		`  ls   -la  # all of them`:      `ls -la`,
		`echo a; echo b`:                 "echo a; echo b",
		"echo a ;echo b\n\necho c;":      "echo a; echo b\necho c",
		`a & b; c`:                       "a &\nb; c",
		"cat <<E; ls\nx\nE\nls":          "cat <<E\nx\nE\nls\nls",
		`a && b || c | d`:                `a && b || c | d`,
		`echo $HOME "$x y" 'z'`:          `echo ${HOME} "${x} y" 'z'`,
		`echo a\ b "c"d\;`:               `echo a' 'b "c"d';'`,
		"ls \\\n  -l":                    `ls -l`,
		"echo `date`":                    `echo $(date)`,
		`git show HEAD~1`:                `git show HEAD~1`,
		`x="a"~b ls`:                     `x="a"'~'b ls`,
		`ls *.{go,md} ~/x [!a]?`:         `ls *.{go,md} ~/x [!a]?`,
		`echo $'a\tb'`:                   "echo 'a\tb'",
		`x=1 y="$z" env`:                 `x=1 y="${z}" env`,
		`ls>f 2>&1`:                      `ls > f 2>&1`,
		`(cd a; ls) &`:                   "(\ncd a\nls\n) &",
		`if a; then b; else c; fi`:       "if\na\nthen\nb\nelse\nc\nfi",
		"cat <<E | wc\na $x \\$\nE\nls":  "cat <<E |\na ${x} \\$\nE\nwc\nls",
		"cat <<-'E'\n\ta\n\tE":           "cat <<'E'\na\nE",
		`bash -c 'ls; $(( 1 ))' x`:       "", // what it runs is computed
		`bash -c "ls  -l;  pwd" x`:       "bash -c 'ls -l; pwd' x",
		`timeout 5 sh -ec 'ls  "$1"'`:    `timeout 5 sh -ec 'ls "${1}"'`,
		`n=1; echo $((n + 2))`:           "n=1; echo $((n + 2))",
		`f() { ls; }; f`:                 "f () {\nls\n}; f",
		`sh -c 'ls "$1"' sh "$x"`:        `sh -c 'ls "${1}"' sh "${x}"`,
		`trap 'rm  -f x' EXIT`:           `trap 'rm -f x' EXIT`,
		`# nothing`:                      `:`,
		"cat <<'E'\na \\\nb\nE":          "cat <<'E'\na \\\nb\nE",
		`echo "it's \"so\" \$5"`:         `echo "it's \"so\" \$5"`,
		`case $x in a|b) ls;; esac`:      "case ${x} in\n(a | b)\nls\n;;\nesac",
		`for i in 1 2; do echo $i; done`: "for i in 1 2\ndo\necho ${i}\ndone",
	} {
		got, err := Text(command)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is\n%q, %v; want\n%q", command, got, err, want)
		}
		if again, err := Text(got); want != "" && (again != got || err != nil) {
			t.Errorf("%q is not its own canonical text: %q, %v", got, again, err)
		}
	}
}

// What could mean something else to the shell than to a reader is opaque, and the reason says what it is.
func TestOpaque(t *testing.T) {
	t.Parallel()
	for command, reason := range map[string]string{
		"":                                    "empty",
		"ls \\\r\nrm x":                       "control character",
		"ls # \\\nrm x":                       "ends in",
		"ls; \x0c rm x":                       "control character",
		"ls \xff":                             "UTF-8",
		"if":                                  "not a valid shell command",
		"$x":                                  "computed",
		`"$(echo rm)" x`:                      "computed",
		"eval ls":                             "eval",
		"source x":                            "source",
		". x":                                 "reads a file",
		"PATH=. ls":                           "PATH",
		"export PATH=.; ls":                   "PATH",
		`export "PATH=./evil"; ls`:            "changes what names mean",
		`declare -n p=PATH; p=x; ls`:          "changes what names mean",
		"BASH_CMDS[ls]=/bin/rm; ls":           "BASH_CMDS",
		"hash -p /bin/rm ls; ls":              "hash",
		"alias ls=rm; ls":                     "alias",
		"enable -n test":                      "enable",
		"a['$(rm x)']=1":                      "arithmetic",
		`b=$(( '$(rm x)' ))`:                  "arithmetic",
		`x='a[$(rm x)]'; ((x))`:               "arithmetic on x",
		`z='a[$(rm x)]'; b=${!z}`:             "computed",
		`let "a[\$(rm x)]"`:                   "let",
		`test -v "a[$x]"`:                     "-v",
		`[ $x = y ]`:                          "not quoted",
		`[[ $x -eq 1 ]]`:                      "evaluates",
		`[ "$1" "$2" ]`:                       "before another one",
		`[ ! "$1" "$2" ]`:                     "before another one",
		`[ -"$1" "$2" ]`:                      "before another one",
		`[ "$a" = "$b" ]`:                     "",
		`[ "$a" \< "$b" ]`:                    "",
		`[ -n "$a" -a "$b" = x ]`:             "",
		`[ \-v "$1" ]`:                        "evaluates",
		`[ -e *.go ]`:                         "",
		`[ -d build/* ]`:                      "",
		`[ * ]`:                               "not quoted",
		`[ -? "$1" ]`:                         "not quoted",
		`[ -[v] "$1" ]`:                       "not quoted",
		`[ {-v,x} ]`:                          "not quoted",
		`read -p * x`:                         "computed",
		`read -p $x y`:                        "computed",
		`read -p "$x?" y`:                     "",
		`getopts * x`:                         "computed",
		`wait *`:                              "computed",
		`jobs [-]x ls`:                        "computed",
		`command e* ls`:                       "computed",
		`command "$x" ls`:                     "computed",
		`HISTCMD=x`:                           "HISTCMD",
		`printf -v x y`:                       "printf",
		`read "a[$x]"`:                        "computed",
		`x="${y:-'$(rm x)'}"`:                 "${…}",
		"x=\"$\\\n(rm x)\"":                   "ends in",
		"cat <<E\nE\\\n\nrm x\nE":             "ends in",
		`cat <<"E\"F"` + "\nx\nE\"F\n":        "valid",
		`bash script -c`:                      "",
		`echo ls | bash`:                      "reads its commands",
		`bash -s < x`:                         "reads its commands",
		`bash -c "$x"`:                        "computed",
		`sh -c 'a=(1)'`:                       "valid",
		`env bash -c 'eval x'`:                "eval",
		`zsh -c ls`:                           "not judged",
		`python3() { ls; }; env python3 x`:    "argument",
		`ls() { :; }; ls; bash -c 'ls'`:       "not known to a shell inside",
		`rm x; rm() { :; }`:                   "everywhere",
		`if a; then rm() { :; }; fi; rm x`:    "everywhere",
		`(rm() { :; }); rm x`:                 "everywhere",
		`cd() { rm x; }; cd`:                  "something else",
		`coproc ls`:                           "coprocess",
		`rm -rf ~root`:                        "somebody's home",
		`trap "$x" EXIT`:                      "computed",
		`trap ls DEBUG`:                       "between",
		`set -o allexport`:                    "set",
		`shopt -s expand_aliases`:             "shopt",
		`i='a[$(rm x)]' bash -c '((i));i=1'`:  "arithmetic on i",
		`LC_ALL=zh_TW.BIG5; echo "あ\$(rm x)"`: "read letters otherwise",
		`export LANG=ja_JP.SJIS; ls`:          "read letters otherwise",
		`LC_ALL=$x ls`:                        "read letters otherwise",
		`for LANG in zh_TW.BIG5; do ls; done`: "read letters otherwise",
		`LC_ALL=C LANG=en_US.utf8 sort f`:     "",
		strings.Repeat("(", 100):              "nested",
		strings.Repeat("a", maxLength+1):      "longer",
	} {
		got, err := Text(command)
		var opaque *Opaque
		if reason == "" && err == nil && !strings.Contains(got, "rm") {
			continue // read without the part that another reader would run
		}
		if !errors.As(err, &opaque) || !strings.Contains(opaque.Reason, reason) {
			t.Errorf("%.60q is %q, %v; want opaque: %s", command, got, err, reason)
		}
	}
}

// Whatever comes in, there is no panic, and a canonical text is its own.
func FuzzText(f *testing.F) {
	for _, c := range ordinary(f) {
		f.Add(c)
	}
	attacks, err := os.ReadFile("testdata/attacks.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(attacks)) {
		f.Add(strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(strings.TrimSuffix(line, "\n")))
	}
	f.Fuzz(func(t *testing.T, command string) {
		got, err := Text(command)
		if err != nil {
			return
		}
		if again, err := Text(got); err != nil || again != got {
			t.Errorf("%q is %q, and that %q, %v", command, got, again, err)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for name, command := range map[string]string{"short": "git status --short", "long": `for f in *.go; do echo "$f: $(wc -l < "$f")"; done && cat <<'E' | sort
a
E`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Text(command); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A variable that bash takes for a number evaluates whatever is assigned to it, so none may be assigned.
func TestVariablesThatEvaluateAreNotAssigned(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	out, err := exec.CommandContext(t.Context(), bash, "--norc", "-c", "declare -pi").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // declare -i RANDOM="1"
		if len(fields) < 3 {
			continue
		}
		found++
		if name, _, _ := strings.Cut(fields[2], "="); !changesMeaning(name) {
			t.Errorf("%s may be assigned, and evaluates what it is assigned", name)
		}
	}
	if found < 4 {
		t.Errorf("only %d variables were found:\n%s", found, out)
	}
}
