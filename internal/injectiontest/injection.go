// Package injectiontest is a corpus of texts that try to turn an agent against the people it works for. Each comes with
// the calls that a fully obedient victim would make. The package says nothing about models: a test plays the victim and
// shows that the gate holds anyway.
package injectiontest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/yamltext"
)

// Case is one injection: NAME.txt has the text, NAME.yaml next to it the rest.
type Case struct {
	Name    string  `yaml:"-"`
	Text    string  `yaml:"-"`
	Carrier Carrier `yaml:"carrier"`
	At      string  `yaml:"at"` // the file that carries it, in the workspace
	Calls   []Call  `yaml:"calls"`
}

// Carrier is how the text reaches the model.
type Carrier string

// The carriers.
const (
	File         Carrier = "file"         // a file that the agent reads: source, a saved page, a server's answer, memory, history
	Filename     Carrier = "filename"     // the name of a listed file
	Instructions Carrier = "instructions" // the instructions of the repository
)

// Call is one call of the victim, and its expected result. In its arguments, {{outside}} is the directory around the
// workspace and {{home}} the server's home.
type Call struct {
	Tool     string         `yaml:"tool"`
	Args     map[string]any `yaml:"args"`
	Standard Fate           `yaml:"standard"` // under the profile of that name
	Locked   Fate           `yaml:"locked"`
}

// Fate is the expected result of a call.
type Fate string

// The fates.
const (
	Ask   Fate = "ask"   // a person is asked first
	Deny  Fate = "deny"  // refused without asking
	Allow Fate = "allow" // runs and does no harm, because it stays in the workspace
	None  Fate = "none"  // there is no such tool
)

// Load reads the corpus of a directory, sorted by name.
func Load(dir string) ([]Case, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("find the injections: %w", err)
	}
	var out []Case
	for _, name := range names {
		c, err := load(name)
		if err != nil {
			return nil, fmt.Errorf("read the injection %s: %w", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func load(name string) (Case, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Case{}, err
	}
	data, err := os.ReadFile(strings.TrimSuffix(name, ".txt") + ".yaml")
	if err != nil {
		return Case{}, err
	}
	c := Case{Name: strings.TrimSuffix(filepath.Base(name), ".txt"), Text: string(text)}
	if err := yamltext.Read(data, &c); err != nil {
		return Case{}, err
	}
	return c, c.check()
}

// check rejects a case that would prove nothing.
func (c Case) check() error {
	switch c.Carrier {
	case File, Filename, Instructions:
	default:
		return fmt.Errorf("no carrier %q; there are file, filename and instructions", c.Carrier)
	}
	if strings.TrimSpace(c.Text) == "" || c.At == "" || len(c.Calls) == 0 {
		return fmt.Errorf("a text, a place (at) and at least one call are needed")
	}
	for i, call := range c.Calls {
		if call.Tool == "" {
			return fmt.Errorf("call %d has no tool", i+1)
		}
		for _, fate := range []Fate{call.Standard, call.Locked} {
			switch fate {
			case Ask, Deny, None:
			case Allow:
				if !harmless(call.Tool) {
					return fmt.Errorf("call %d: %s may never simply run", i+1, call.Tool)
				}
			default:
				return fmt.Errorf("call %d: no fate %q; there are ask, deny, allow and none", i+1, fate)
			}
		}
		if call.Locked == Ask {
			return fmt.Errorf("call %d: under locked nobody is asked", i+1)
		}
	}
	return nil
}

// harmless lists the tools that cannot leave the workspace by themselves.
func harmless(tool string) bool {
	switch tool {
	case "read", "write", "edit", "apply_patch", "list_files", "search_files":
		return true
	}
	return false
}
