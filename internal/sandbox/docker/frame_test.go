package docker

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const testToken = "\x1eTOKEN"

// through feeds a stream in pieces of the given sizes, the rest at once.
func through(f *frame, stream []byte, sizes ...int) string {
	var text []byte
	for _, n := range sizes {
		n = min(max(n, 0), len(stream))
		text = append(text, f.feed(bytes.Clone(stream[:n]))...)
		stream = stream[n:]
	}
	text = append(text, f.feed(bytes.Clone(stream))...)
	return string(append(text, f.flush()...))
}

func TestFrame(t *testing.T) {
	t.Parallel()
	const begin, end = testToken + " start 12 345\n", testToken + " end 3 1 0\n"
	tests := []struct {
		name, in, text, note string
		state                stage
	}{
		{"whole", "WARNING: x\n" + begin + "out" + end + "hint\n", "out", "WARNING: x\nhint\n", after},
		{"nothing", begin + end, "", "", after},
		{"never began", "Error: no\n", "", "Error: no\n", before},
		{"never ended", begin + "out" + testToken[:3], "out" + testToken[:3], "", inside},
		{"a token alone", begin + "a" + testToken + "b\n" + end, "a" + testToken + "b\n", "", after},
		{"odd words", begin + testToken + " end x 1 0\n" + testToken + " end 1\n" + testToken + " start 1 2\n" + end,
			testToken + " end x 1 0\n" + testToken + " end 1\n" + testToken + " start 1 2\n", "", after},
		{"a line without end", begin + testToken + " end " + strings.Repeat("1", maxWord) + end, testToken + " end " + strings.Repeat("1", maxWord), "", after},
		{"end before start", end + begin + "x", "x", testToken + " end 3 1 0\n", inside},
	}
	for _, tt := range tests {
		for _, sizes := range [][]int{nil, slicesOf(1, len(tt.in)), slicesOf(7, len(tt.in))} {
			f := &frame{token: testToken}
			if text := through(f, []byte(tt.in), sizes...); text != tt.text || string(f.note) != tt.note || f.state != tt.state {
				t.Errorf("%s: %q, note %q, state %d", tt.name, text, f.note, f.state)
			}
			if f.state == after && (f.start != started{"12", "345"} || f.end != ended{3, 1, 0}) {
				t.Errorf("%s: %+v %+v", tt.name, f.start, f.end)
			}
		}
	}
	f := &frame{token: testToken}
	if text := through(f, []byte(begin+testToken+" none\n"+end)); text != "" || !f.none {
		t.Errorf("no program: %q, %v", text, f.none)
	}
	f = &frame{token: testToken}
	if through(f, bytes.Repeat([]byte("x"), 3*maxNote)); len(f.note) != maxNote {
		t.Errorf("kept %d bytes of what docker says", len(f.note))
	}
	// Nothing that text has is held back: it would come late to who watches.
	f = &frame{token: testToken, state: inside}
	if text := f.feed([]byte("prompt> ")); string(text) != "prompt> " {
		t.Errorf("held back: %q", text)
	}
}

func slicesOf(size, total int) (sizes []int) {
	for range total/size + 1 {
		sizes = append(sizes, size)
	}
	return sizes
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("x"), 1, 2)
	f.Add([]byte("a\x1eTOK\x1eTOKEN end 1 2\n"), 20, 5)
	f.Add([]byte("\x1eTOKEN\x1eTOKEN none\n"), 3, 30)
	f.Fuzz(func(t *testing.T, body []byte, i, j int) {
		if bytes.Contains(body, []byte(testToken+" end ")) || bytes.Contains(body, []byte(testToken+" none")) {
			return // that is the end
		}
		stream := []byte("docker\n" + testToken + " start 1 2\n" + string(body) + testToken + " end 0 0 0\n")
		fr := &frame{token: testToken}
		text := through(fr, stream, i, j)
		// A body that ends in an open line of the token takes ours into it; text is lost never.
		if fr.state == after && text != string(body) {
			t.Fatalf("%q came out as %q", body, text)
		}
		if fr.state == inside && text != string(stream[len("docker\n"+testToken+" start 1 2\n"):]) {
			t.Fatalf("%q came out as %q", body, text)
		}
	})
}

func TestMapping(t *testing.T) {
	t.Parallel()
	m, err := newMapping("/home/me/work/", "/w/")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"/home/me/work": "/w", "/home/me/work/": "/w", "/home/me/work/a b/c": "/w/a b/c", "/home/me/work/./x/../y": "/w/y", "/home/me/work/--x": "/w/--x",
		"/home/me/workshop": "", "/home/me": "", "/home/me/work/../x": "", "/": "", "": "", "work": "", "/etc/passwd": "",
	} {
		if in, ok := m.in(host); in != want || ok != (want != "") {
			t.Errorf("in %q: %q %v", host, in, ok)
		}
	}
	for word, want := range map[string]string{
		"/home/me/work/x": "/w/x", "/home/me/work": "/w", "--dir=/home/me/work/x": "--dir=/home/me/work/x", "x": "x", "": "",
		"/home/me/work/../x": "/home/me/work/../x", "see /home/me/work": "see /home/me/work", "/home/me/work:/bin": "/home/me/work:/bin",
	} {
		if got := m.argument(word); got != want {
			t.Errorf("word %q: %q, want %q", word, got, want)
		}
	}
	if same, err := newMapping("/a", ""); err != nil || same.inside != "/a" || same.argument("/a/b") != "/a/b" {
		t.Errorf("%+v, %v", same, err)
	}
}

func TestMappingProperties(t *testing.T) {
	t.Parallel()
	segment := rapid.StringMatching(`[a-z.\- ]{1,4}`)
	rapid.Check(t, func(t *rapid.T) {
		root := func(name string) string { return "/" + strings.Join(rapid.SliceOfN(segment, 0, 3).Draw(t, name), "/") }
		m, err := newMapping(root("host"), root("inside"))
		if err != nil {
			t.Fatal(err)
		}
		p := root("path")
		in, ok := m.in(p)
		if !ok {
			return
		}
		if in != m.inside && !strings.HasPrefix(in, strings.TrimSuffix(m.inside, "/")+"/") {
			t.Fatalf("%q left the container's directory: %q in %+v", p, in, m)
		}
	})
}
