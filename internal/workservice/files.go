package workservice

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/plainfile"
	"chorus/internal/work"
)

var _ operations.Workspaces = (*Handler)(nil)

// The limits of commands on files.
const (
	maxFileText = 100_000 // bytes of a file
	maxFileRead = 8 << 20 // bytes read to count its lines
	maxStdout   = 4000    // characters of a command's output, and of a search
	maxStderr   = 2000    // characters of a command's error output
)

// Folder is a folder of a project in which files are read and commands run.
type Folder struct {
	Thread chat.ThreadID // determines its sandbox and its rules
	Agent  string
	Dir    string // the whole repository
	Path   string // within the repository, with slashes; "." for all of it
}

// Used is the result of a tool.
type Used struct {
	Text   string
	Exit   int
	Failed bool
	// Stdout and Stderr are the output of a command.
	Stdout, Stderr string
}

// Tools uses agents' tools in a folder: subject to the rules, in the
// sandbox, and recorded like an agent's call.
type Tools interface {
	// MayRead says why a caller may not read a file.
	MayRead(ctx context.Context, by operation.Caller, at Folder) error
	// Use calls a tool.
	Use(ctx context.Context, by operation.Caller, at Folder, name string, args map[string]any) (Used, error)
}

var errOutside = operation.Errorf(operation.Forbidden, "Access denied: path is outside allowed directories; give one within a repository of a project, such as PROJECT/README.md")

var errGitFiles = operation.Errorf(operation.Forbidden, "Access denied: git's own files are not shown; `get_git_status`, `git_log` and `git_diff` say what is in them")

