package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/permit/canonical"
	"chorus/internal/tool"
)

// aliases are the names of the other designs. Their directory and argument list
// become part of the command, so that what is judged is what runs.
func aliases() []tool.Alias {
	return []tool.Alias{
		tool.Converted("run_command", convert),
		tool.Converted("RunCommand", convert),
		tool.Also("shell"),
	}
}

func convert(fields map[string]json.RawMessage) error {
	var theirs struct {
		Command *string  `json:"command"`
		Exe     *string  `json:"exe"`
		Args    []string `json:"args"`
		Cwd     string   `json:"cwd"`
	}
	if err := reread(fields, &theirs); err != nil {
		return err
	}
	if theirs.Command != nil && theirs.Exe != nil {
		return errors.New("give either 'command' or 'exe' with 'args'")
	}
	var command string
	switch {
	case theirs.Exe != nil:
		words := []string{canonical.Word(*theirs.Exe)}
		for _, arg := range theirs.Args {
			words = append(words, canonical.Word(arg))
		}
		command = strings.Join(words, " ")
		if theirs.Cwd != "" {
			command = "cd " + canonical.Word(theirs.Cwd) + " && " + command
		}
	case theirs.Command != nil:
		command = *theirs.Command
		if theirs.Cwd != "" {
			command = "cd " + canonical.Word(theirs.Cwd) + " && {\n" + command + "\n}"
		}
	default:
		return errors.New("'command' is missing")
	}
	if secs, ok := fields["timeoutSec"]; ok {
		fields["timeout"] = secs
	}
	for _, name := range []string{"exe", "args", "cwd", "timeoutSec", "shell"} {
		delete(fields, name)
	}
	text, err := json.Marshal(command)
	fields["command"] = text
	return err
}

func reread(fields map[string]json.RawMessage, into any) error {
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("it takes command, or exe and args, then cwd and timeoutSec: %w", err)
	}
	return nil
}
