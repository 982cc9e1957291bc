package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/permit/canonical"
	"chorus/internal/sandbox"
	"chorus/internal/tool"
)

// aliases are the names that other designs use. Their directory and argument list
// become part of the command, so that what is judged is what runs.
func (b *bash) aliases() []tool.Alias {
	convert := func(fields map[string]json.RawMessage) error { return convert(fields, b.inside) }
	return []tool.Alias{
		tool.Converted("run_command", convert),
		tool.Converted("RunCommand", convert),
		tool.Also("shell"),
	}
}

// inside reports whether a directory lies in the workspace or in another root of the command.
func (b *bash) inside(dir string) bool {
	if b.opts.Dir == "" {
		return filepath.IsLocal(dir)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(b.opts.Dir, dir)
	}
	within := func(root string) bool {
		rel, err := filepath.Rel(root, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	return within(b.opts.Dir) || slices.ContainsFunc(b.opts.Roots, func(r sandbox.Root) bool { return within(r.Path) })
}

func convert(fields map[string]json.RawMessage, inside func(dir string) bool) error {
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
	if theirs.Cwd != "" && !inside(theirs.Cwd) {
		return fmt.Errorf("'cwd' %q is outside of the workspace; it must be a folder in it", theirs.Cwd)
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
