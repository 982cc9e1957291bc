package workservice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/plainfile"
	"chorus/internal/text"
	"chorus/internal/work"
)

// maxNote is the maximum size of a note.
const maxNote = 1 << 20

// kept is how long repeated append requests are recognised.
const kept = 24 * time.Hour

// notes opens the folder of a project's notes. No link leads out of it.
func (h *Handler) notes(ctx context.Context, by operation.Caller, project string) (*os.Root, work.Project, error) {
	p, err := h.project(ctx, by, project)
	if err != nil {
		return nil, p, err
	}
	dir, err := h.o.Home.Ensure(h.o.Home.ProjectNotes(p.ID))
	if err != nil {
		return nil, p, err
	}
	root, err := os.OpenRoot(dir)
	return root, p, err
}

// ListNotes implements the operation of the same name.
func (h *Handler) ListNotes(ctx context.Context, by operation.Caller, in operations.NoteQuery) (operation.List[operations.Note], error) {
	out := operation.List[operations.Note]{Items: []operations.Note{}}
	if in.Cursor != "" && !strings.HasSuffix(in.Cursor, ".md") {
		return out, operation.BadCursor()
	}
	root, p, err := h.notes(ctx, by, in.Project)
	if err != nil {
		return out, err
	}
	defer root.Close()
	if out.Items, err = h.listed(root, ".", p.ID, h.o.Home.ProjectNotes(p.ID)); err != nil {
		return out, err
	}
	return operation.PageByKey(out.Items, func(n operations.Note) string { return n.Name }, in.Cursor, in.Most()), nil
}

