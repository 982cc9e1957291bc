package shell

import (
	"reflect"
	"strings"
	"testing"
)

// flat lists the parts as "kind text", opaque ones with a trailing "?".
func flat(command string) []string {
	var out []string
	Parse(command, nil).All(func(p *Part, depth int) {
		s := strings.Repeat(".", depth) + string(p.Kind) + " " + p.Text
		if p.Opaque {
			s += " ?"
		}
		out = append(out, s)
	})
	return out
}

func TestShellParts(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"":                      nil,
		"# only a comment":      nil,
		"ls   -l\t'a b'  \"c\"": {"command ls -l 'a b' c"},
		`echo --x=1 a=b`:        {"command echo --x=1 a=b"},
		`echo "it's" '' '$x'`:   {`command echo "it's" '' '$x'`},
		`echo $x "$y"z *.go ~/a`: {
			`command echo $x "$y"z *.go ~/a`,
		},
		`echo a\ b \$x '*'`:   {`command echo 'a b' '$x' '*'`},
		`echo {a,b}{1,2} {x}`: {"command echo a1 a2 b1 b2 {x}"},
		`{,a} {b,}c`:          {"command a bc c"},
		`echo {1..3}`:         {"command echo {1..3}"},
		"a | b |& c":          {"command a", "command b", "command c"},
		"a && b || ! c; d &":  {"command a", "command b", "command c", "command d"},
		"echo $(a `b` <(c))":  {"command echo $(a `b` <(c))", ".command a `b` <(c)", "..command b", "..command c"},
		"x=$(a) b":            {"command b", ".command a"},
		"x=1":                 {"plain x=1"},
		"export A=1 B=$(c)":   {"plain export A=1 B=$(c)", ".command c"},
		"PATH=x a":            {"command a ?"},
		"a > o 2>> e < i 2>&1 >/dev/null &> all": {
			"command a", "write > o", "write >> e", "read < i", "write > all",
		},
		"a >& f":                          {"command a", "write > f"},
		"a <<E\n$(b)\nE":                  {"command a", "command b"},
		"a <<'E'\n$(b)\nE":                {"command a"},
		"{ a; } > o":                      {"command a", "write > o"},
		"a > $f":                          {"command a", "write > $f ?"},
		"cd s && a > o":                   {"plain cd s", "command a", "write > o"},
		"env -i A=1 nice -n 3 a b":        {"wrapper env -i A=1 nice -n 3 a b", ".wrapper nice -n 3 a b", "..command a b"},
		"command -v a":                    {"command command -v a"},
		"sudo -u x a":                     {"command sudo -u x a", ".guess a"},
		"xargs -n1 a b":                   {"wrapper xargs -n1 a b", ".command a b"},
		"sh -c 'a; b'":                    {"wrapper sh -c 'a; b'", ".command a", ".command b"},
		"sh x.sh":                         {"command sh x.sh"},
		"sh":                              {"command sh ?"},
		"find . -exec a {} ';' -ok b ';'": {"command find . -exec a {} ';' -ok b ';'", ".command a {}", "..guess a .", ".command b"},
		"f() { a; }; f":                   {"command a", "plain f"},
		"$x a":                            {"command $x a ?"},
		"a; if":                           {"command a", "unknown if ?"},
		"[[ -f $(a) ]] && (( $(b) ))":     {"command a", "command b"},
		"time a":                          {"command a"},
		"timeout 5":                       {"command timeout 5"},
		"for i in $(a); do b; done":       {"command a", "command b"},
		"git -C d -c user.name=x log":     {"command git -C d -c user.name=x log"},
	} {
		if got := flat(command); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", command, got, want)
		}
	}
}

func TestShellActions(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"git push origin main > log": {"tool:bash:git push origin main", "tool:write:log"},
		"cd a/b && x > ../c":         {"tool:bash:cd a/b", "tool:bash:x", "tool:write:a/c"},
		"(cd a); x > o":              {"tool:bash:cd a", "tool:bash:x", "tool:write:o"},
		"cd /etc && x < passwd":      {"tool:bash:cd /etc", "tool:bash:x", "tool:read:/etc/passwd"},
		"cd /etc; x < passwd":        {"tool:bash:cd /etc", "tool:bash:x", "tool:read:passwd", "tool:read:/etc/passwd"},
		"{ cd a; x; } > ../o":        {"tool:bash:cd a", "tool:bash:x", "tool:write:../o"},
		"cd a && cd b; x > ../o":     {"tool:bash:cd a", "tool:bash:cd b", "tool:bash:x", "tool:write:../o", "tool:write:o", "tool:write:a/o"},
	} {
		var got []string
		Parse(command, nil).All(func(p *Part, _ int) { got = append(got, p.Action) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestQuoting(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "--a=b": "--a=b", "a b": "'a b'", "": "''", "~x": "'~x'", "a~": "a~", "#x": "'#x'", "a#": "a#",
		"{a,b}": "'{a,b}'", "{}": "{}", "é": "é", "a\nb": `$'a\nb'`, "[x]": "'[x]'", "[": "[", "it's": `"it's"`, "!": "!",
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestAnsiC(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`abc`: "abc", `\x67it`: "git", `\147it`: "git", `\u0067`: "g", `\U00000067`: "g", `\n\t\\\'`: "\n\t\\'", `\q`: `\q`, `a\0b`: "a",
		`\e`: "\x1b", `\cA`: "\x01", `\x`: "", `end\`: `end\`,
	} {
		if got := ansiC(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestShellBounds(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"long":          strings.Repeat("a ", maxCommandLen),
		"parentheses":   strings.Repeat("(", 50_000),
		"substitutions": strings.Repeat("$(", 50_000),
		"arithmetic":    strings.Repeat("$((", 20_000),
		"backquotes":    strings.Repeat("`", 50_001),
		"unwrapping":    strings.Repeat("sudo ", 5_000) + "ls",
		"evals":         strings.Repeat("eval ", 5_000) + "ls",
		"commands":      strings.Repeat("a;", 30_000),
	} {
		opaque := false
		n := 0
		Parse(command, nil).All(func(p *Part, _ int) { opaque = opaque || p.Opaque; n++ })
		if !opaque {
			t.Errorf("%s: nothing is opaque", name)
		}
		if n > maxParts+1 {
			t.Errorf("%s: %d parts", name, n)
		}
	}
}
