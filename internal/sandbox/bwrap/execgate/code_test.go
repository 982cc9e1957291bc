//go:build linux

package execgate

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// A copy is known by its code when its build id and other bytes were changed, and a program with other code is not.
func TestChangedCopiesAreKnown(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	if bash, err = filepath.EvalSymlinks(bash); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(bash)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(bash)
	if err != nil {
		t.Fatal(err)
	}
	id, code := build(file)
	_ = file.Close()
	raw, err := hex.DecodeString(id)
	if id == "" || err != nil || code.size < leastCode {
		t.Skip("this bash has no build id, or next to no code")
	}
	k := &Programs{Dirs: []string{filepath.Dir(bash)}}
	k.refresh()
	known := func(name string, change func([]byte) []byte) []string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, change(slices.Clone(data)), 0o755); err != nil {
			t.Fatal(err)
		}
		p := &program{path: path, file: path}
		return k.known(p)
	}
	otherID := func(b []byte) []byte { return bytes.Replace(b, raw, make([]byte, len(raw)), 1) }
	code0 := code.at + code.size/2
	for name, change := range map[string]func([]byte) []byte{
		"other id": otherID,
		"no id at all": func(b []byte) []byte {
			return bytes.Replace(b, []byte("GNU\x00"+string(raw)), []byte("XXX\x00"+string(raw)), 1)
		},
		"longer":        func(b []byte) []byte { return append(otherID(b), "more"...) },
		"other code":    func(b []byte) []byte { b = otherID(b); b[code0] ^= 1; b[code.at+page] ^= 1; return b },
		"other strings": func(b []byte) []byte { return bytes.ReplaceAll(otherID(b), []byte("bash"), []byte("hsab")) },
	} {
		if names := known(name, change); !slices.Contains(names, "bash") {
			t.Errorf("%s: it is called %q", name, names)
		}
	}
	names := known("other program", func(b []byte) []byte {
		b = otherID(b)
		for i := code.at; i < code.at+code.size; i += 1000 {
			b[i] ^= 0xff
		}
		return b
	})
	if len(names) > 0 {
		t.Errorf("a program with code of its own is called %q", names)
	}
}
