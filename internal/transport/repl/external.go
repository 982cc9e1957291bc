package repl

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// writtenMsg is what somebody wrote in an editor of their own.
type writtenMsg struct {
	text string
	err  error
}

// external opens the input in the person's own editor. Until it ends nothing is drawn; what happens meanwhile is shown then.
func (w *window) external() tea.Cmd {
	if strings.TrimSpace(w.editor) == "" {
		w.flash = "which editor? set EDITOR, for example: export EDITOR=nano"
		return nil
	}
	cmd, path, err := editorCommand(w.editor, w.input.value())
	if err != nil {
		w.flash = "could not write the input to a file: " + err.Error()
		return nil
	}
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		defer os.Remove(path)
		if err != nil {
			return writtenMsg{err: err}
		}
		data, err := os.ReadFile(path)
		return writtenMsg{strings.TrimRight(string(data), "\n"), err}
	})
}

// editorCommand opens a text in an editor, by way of a file that only its owner can read.
func editorCommand(editor, text string) (cmd *exec.Cmd, path string, err error) {
	file, err := os.CreateTemp("", "chorus-*.md")
	if err != nil {
		return nil, "", err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, "", errors.Join(err, os.Remove(file.Name()))
	}
	return exec.Command("/bin/sh", "-c", editor+` "$1"`, "chorus", file.Name()), file.Name(), nil // EDITOR may have arguments
}

// written takes what the editor left.
func (w *window) written(msg writtenMsg) {
	if msg.err != nil {
		w.flash = "the editor failed, the input stays: " + msg.err.Error()
		return
	}
	w.input.set(msg.text)
	w.menu = menu{}
}