func inGit(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// folder finds the repository that contains a path. Anything outside of the repositories that the
// caller sees counts as missing, and so do git's own files, whose settings may contain passwords.
func (h *Handler) folder(ctx context.Context, by operation.Caller, in operations.GitPlace, path string) (Folder, work.Project, error) {
	if strings.ContainsRune(path, 0) {
		return Folder{}, work.Project{}, errOutside
	}
	if filepath.IsAbs(path) {
		return h.absolute(ctx, by, in, filepath.Clean(path))
	}
	path = filepath.ToSlash(filepath.Clean(filepath.FromSlash(path)))
	p, repos, err := h.place(ctx, by, in.Project, in.Repo)
	first, rest, _ := strings.Cut(path, "/")
	if in.Project == "" && in.Repo == "" {
		// PROJECT/README.md names its project. This takes precedence over the
		// active project only if such a project exists.
		if named, known, errNamed := h.place(ctx, by, first, ""); errNamed == nil && fs.ValidPath(first) && first != "." {
			p, repos, err, path = named, known, nil, cmp.Or(rest, ".")
			first, rest, _ = strings.Cut(path, "/")
		}
	}
	if err != nil {
		return Folder{}, p, err
	}
	repo := repos[0]
	if at := slices.IndexFunc(repos, func(r work.Repo) bool { return r.ID == first }); in.Repo == "" && at > 0 {
		repo, path = repos[at], cmp.Or(rest, ".")
	}
	if !fs.ValidPath(path) {
		return Folder{}, p, errOutside
	}
	return h.inRepo(ctx, p, repo, path)
}

// absolute finds the repository that contains an absolute path on the server.
func (h *Handler) absolute(ctx context.Context, by operation.Caller, in operations.GitPlace, path string) (Folder, work.Project, error) {
	visible, err := h.visible(ctx, by, in.Project)
	if err != nil {
		return Folder{}, work.Project{}, err
	}
	repos, err := h.o.Projects.Repos(ctx, in.Project)
	if err != nil {
		return Folder{}, work.Project{}, err
	}
	for _, r := range repos {
		dir := r.Path
		if r.Kind != work.Link {
			dir = h.o.Home.ProjectCheckout(r.Project, r.ID)
		}
		rest, err := filepath.Rel(dir, path)
		if !slices.Contains(visible, r.Project) || in.Repo != "" && r.ID != in.Repo || err != nil || !filepath.IsLocal(rest) {
			continue
		}
		p, err := h.project(ctx, by, r.Project)
		if err != nil {
			return Folder{}, p, err
		}
		return h.inRepo(ctx, p, r, filepath.ToSlash(rest))
	}
	return Folder{}, work.Project{}, errOutside
}

func (h *Handler) inRepo(ctx context.Context, p work.Project, r work.Repo, path string) (Folder, work.Project, error) {
	if inGit(path) {
		return Folder{}, p, errGitFiles
	}
	tree, _, err := h.o.Git.Checkout(ctx, p.ID, r.ID)
	if err != nil {
		return Folder{}, p, gitError(err)
	}
	thread, err := chat.NewThreadID(chat.WorkTransport, p.ID, "commands."+r.ID, h.o.Agent)
	return Folder{Thread: thread, Agent: h.o.Agent, Dir: tree.Path(), Path: path}, p, err
}

// ReadFile implements the operation of the same name. It does not follow links that lead out of the repository.
func (h *Handler) ReadFile(ctx context.Context, by operation.Caller, in operations.FileQuery) (operations.FileText, error) {
	at, _, err := h.folder(ctx, by, in.GitPlace, in.Path)
	if err != nil {
		return operations.FileText{}, err
	}
	if err := h.o.Tools.MayRead(ctx, by, at); err != nil {
		return operations.FileText{}, err
	}
	root, err := os.OpenRoot(at.Dir)
	if err != nil {
		return operations.FileText{}, err
	}
	defer root.Close()
	file, _, err := plainfile.OpenIn(root, at.Path)
	if errors.Is(err, plainfile.ErrNotPlain) {
		return operations.FileText{}, operation.InvalidField("path", "%.200s is a folder or not a regular file; `search_files` with mode find lists what is in it", in.Path)
	}
	if err != nil {
		return operations.FileText{}, fileError(err, in.Path)
	}
	defer file.Close()
	if real, err := filepath.EvalSymlinks(filepath.Join(at.Dir, filepath.FromSlash(at.Path))); err != nil || inGit(filepath.ToSlash(real)) {
		return operations.FileText{}, cmp.Or(err, error(errGitFiles))
	}
	out, err := readLines(io.LimitReader(file, maxFileRead), cmp.Or(in.MaxLines, 200))
	out.Path = filepath.Join(at.Dir, filepath.FromSlash(at.Path))
	return out, err
}

// fileError says why a file cannot be opened.
func fileError(err error, path string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return operation.Errorf(operation.NotFound, "File not found: %.200s; `search_files` with mode find looks for names", path)
	case errors.Is(err, fs.ErrPermission):
		return operation.Errorf(operation.Forbidden, "Access denied: the server may not read %.200s", path)
	}
	return errOutside // os.Root refuses paths that lead out of it
}

// readLines reads a text, counts its lines, and keeps the first ones.
func readLines(from io.Reader, most int) (out operations.FileText, err error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return out, err
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 || !utf8.Valid(data[:min(len(data), 8000)]) && !utf8.Valid(data) {
		return out, operation.InvalidField("path", "Binary file — cannot display contents")
	}
	var kept strings.Builder
	lines := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if out.Lines++; out.Lines <= most && kept.Len()+len(line) <= maxFileText {
				kept.WriteString(line)
			} else {
				out.Cut = true
			}
		}
		if err != nil {
			break
		}
	}
	if out.Content = strings.ToValidUTF8(kept.String(), "\uFFFD"); out.Cut {
		shown := strings.Count(out.Content, "\n")
		out.Content += fmt.Sprintf("\n... truncated at %d lines (%d total)", shown, out.Lines)
	}
	return out, nil
}

