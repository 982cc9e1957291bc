package serverconfig

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func lookup(name string) (string, bool) {
	value, ok := map[string]string{"KEY": "test-key", "EMPTY": "", "HOST": "example.test", "ODD": "${KEY}"}[name]
	return value, ok
}

func TestParseConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []Server
		problems   []string
	}{
		{"common", `{"mcpServers":{"b":{"command":"npx","args":["-y","x"],"env":{"K":"${KEY}"},"cwd":"sub"},"a":{"type":"http","url":"https://${HOST}/mcp","headers":{"Authorization":"Bearer ${KEY}"}}}}`,
			[]Server{
				{Name: "a", Type: HTTP, URL: "https://example.test/mcp", Headers: map[string]string{"Authorization": "Bearer test-key"}},
				{Name: "b", Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"K": "test-key"}, Dir: "sub"},
			}, nil},
		{"bare", `{"a":{"command":"x"}}`, []Server{{Name: "a", Command: "x"}}, nil},
		{"list", `[{"name":"a","command":"x","args":["1",2],"env":{"N":3,"T":true}}]`,
			[]Server{{Name: "a", Command: "x", Args: []string{"1", "2"}, Env: map[string]string{"N": "3", "T": "true"}}}, nil},
		{"list within", `{"mcp_servers":[{"name":"a","command":"x"}]}`, []Server{{Name: "a", Command: "x"}}, nil},
		{"other keys", `{"mcp":{"servers":{"a":{"command":"x"}}},"theme":"dark"}`, []Server{{Name: "a", Command: "x"}}, nil},
		{"a server called mcp", `{"mcp":{"command":"x"}}`, []Server{{Name: "mcp", Command: "x"}}, nil},
		{"a command as a list", `{"a":{"type":"local","command":["x","y"],"enabled":true,"environment":{"A":"b"}}}`,
			[]Server{{Name: "a", Command: "x", Args: []string{"y"}, Env: map[string]string{"A": "b"}}}, nil},
		{"spellings", `{"a":{"type":"streamable-http","serverUrl":"http://h/x"},"b":{"transport":"SSE","url":"http://h/x"},"c":{"url":"http://h/x"},"d":{"type":"stdio","command":"x"}}`,
			[]Server{{Name: "a", Type: HTTP, URL: "http://h/x"}, {Name: "b", Type: SSE, URL: "http://h/x"}, {Name: "c", URL: "http://h/x"}, {Name: "d", Type: Stdio, Command: "x"}}, nil},
		{"times", `{"a":{"command":"x","timeout":10,"tool_timeout":60000},"b":{"command":"x","startTimeout":"1m30s","toolTimeout":1.5}}`,
			[]Server{{Name: "a", Command: "x", StartTimeout: 10 * time.Second, CallTimeout: time.Minute},
				{Name: "b", Command: "x", StartTimeout: 90 * time.Second, CallTimeout: 1500 * time.Millisecond}}, nil},
		{"switched off", `{"a":{"command":"x","disabled":true},"b":{"command":"x","enabled":false},"c":{"command":"x","disabled_tools":["t"]}}`,
			[]Server{{Name: "a", Command: "x", Disabled: true}, {Name: "b", Command: "x", Disabled: true}, {Name: "c", Command: "x", DisabledTools: []string{"t"}}}, nil},
		{"variables", `{"a":{"command":"${MISSING:-/bin/x}","args":["${EMPTY:-d}","${EMPTY}","${env:KEY}","a${KEY}b${KEY}","$KEY","${KEY","${ODD}","${MISSING:-a:-b}"]}}`,
			[]Server{{Name: "a", Command: "/bin/x", Args: []string{"d", "", "test-key", "atest-keybtest-key", "$KEY", "${KEY", "${KEY}", "a:-b"}}}, nil},
		{"nothing", `{"mcpServers":{}}`, nil, nil},
		{"null", `{"mcpServers":null}`, nil, nil},
		{"bom", "\xef\xbb\xbf{\"a\":{\"command\":\"x\"}}", []Server{{Name: "a", Command: "x"}}, nil},
		{"one bad, one good", `{"a":{"command":"x","env":{"K":"${MISSING}"}},"b":{"command":"x"}}`, []Server{{Name: "b", Command: "x"}},
			[]string{"MCP server a: the environment variable MISSING is not set"}},
		{"mistakes", `{"a":{},"b":{"command":"x","url":"http://h"},"c":{"url":"ftp://h"},"d":{"command":3.5,"args":"x"},"e":"x","f":{"type":"pigeon","command":"x"},` +
			`"g":{"type":"http","command":"x"},"h":{"command":"x","timeout":"soon"},"i":{"command":"x","env":{"A=B":"c"}},"j":{"url":"http://h","headers":{"A b":"c"}},` +
			`"k":{"command":"a\u0000b"},"l\nl":{"command":"x"},"":{"command":"x"},"m":{"command":"x","disabled":"yes"},"n":{"type":"stdio","url":"http://h"},"o":{"url":"http://h","headers":{"A":"b\r\nC: d"}},"p":{"command":{}}}`,
			nil, []string{"this is no name", "a: it has neither", "b: it has both", "c: its url", `d: "args" must be a list`, "e: it must be an object", `f: type "pigeon"`, "g: type http needs",
				`h: "timeout" must`, `i: "A=B" is no`, `j: "A b" is no HTTP header`, "k: there is a zero byte", "this is no name", `m: "disabled" must be true or false`, "n: type stdio needs", `o: "A" is no`, `p: "command" must be a string`}},
		{"names in a list", `[{"command":"x"},{"name":"a","command":"x"},{"name":"a","command":"y"},7]`, []Server{{Name: "a", Command: "x"}},
			[]string{"number 1 in the list", "number 4 in the list", "a: there are two"}},
	} {
		got, problems, err := ParseConfig([]byte(c.text), lookup)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(got) != len(c.want) || len(got) > 0 && !slices.EqualFunc(got, c.want, func(a, b Server) bool { return reflect.DeepEqual(a, b) }) {
			for _, s := range got {
				type open Server
				t.Errorf("%s: got %+v", c.name, open(s))
			}
		}
		if len(problems) != len(c.problems) {
			t.Errorf("%s: problems %v", c.name, problems)
			continue
		}
		for i, want := range c.problems {
			if !strings.Contains(problems[i].String(), want) {
				t.Errorf("%s: %q, want %q", c.name, problems[i], want)
			}
			if strings.Contains(problems[i].String(), "test-key") {
				t.Errorf("%s: a secret in %q", c.name, problems[i])
			}
		}
	}
	for _, text := range []string{``, ` `, `x`, `3`, `"x"`, `null`, `{"a":`, `{"mcpServers":3}`, strings.Repeat("x", largestConfig+1), `{"mcpServers":"x"}`} {
		if _, _, err := ParseConfig([]byte(text), lookup); err == nil {
			t.Errorf("%.30q was taken", text)
		}
	}
	if _, _, err := ParseConfig([]byte("{\n\n \"a\": }"), nil); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers":{"a":{"command":"npx","args":["${KEY:-x}"],"env":{"A":"${KEY}"}}}}`, `[{"name":"a","command":"x"}]`, `{"a":{"url":"http://h/x","headers":{"A":"b"}}}`,
		`{"mcp":{"mcp":{"mcp":{}}}}`, `{"servers":[null,{}]}`, `{"a":{"command":["x"],"timeout":1e99}}`, `{"a":{"command":"${${KEY}}"}}`, `[[[[`, `{"a":{"command":"x","type":null,"args":[null]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, problems, err := ParseConfig(data, lookup)
		if err != nil && (servers != nil || problems != nil) {
			t.Fatal("an error and servers")
		}
		again, _, _ := ParseConfig(data, lookup)
		if !reflect.DeepEqual(servers, again) {
			t.Fatal("it depends on the day")
		}
		seen := map[string]bool{}
		for _, s := range servers {
			if err := s.check(); err != nil || s.Name == "" || seen[s.Name] || s.StartTimeout < 0 || s.CallTimeout < 0 {
				t.Fatalf("%s: %v", s, err)
			}
			seen[s.Name] = true
			_ = fmt.Sprint(s)
		}
		for _, p := range problems {
			if strings.ContainsAny(p.String(), "\n\x00") {
				t.Fatalf("%q", p.String())
			}
		}
	})
}

func TestServerFile(t *testing.T) {
	t.Parallel()
	text, err := AddServer(nil, "files", NewServer{Command: "mcp-files", Args: []string{"/tmp"}, Env: map[string]string{"A": "${A}"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, err = AddServer(text, "far", NewServer{URL: "https://mcp.example.org/mcp"}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]NewServer{"files": {Command: "x"}, "both": {Command: "x", URL: "https://example.org"}, "none": {}, "bad": {URL: "ftp://example.org"}} {
		if _, err := AddServer(text, name, s); err == nil {
			t.Errorf("%s was added", name)
		}
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := WritePrivate(file, text); err != nil {
		t.Fatal(err)
	}
	servers, problems, err := ReadServers(file)
	if err != nil || len(servers) != 1 && len(problems) == 0 {
		t.Errorf("%v %v %v", servers, problems, err)
	}
	text, there, err := RemoveServer(text, "files")
	if err != nil || !there {
		t.Errorf("%v %v", there, err)
	}
	if _, there, err := RemoveServer(text, "files"); err != nil || there {
		t.Errorf("%v %v", there, err)
	}
}
