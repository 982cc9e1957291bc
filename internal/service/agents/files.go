package agents

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"chorus/internal/gate"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/service"
)

// Limits for an agent's files.
const (
	maxShown   = 256 << 10
	maxEntries = 1000
)

// AgentFile implements the operation of that name.
func (o *Handler) AgentFile(ctx context.Context, _ operation.Caller, in operations.AgentFileRef) (operations.Entry, error) {
	name := in.Name
	if _, err := o.FindAgent(ctx, name); err != nil {
		return operations.Entry{}, err
	}
	file := strings.TrimPrefix(path.Clean("/"+strings.ToValidUTF8(in.Path, "_")), "/")
	root, err := os.OpenRoot(o.app.Settings.Agents().Workspace(name))
	if errors.Is(err, fs.ErrNotExist) && file == "" {
		return operations.Entry{Dir: true, Entries: []operations.Entry{}}, nil
	}
	if err == nil {
		defer root.Close()
		var entry operations.Entry
		if entry, err = o.entry(root, file); err == nil {
			return entry, nil
		}
	}
	// The same error for paths outside the workspace: nobody learns what is there.
	return operations.Entry{}, &operation.Error{Kind: operation.NotFound, Message: "there is no file " + gate.Shortened(file) + " in the workspace of " + name, Err: err}
}

func (o *Handler) entry(root *os.Root, file string) (operations.Entry, error) {
	// Opened without blocking: an agent can leave a pipe there that nobody writes to.
	f, err := root.OpenFile(filepath.FromSlash(cmp.Or(file, ".")), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return operations.Entry{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return operations.Entry{}, err
	}
	out := operations.Entry{Path: file, Dir: info.IsDir(), Size: info.Size(), MovedAt: info.ModTime()}
	if info.IsDir() {
		out.Size, out.Entries = 0, []operations.Entry{}
		list, err := f.ReadDir(maxEntries + 1)
		if err != nil && !errors.Is(err, io.EOF) {
			return out, err
		}
		out.Cut = len(list) > maxEntries
		for _, e := range list[:min(len(list), maxEntries)] {
			if info, err := e.Info(); err == nil { // otherwise it was just removed
				out.Entries = append(out.Entries, operations.Entry{Path: path.Join(file, e.Name()), Dir: e.IsDir(), Size: info.Size(), MovedAt: info.ModTime()})
			}
		}
		slices.SortFunc(out.Entries, func(a, b operations.Entry) int { return strings.Compare(a.Path, b.Path) })
		return out, nil
	}
	if !info.Mode().IsRegular() {
		return out, fs.ErrNotExist
	}
	data, err := io.ReadAll(io.LimitReader(f, maxShown))
	if err != nil {
		return out, err
	}
	out.Cut = info.Size() > int64(len(data))
	text := data
	if out.Cut {
		text = []byte(strings.ToValidUTF8(string(data), "")) // a character may be cut in half
	}
	if out.Binary = !service.IsText(text); !out.Binary {
		out.Text = o.app.Logs.Redactor().Text(string(text))
	}
	return out, nil
}
