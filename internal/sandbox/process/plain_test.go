package process

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"chorus/internal/sandbox"
)

func TestPlainWords(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(builtins) {
		t.Fatal("builtins must be sorted")
	}
	for command, want := range map[string]string{
		"go test ./...":             "go|test|./...",
		"git  log --format='%h %s'": "git|log|--format=%h %s",
		`grep -r "two words" a'b'c`: "grep|-r|two words|abc",
		"ls ''":                     "ls|",
		"ls":                        "ls",
		"":                          "",
		"ls *.go":                   "", "ls ~": "", "a=b ls": "", "ls; ls": "", "ls | wc": "", "ls > x": "", "echo $X": "",
		`ls "$X"`: "", "ls `x`": "", "ls {a,b}": "", "ls # x": "", "ls\nls": "", "ls 'x": "", `ls "a\n"`: "", "ls \\x": "", "ls &": "",
		"'' x": "", "ls !x": "", "ls 'a\nb'": "", "ls ?": "", "ls [a]": "", "(ls)": "", "ls ж": "",
	} {
		if got := strings.Join(plainWords(command), "|"); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	for _, own := range []string{"echo hi", "cd /", "exit 3", "time ls", "true", "[ a ]"} {
		if words := direct(sandbox.Command{Shell: own}); words != nil {
			t.Errorf("%q would be started without a shell: %q", own, words)
		}
	}
}

func TestPortable(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"true 5": true, "cd src && go test ./... 2>&1 | tail -20": true, "echo hi >> effects.txt": true, "ls; pwd": true,
		"grep -r 'a|b' . || true": true, "echo 'a;b' > x": true, "cat < in > out 2>/dev/null": true, "exit 3": true, "nosuch; echo done": true,
		"echo -e 'a'": false, `echo 'a\nb'`: false, "cd -": false, "a &": false, "a &> x": false, "a >& x": false, "a |& b": false, "echo $X": false,
		"[[ a == b ]]": false, "if true; then ls; fi": false, "time ls": false, "ls > $X": false, "x=1; ls": false, "": false, "ls &&": false,
		"printf '%q' x": false, "source x": false, "ls <(a)": false, "cat <<EOF": false, "ls >| x": false, "echo a\necho b": false, "set -e; ls": false,
	} {
		if portable(command) != want {
			t.Errorf("%q: %v", command, !want)
		}
	}
}

// FuzzPlainWords holds the words against bash's own.
func FuzzPlainWords(f *testing.F) {
	for _, s := range []string{"go test ./...", "a 'b c' \"d\"", "x ''", "a=b", "git log --format='%h'", "a~ ~b", "a{1,2}"} {
		f.Add(s)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("no bash")
	}
	f.Fuzz(func(t *testing.T, s string) {
		words := plainWords(s)
		if len(words) == 0 || len(s) > 4096 {
			return
		}
		out, err := exec.Command(bash, "-c", "printf '%s\\0' "+s).Output()
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
			t.Fatalf("%q: %q, bash %q", s, words, got)
		}
	})
}
