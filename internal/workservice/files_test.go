package workservice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

func TestReadingFiles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	h.write(strings.Repeat("line\n", 10), dir, "ten.txt")
	h.write("a\x00b", dir, "binary")
	h.write("outside\n", h.tmp, "outside.txt")
	h.write("x", dir, "secret.txt")
	for name, to := range map[string]string{"out": "../outside.txt", "git": ".git/config", "in": "README.md"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// 40: three of ten lines, and how many there are.
	got := must[operations.FileText](h, root, "read_file", `{"path":"ten.txt","project_id":"site","max_lines":3}`)
	if got.Content != "line\nline\nline\n\n... truncated at 3 lines (10 total)" || !got.Cut || got.Lines != 10 {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"README.md", "site/README.md", "in", "./README.md", dir + "/README.md"} {
		project := `,"project_id":"site"`
		if path == "site/README.md" || filepath.IsAbs(path) {
			project = ""
		}
		if got := must[operations.FileText](h, root, "read_file", `{"path":"`+path+`"`+project+`}`); got.Content != "hello\n" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for path, words := range map[string]string{
		"../outside.txt": "Access denied", "/etc/passwd": "Access denied", "out": "Access denied", ".git/config": "git's own files", "git": "git's own files", ".GIT/config": "git's own files",
		filepath.Join(h.tmp, "outside.txt"): "Access denied", "secret.txt": "a rule hides it", dir + "/../outside.txt": "Access denied",
	} {
		h.refused(root, operation.Forbidden, words, "read_file", `{"path":"`+path+`","project_id":"site"}`)
	}
	h.refused(root, operation.NotFound, "File not found: nope", "read_file", `{"path":"nope","project_id":"site"}`)
	h.refused(root, operation.Invalid, "Binary file", "read_file", `{"path":"binary","project_id":"site"}`)
	h.refused(root, operation.Invalid, "is a folder", "read_file", `{"path":".","project_id":"site"}`)
	h.refused(grace, operation.Forbidden, "Access denied", "read_file", `{"path":"`+dir+`/README.md"}`)
	h.refused(grace, operation.NotFound, "Project 'site' not found", "read_file", `{"path":"README.md","project_id":"site"}`)
}

func TestSearchingFiles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	if got := must[operations.FilesFound](h, root, "search_files", `{"pattern":"hel+o","path":"site"}`); got.Mode != "grep" || got.Results != "README.md:1: hello" {
		t.Errorf("%+v", got)
	}
	must[operations.FilesFound](h, root, "search_files", `{"pattern":"*.md","mode":"find","project_id":"site"}`)
	if used := strings.Join(h.tools.used, "\n"); !strings.Contains(used, "search_files map[case_sensitive:true path:. query:hel+o]") || !strings.Contains(used, "list_files map[glob:**/*.md path:.]") {
		t.Error(used)
	}
	h.refused(root, operation.Invalid, "not a valid regular expression", "search_files", `{"pattern":"(","project_id":"site"}`)
	h.refused(root, operation.Invalid, "there are grep, find", "search_files", `{"pattern":"x","mode":"guess","project_id":"site"}`)
}

func TestRunningCommands(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	if err := os.MkdirAll(filepath.Join(dir, "it's here"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "up")); err != nil {
		t.Fatal(err)
	}
	// 41
	if got := must[operations.CommandResult](h, root, "run_command", `{"command":"echo hi; exit 3","working_dir":"site"}`); got.Code != 3 || got.Stdout != "hi\n" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.CommandResult](h, root, "run_command", `{"command":"basename \"$PWD\"","working_dir":"site/it's here"}`); got.Stdout != "it's here\n" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.CommandResult](h, root, "run_command", `{"command":"yes | head -c 9000","working_dir":"site"}`); len(got.Stdout) > 4001 || !got.Cut {
		t.Errorf("%d characters", len(got.Stdout))
	}
	if got := must[operations.CommandResult](h, root, "run_command", `{"command":"echo fine; echo bad >&2; echo more","working_dir":"site"}`); got.Code != 0 || got.Stdout != "fine\nmore\n" || got.Stderr != "bad\n" || got.Cut {
		t.Errorf("%+v", got)
	}
	if got := must[operations.CommandResult](h, root, "run_command", `{"command":"yes | head -c 9000 >&2","working_dir":"site"}`); got.Stdout != "" || len(got.Stderr) > 2000 || len(got.Stderr) < 1000 || !got.Cut {
		t.Errorf("%d characters of errors", len(got.Stderr))
	}
	h.refused(root, operation.NotFound, "Directory not found", "run_command", `{"command":"ls","working_dir":"site/nope"}`)
	h.refused(root, operation.Forbidden, "outside allowed directories", "run_command", `{"command":"ls","working_dir":"site/up"}`)
	h.refused(root, operation.Forbidden, "outside allowed directories", "run_command", `{"command":"ls","working_dir":"/tmp"}`)
	h.refused(root, operation.Invalid, "at most 120", "run_command", `{"command":"ls","working_dir":"site","timeout":500}`)
	must[operations.Project](h, root, "edit_project", `{"project_id":"site","shared":true}`)
	h.refused(grace, operation.Forbidden, "may run commands in it", "run_command", `{"command":"ls","working_dir":"site"}`)
	h.refused(reader, operation.Forbidden, "scope chat", "run_command", `{"command":"ls","working_dir":"site"}`)
}
