package repl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// pastedImage is the path of a picture if a paste is nothing else: terminals paste the path of a file that is dropped on them.
func pastedImage(pasted string) (string, bool) {
	path := strings.TrimSpace(pasted)
	if strings.ContainsAny(path, "\n\r") || path == "" {
		return "", false
	}
	for _, quote := range []string{"'", `"`} {
		if len(path) > 1 && strings.HasPrefix(path, quote) && strings.HasSuffix(path, quote) {
			path = path[1 : len(path)-1]
		}
	}
	path = strings.TrimPrefix(strings.ReplaceAll(path, `\ `, " "), "file://")
	if !filepath.IsAbs(path) || !slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp"}, strings.ToLower(filepath.Ext(path))) {
		return "", false
	}
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// attach attaches a file of this machine to the next prompt and returns a confirmation. Without a path it attaches the picture in the
// clipboard. It only reads what the person names.
func attach(ctx context.Context, s Session, clipboard func(context.Context) ([]byte, error), dir, path string) (string, error) {
	taker, ok := s.(Attacher)
	switch {
	case !ok:
		return "", errors.New("you cannot attach files here")
	case path == "" && clipboard == nil:
		return "", errors.New("which file? /attach PATH")
	case path == "":
		picture, err := clipboard(ctx)
		if err == nil {
			err = taker.Attach(ctx, "clipboard.png", bytes.NewReader(picture))
		}
		if err != nil {
			return "", err
		}
		return "attached the clipboard's picture to the next message", nil
	case !filepath.IsAbs(path):
		path = filepath.Join(cmp.Or(dir, "."), path)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no file %s", path)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	if err := taker.Attach(ctx, filepath.Base(path), file); err != nil {
		return "", err
	}
	return "attached " + filepath.Base(path) + " to the next message", nil
}

// attach attaches without blocking the window.
func (w *window) attach(line, path string) tea.Cmd {
	dir := ""
	if here, err := os.Getwd(); err == nil {
		dir = here
	}
	w.attaching++
	return func() tea.Msg {
		answer, err := attach(w.ctx, w.s, w.clipboard, dir, path)
		if err != nil {
			return attachedMsg{failedMsg{"could not attach it: " + err.Error()}}
		}
		return attachedMsg{commandMsg{line, answer}}
	}
}

// attachedMsg reports that a file was attached or failed.
type attachedMsg struct{ tea.Msg }