// listed returns the Markdown pages in a folder, by name.
func (h *Handler) listed(root *os.Root, dir, project, place string) ([]operations.Note, error) {
	out := []operations.Note{}
	entries, err := fs.ReadDir(root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".md") {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		out = append(out, operations.Note{Name: e.Name(), Title: titleOf(e.Name(), headOf(root, path.Join(dir, e.Name()))), Project: project, Path: filepath.Join(place, e.Name()), Size: info.Size(), Modified: info.ModTime()})
	}
	slices.SortFunc(out, func(a, b operations.Note) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// headOf returns the beginning of a file, which is searched for its heading, or "" if it cannot be read.
func headOf(root *os.Root, name string) string {
	file, _, err := plainfile.OpenIn(root, name)
	if err != nil {
		return ""
	}
	defer file.Close()
	head, _ := io.ReadAll(io.LimitReader(file, 4096))
	return string(head)
}

// titleOf returns a note's heading, or its file name in words.
func titleOf(name, text string) string {
	first, _, _ := strings.Cut(text, "\n")
	if title, ok := strings.CutPrefix(strings.TrimSpace(first), "# "); ok {
		return strings.TrimSpace(title)
	}
	words := strings.Split(strings.TrimSuffix(name, ".md"), "-")
	for i, w := range words {
		r, size := utf8.DecodeRuneInString(w)
		words[i] = strings.ToUpper(string(r)) + w[size:]
	}
	return strings.Join(words, " ")
}

// find finds the file of a note by its title, its slug or its file name.
func (h *Handler) find(root *os.Root, title, project string) (string, []byte, error) {
	names := []string{}
	if n, err := work.NoteFile(title); err == nil {
		names = append(names, n)
	}
	if t := strings.TrimSpace(title); strings.HasSuffix(t, ".md") && !strings.ContainsAny(t, `/\`) {
		names = append([]string{t}, names...)
	}
	for _, n := range names {
		text, err := plainfile.ReadIn(root, n, maxNote)
		if err == nil {
			return n, text, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return n, nil, err
		}
	}
	return "", nil, operation.Errorf(operation.NotFound, "Note '%.80s' not found in project %s; `list_notes` shows those there are", title, project)
}

// ReadNote implements the operation of the same name.
func (h *Handler) ReadNote(ctx context.Context, by operation.Caller, in operations.NoteRef) (operations.Note, error) {
	root, p, err := h.notes(ctx, by, in.Project)
	if err != nil {
		return operations.Note{}, err
	}
	defer root.Close()
	name, text, err := h.find(root, in.Title, p.ID)
	if err != nil {
		return operations.Note{}, err
	}
	return h.showNote(p.ID, name, string(text), ""), nil
}

func (h *Handler) showNote(project, name, text, status string) operations.Note {
	n := operations.Note{Name: name, Title: titleOf(name, text), Project: project, Path: filepath.Join(h.o.Home.ProjectNotes(project), name), Status: status, Size: int64(len(text))}
	if status == "" {
		n.Content = text
	}
	return n
}

// WriteNote implements the operation of the same name.
func (h *Handler) WriteNote(ctx context.Context, by operation.Caller, in operations.NoteText) (operations.Note, error) {
	root, p, err := h.notes(ctx, by, in.Project)
	if err != nil {
		return operations.Note{}, err
	}
	defer root.Close()
	name, err := work.NoteFile(in.Title)
	if err != nil {
		return operations.Note{}, operation.InvalidField("title", "%s", err)
	}
	status := "updated"
	if _, err := root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		status = "created"
	}
	if err := h.save(ctx, root, by, p.ID, name, in.Content, status); err != nil {
		return operations.Note{}, err
	}
	return h.showNote(p.ID, name, in.Content, status), nil
}

// AppendNote implements the operation of the same name.
func (h *Handler) AppendNote(ctx context.Context, by operation.Caller, in operations.NoteAddition) (operations.Note, error) {
	root, p, err := h.notes(ctx, by, in.Project)
	if err != nil {
		return operations.Note{}, err
	}
	defer root.Close()
	name, text, err := h.find(root, in.Title, p.ID)
	var ours *operation.Error
	status := "appended"
	switch {
	case errors.As(err, &ours) && ours.Kind == operation.NotFound:
		if name, err = work.NoteFile(in.Title); err != nil {
			return operations.Note{}, operation.InvalidField("title", "%s", err)
		}
		status, text = "created", []byte("# "+strings.TrimSuffix(strings.TrimSpace(in.Title), ".md"))
	case err != nil:
		return operations.Note{}, err
	}
	whole := strings.TrimRight(string(text), "\n") + "\n\n" + in.Content
	if in.Key != "" {
		first, err := h.o.Memos.RememberOnce(ctx, appendedNote, p.ID+"/"+by.Principal.String()+"/"+in.Key, nil, kept)
		if err != nil {
			return operations.Note{}, err
		}
		if !first && strings.Contains(string(text), in.Content) {
			return h.showNote(p.ID, name, string(text), status), nil
		}
	}
	if err := h.save(ctx, root, by, p.ID, name, whole, status); err != nil {
		return operations.Note{}, err
	}
	return h.showNote(p.ID, name, whole, status), nil
}

// save replaces a note's file atomically, so that nobody ever reads half of it.
func (h *Handler) save(ctx context.Context, root *os.Root, by operation.Caller, project, name, text, status string) error {
	if len(text) > maxNote {
		return operation.InvalidField("content", "the note would have %d bytes, and the limit is %d: start another one", len(text), maxNote)
	}
	part := "." + name + ".new"
	if err := root.WriteFile(part, []byte(text), 0o600); err != nil {
		return err
	}
	if err := root.Rename(part, name); err != nil {
		return err
	}
	return h.o.Projects.Record(ctx, work.Event{Type: "note." + status, Project: project, By: by.Principal.String(), Text: name})
}

// DeleteNote implements the operation of the same name.
func (h *Handler) DeleteNote(ctx context.Context, by operation.Caller, in operations.NoteRef) (operations.Note, error) {
	root, p, err := h.notes(ctx, by, in.Project)
	if err != nil {
		return operations.Note{}, err
	}
	defer root.Close()
	name, text, err := h.find(root, in.Title, p.ID)
	if err != nil {
		return operations.Note{}, err
	}
	if err := root.Remove(name); err != nil {
		return operations.Note{}, err
	}
	out := h.showNote(p.ID, name, string(text), "deleted")
	return out, h.o.Projects.Record(ctx, work.Event{Type: "note.deleted", Project: p.ID, By: by.Principal.String(), Text: name})
}

// PromoteNote implements the operation of the same name.
func (h *Handler) PromoteNote(ctx context.Context, by operation.Caller, in operations.NotePromotion) (operations.Task, error) {
	note, err := h.ReadNote(ctx, by, operations.NoteRef{Title: in.Title, Project: in.Project})
	if err != nil {
		return operations.Task{}, err
	}
	return h.CreateTask(ctx, by, operations.NewTask{Title: text.Clip(note.Title, 199), Description: note.Content, Project: note.Project, Priority: in.Priority, Approval: in.Approval, Key: in.Key})
}

// maxCompared is how many specifications and how many notes are listed side by side.
const maxCompared = 200

// CompareSpecsNotes implements the operation of the same name.
func (h *Handler) CompareSpecsNotes(ctx context.Context, by operation.Caller, in operations.SpecsQuery) (out operations.SpecsNotes, err error) {
	root, p, err := h.notes(ctx, by, in.Project)
	if err != nil {
		return operations.SpecsNotes{}, err
	}
	defer root.Close()
	out = operations.SpecsNotes{Project: p.ID, Specs: []operations.Note{}, NotesPath: h.o.Home.ProjectNotes(p.ID)}
	defer func() {
		out.Truncated = len(out.Specs) > maxCompared || len(out.Notes) > maxCompared
		out.Specs, out.Notes = out.Specs[:min(len(out.Specs), maxCompared)], out.Notes[:min(len(out.Notes), maxCompared)]
	}()
	if out.Notes, err = h.listed(root, ".", p.ID, out.NotesPath); err != nil {
		return out, err
	}
	dir := filepath.ToSlash(cmp.Or(in.Path, "specs"))
	if !fs.ValidPath(dir) {
		return out, operation.InvalidField("specsPath", "it must be a folder of the repository, such as specs or docs/specs, not %.80q", in.Path)
	}
	repos, err := h.o.Projects.Repos(ctx, p.ID)
	if err != nil {
		return out, err
	}
	for _, r := range repos {
		if r.Kind != work.Link {
			continue // a bare repository has no files to read
		}
		files, err := os.OpenRoot(r.Path)
		if err != nil {
			continue
		}
		out.SpecsPath = filepath.Join(r.Path, filepath.FromSlash(dir))
		out.Specs, err = h.listed(files, dir, p.ID, out.SpecsPath)
		if closing := files.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return out, fmt.Errorf("specifications in %s: %w", out.SpecsPath, err)
		}
		if len(out.Specs) > 0 {
			break
		}
	}
	return out, nil
}
