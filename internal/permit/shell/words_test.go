package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		`sh build.sh`:                                {"sh", "build.sh"},
		`./x&&cat<in>out`:                            {"./x", "cat", "in", "out"},
		`cat "my file" a\ b 'c d'`:                   {"my file", "a b", "c d"},
		`bash -c "sh inner.sh && ./y"`:               {"inner.sh", "./y"},
		`curl -d @body.json --config=c.ini a:b`:      {"body.json", "c.ini", "a", "b"},
		"for f in a b; do\n(source lib.sh)\ndone":    {"lib.sh", "a", "b"},
		`echo $(cat deep.txt) ` + "`cat older.txt`":  {"deep.txt", "older.txt"},
		`python - <<EOF` + "\nopen('data.csv')\nEOF": {"data.csv"},
		`cat {a,b}.txt`:                              {"a.txt", "b.txt"},
		`cat a.txt; if b'`:                           {"a.txt", "b"},
	} {
		got := Words(command)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q is not among %q", command, w, got)
			}
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "sh a", `"`, `\`, "a'b\"c", "x=1 y", "\x00\xff", "if sh a.sh", "$((((", "cat {a,b}.txt", strings.Repeat("a ", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		got := Words(command)
		if len(got) > maxWords {
			t.Fatalf("%d words", len(got))
		}
		for _, w := range got {
			if w == "" {
				t.Fatal("an empty word")
			}
		}
	})
}
