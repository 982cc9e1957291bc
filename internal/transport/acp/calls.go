package acp

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
)

const (
	maxResult    = 20 << 10 // bytes of a result that an editor shows
	maxLocations = 20       // files of one call that an editor can follow
)

// callID identifies a call within its session, because models start numbering anew in each run.
func callID(run, call string) sdk.ToolCallId { return sdk.ToolCallId(run + "/" + call) }

// kindOf is the kind of a tool, for its icon.
func kindOf(name string) sdk.ToolKind {
	switch name = strings.ToLower(name); name {
	case "read", "read_file", "readfile", "mcp_read", "skill", "recall":
		return sdk.ToolKindRead
	case "write", "edit", "hashline_edit", "apply_patch", "write_file", "create_file", "append_file", "writefile", "str_replace", "multiedit":
		return sdk.ToolKindEdit
	case "list_files", "search_files", "grep", "glob", "search", "find_tools", "search_channel", "ls":
		return sdk.ToolKindSearch
	case "bash", "shell", "run_background", "run_concurrent", "run_command":
		return sdk.ToolKindExecute
	case "web_fetch", "web_search", "fetch":
		return sdk.ToolKindFetch
	case "work_notes", "remember":
		return sdk.ToolKindThink
	}
	if strings.HasPrefix(name, "git_") {
		return sdk.ToolKindRead
	}
	return sdk.ToolKindOther
}

// rawInput returns the arguments as an object, or else as the model's text.
func rawInput(args []byte) any {
	if len(args) == 0 {
		return nil
	}
	if json.Valid(args) {
		return json.RawMessage(args)
	}
	return string(args)
}

// locations are the files that a call names.
func locations(args []byte, dir string) []sdk.ToolCallLocation {
	var in struct {
		Path      string `json:"path"`
		FilePath  string `json:"filePath"`
		FilePath2 string `json:"file_path"`
		Offset    int    `json:"offset"`
	}
	if json.Unmarshal(args, &in) != nil {
		return nil
	}
	for _, name := range []string{in.Path, in.FilePath, in.FilePath2} {
		if path, ok := absolute(name, dir); ok {
			at := sdk.ToolCallLocation{Path: path}
			if in.Offset > 0 {
				at.Line = &in.Offset
			}
			return []sdk.ToolCallLocation{at}
		}
	}
	return nil
}

// absolute returns a file's path in the workspace as the editor knows it; false: it is in one of our own folders, or nowhere.
func absolute(name, dir string) (string, bool) {
	switch {
	case name == "" || strings.HasPrefix(name, "@"):
		return "", false
	case filepath.IsAbs(name):
		return filepath.Clean(name), true
	case dir == "":
		return "", false
	}
	return filepath.Join(dir, name), true
}

// diffs converts the hunks of a unified diff, each as the lines before and after.
func diffs(unified, dir string) []sdk.ToolCallContent {
	var out []sdk.ToolCallContent
	var from, to string
	var before, after strings.Builder
	open := false
	flush := func() {
		if !open {
			return
		}
		open = false
		name := to
		if name == "/dev/null" {
			name = from
		}
		if path, ok := absolute(strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/"), dir); ok {
			d := sdk.ToolCallContentDiff{Path: path, NewText: after.String(), Type: "diff"}
			if from != "/dev/null" {
				old := before.String()
				d.OldText = &old
			}
			out = append(out, sdk.ToolCallContent{Diff: &d})
		}
		before.Reset()
		after.Reset()
	}
	lines := strings.SplitAfter(unified, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			flush()
			from = strings.TrimSpace(line[4:])
		case strings.HasPrefix(line, "+++ ") && i > 0 && strings.HasPrefix(lines[i-1], "--- "):
			to = strings.TrimSpace(line[4:])
		case strings.HasPrefix(line, "@@"):
			flush()
			open = true
		case !open || line == "":
		case line[0] == ' ':
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case line[0] == '-':
			before.WriteString(line[1:])
		case line[0] == '+':
			after.WriteString(line[1:])
		}
	}
	flush()
	return out
}

// fence encloses text in marks that it cannot close, so that an editor shows it unchanged.
func fence(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	marks := strings.Repeat("`", longest+1)
	return marks + "\n" + strings.TrimSuffix(text, "\n") + "\n" + marks
}

// head returns the beginning of a text.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "\n…"
}
