package permit

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus reads testdata/bypass: the header names the profile, each line is a
// verdict, a tab and a command, in which ␤ stands for a newline.
func corpus(t testing.TB, each func(p *Profile, want Verdict, command, at string)) int {
	t.Helper()
	files, err := filepath.Glob("testdata/bypass/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	n := 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var p *Profile
		scan := bufio.NewScanner(f)
		for line := 1; scan.Scan(); line++ {
			text := scan.Text()
			at := filepath.Base(name) + ":" + itoa(line)
			if preset, ok := strings.CutPrefix(text, "# profile: "); ok {
				p = mustPreset(t, preset)
				continue
			}
			if rules, ok := strings.CutPrefix(text, "# rules: "); ok {
				var r Rules
				if err := json.Unmarshal([]byte(rules), &r); err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				p = mustCompile(t, r)
				continue
			}
			word, command, ok := strings.Cut(text, "\t")
			if !ok {
				if !strings.HasPrefix(text, "#") {
					t.Fatalf("%s: neither comment nor case", at)
				}
				continue
			}
			want, err := ParseVerdict(word)
			if err != nil || p == nil {
				t.Fatalf("%s: verdict %v, profile %v", at, err, p)
			}
			n++
			each(p, want, strings.ReplaceAll(command, "␤", "\n"), at)
		}
		f.Close()
	}
	return n
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestCorpus(t *testing.T) {
	t.Parallel()
	n := corpus(t, func(p *Profile, want Verdict, command, at string) {
		j := p.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{})
		if j.Verdict != want {
			t.Errorf("%s: %q is %s, want %s\n%s", at, command, j.Verdict, want, drawn(p.Name(), j, false))
		}
	})
	if n < 300 {
		t.Errorf("the corpus has only %d cases", n)
	}
}