// SearchFiles implements the operation of the same name.
func (h *Handler) SearchFiles(ctx context.Context, by operation.Caller, in operations.FileSearch) (operations.FilesFound, error) {
	at, _, err := h.folder(ctx, by, in.GitPlace, cmp.Or(in.Path, "."))
	if err != nil {
		return operations.FilesFound{}, err
	}
	out := operations.FilesFound{Mode: cmp.Or(in.Mode, "grep"), Path: filepath.Join(at.Dir, filepath.FromSlash(at.Path))}
	if out.Mode == "grep" {
		if _, err := regexp.Compile(in.Pattern); err != nil {
			return out, operation.InvalidField("pattern", "the pattern is not a valid regular expression: %s", err)
		}
	}
	name, args := "search_files", map[string]any{"query": in.Pattern, "path": at.Path, "case_sensitive": true}
	if out.Mode == "find" {
		name, args = "list_files", map[string]any{"glob": in.Pattern, "path": at.Path}
		if !strings.Contains(in.Pattern, "/") {
			args["glob"] = "**/" + in.Pattern
		}
	}
	used, err := h.o.Tools.Use(ctx, by, at, name, args)
	if err != nil {
		return out, err
	}
	if used.Failed {
		return out, operation.InvalidField("path", "%s", used.Text)
	}
	if out.Results, out.Cut = cut(used.Text, maxStdout); strings.HasPrefix(used.Text, "No ") {
		out.Results = "(no matches)"
	}
	return out, nil
}

// cut keeps the first lines of a long text.
func cut(text string, most int) (string, bool) {
	if utf8.RuneCountInString(text) <= most {
		return text, false
	}
	kept := string([]rune(text)[:most])
	if at := strings.LastIndexByte(kept, '\n'); at > most/2 {
		kept = kept[:at+1]
	}
	return kept, true
}

// RunCommand implements the operation of the same name.
func (h *Handler) RunCommand(ctx context.Context, by operation.Caller, in operations.ShellCommand) (operations.CommandResult, error) {
	place, path := in.GitPlace, in.Dir
	if p, err := h.project(ctx, by, in.Dir); err == nil && place.Project == "" {
		place.Project, path = p.ID, "."
	}
	at, p, err := h.folder(ctx, by, place, path)
	if err != nil {
		return operations.CommandResult{}, err
	}
	if !manages(by, p) {
		return operations.CommandResult{}, operation.Errorf(operation.Forbidden, "only the owner of project %s may run commands in it; create a task instead with `create_task`", p.ID)
	}
	out := operations.CommandResult{Dir: filepath.Join(at.Dir, filepath.FromSlash(at.Path))}
	if err := isFolder(at); err != nil {
		return out, err
	}
	command := in.Command
	if at.Path != "." {
		command = "cd '" + strings.ReplaceAll(at.Path, "'", `'\''`) + "' && {\n" + command + "\n}"
	}
	limit := cmp.Or(in.Timeout, 30)
	used, err := h.o.Tools.Use(ctx, by, at, "bash", map[string]any{"command": command, "timeout": limit})
	if err != nil {
		return out, err
	}
	if used.Failed && strings.Contains(used.Text, "[timed out after") {
		return out, operation.Errorf(operation.Conflict, "Command timed out after %ds", limit)
	}
	if used.Failed { // it did not end by itself, or did not start
		out.Code, used.Stderr = -1, used.Text
	} else {
		out.Code = used.Exit
	}
	var more bool
	out.Stdout, out.Cut = cut(used.Stdout, maxStdout)
	out.Stderr, more = cut(used.Stderr, maxStderr)
	out.Cut = out.Cut || more
	return out, h.happened(ctx, by, p.ID, "project.command", in.Command)
}

// isFolder says why a command cannot run in a folder. Links that lead out of the repository are not followed.
func isFolder(at Folder) error {
	root, err := os.OpenRoot(at.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(at.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir():
		return operation.Errorf(operation.NotFound, "Directory not found: %s", filepath.Join(at.Dir, at.Path))
	case err != nil:
		return operation.Errorf(operation.Forbidden, "Access denied: working directory is outside allowed directories")
	}
	return nil
}
