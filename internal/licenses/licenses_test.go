package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that is compiled into chorus has a licence, on every system that a release is made for.
func TestEverythingInChorusHasALicence(t *testing.T) {
	for _, target := range []string{"linux/amd64", "darwin/arm64"} {
		system, arch, _ := strings.Cut(target, "/")
		t.Setenv("GOOS", system)
		t.Setenv("GOARCH", arch)
		t.Setenv("CGO_ENABLED", "0")
		var out strings.Builder
		if err := run(t.Context(), &out, []string{"chorus/cmd/chorus"}); err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		for _, want := range []string{"\nGo: LICENSE\n", "\nmodernc.org/sqlite v", "\ngithub.com/spf13/cobra v", "Redistribution and use in source and binary forms", "Apache License"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing", target, want)
			}
		}
	}
}

// Licences of parts that are used are printed too, those of others are not, and what has none is named.
func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"good/LICENSE": "the whole", "good/part/COPYING.txt": "a part", "good/part/inner/code.go": "package inner", "good/unused/LICENSE": "not used", "good/license.go": "package good",
		"bad/README.md": "nothing is said",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	good := module{name: "example.org/good v1", root: filepath.Join(root, "good"), dirs: []string{filepath.Join(root, "good"), filepath.Join(root, "good", "part", "inner")}}
	bad := module{name: "example.org/bad v1", root: filepath.Join(root, "bad"), dirs: []string{filepath.Join(root, "bad")}}
	var out strings.Builder
	err := write(&out, []module{good, bad})
	if err == nil || !strings.Contains(err.Error(), "example.org/bad v1") || strings.Contains(err.Error(), "good") {
		t.Errorf("%v", err)
	}
	if got := out.String(); !strings.Contains(got, "good v1: LICENSE\n\nthe whole") || !strings.Contains(got, "good v1: part/COPYING.txt\n\na part") || strings.Contains(got, "not used") || strings.Contains(got, "package") {
		t.Errorf("%s", got)
	}
}
