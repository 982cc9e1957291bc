package repl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// writtenMsg is the text from the person's own editor.
type writtenMsg struct {
	text string
	err  error
}

// external opens the input in the person's own editor. Until the editor exits nothing is drawn; later events are shown then.
func (w *window) external() tea.Cmd {
	if strings.TrimSpace(w.editor) == "" {
		w.flash = "no editor is set; set EDITOR, for example: export EDITOR=nano"
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

// editorCommand opens a text in an editor, using a file that only its owner can read.
func editorCommand(editor, text string) (cmd *exec.Cmd, path string, err error) {
	file, err := os.CreateTemp("", "chorus-*.md")
	if err != nil {
		return nil, "", err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, "", errors.Join(err, os.Remove(file.Name()))
	}
	return exec.Command("/bin/sh", "-c", editor+` "$1"`, "chorus", file.Name()), file.Name(), nil // EDITOR may contain arguments
}

// notFound is a shell's exit code for an unknown program.
const notFound = 127

// written takes the text from the editor.
func (w *window) written(msg writtenMsg) {
	var ended *exec.ExitError
	switch {
	case errors.As(msg.err, &ended) && ended.ExitCode() == notFound:
		w.flash = fmt.Sprintf("there is no program %q; set EDITOR to an installed editor", strings.Fields(w.editor)[0])
		return
	case msg.err != nil:
		w.flash = "the editor failed; your input is unchanged: " + msg.err.Error()
		return
	}
	w.input.set(msg.text)
	w.menu = menu{}
}
