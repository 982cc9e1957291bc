package clipboard

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each desktop's program is asked, and what is no picture is none.
func TestPicture(t *testing.T) {
	dir := t.TempDir()
	png := []byte(pngBegin + "the rest")
	if err := os.WriteFile(filepath.Join(dir, "shot"), png, 0o600); err != nil {
		t.Fatal(err)
	}
	program := func(name, script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("SHOT", filepath.Join(dir, "shot"))
	program("xclip", `[ "$*" = "-selection clipboard -target image/png -out" ] && cat "$SHOT"`)
	program("wl-paste", `[ "$*" = "--no-newline --type image/png" ] && cat "$SHOT"`)
	program("osascript", `echo '«data PNGf`+strings.ToUpper(hex.EncodeToString(png))+`»'`)
	for name, desktop := range map[string]struct{ system, env string }{"X11": {"linux", "DISPLAY"}, "Wayland": {"linux", "WAYLAND_DISPLAY"}, "macOS": {"darwin", ""}} {
		got, err := image(t.Context(), desktop.system, func(key string) string {
			if key == desktop.env {
				return ":0"
			}
			return ""
		})
		if err != nil || !bytes.Equal(got, png) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}

	onX11 := func(key string) string { return map[string]string{"DISPLAY": ":0"}[key] }
	for script, want := range map[string]string{
		"exit 1":                     "no picture in the clipboard",
		"echo some words":            "no picture in the clipboard",
		"head -c 80000000 /dev/zero": "too large",
	} {
		program("xclip", script)
		if _, err := image(t.Context(), "linux", onX11); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "xclip")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if _, err := image(t.Context(), "linux", onX11); err == nil || !strings.Contains(err.Error(), "install xclip") {
		t.Errorf("without the program: %v", err)
	}
	if _, err := image(t.Context(), "linux", func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "/attach PATH") {
		t.Errorf("without a desktop: %v", err)
	}
}
