package toolhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A repository defines hooks in a settings file, in the format common to coding agents:
//
//	{"hooks": {"PreToolUse": [{"matcher": "bash|write", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 10}]}]}}

// Files returns the settings files of a repository that may define hooks. Those
// of another program use its names for tools and arguments.
func Files() []string { return []string{ownFile, claudeFile} }

const (
	ownFile    = ".chorus/settings.json"
	claudeFile = ".claude/settings.json"
)

const (
	maxHooks   = 50
	maxTimeout = 60 * time.Second
)

var events = map[string]string{"PreToolUse": Before, "PostToolUse": After}

// Parse reads the hooks of a repository's settings file. What is meant for other programs is
// left out, and what cannot be parsed is reported as a problem for people.
func Parse(file string, data []byte) (hooks []Hook, problems []string, err error) {
	var settings struct {
		Hooks map[string]json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return nil, nil, fmt.Errorf("it is not a JSON object with the key hooks: %w", err)
	}
	var other []string
	for _, event := range []string{"PreToolUse", "PostToolUse"} {
		list, there := settings.Hooks[event]
		if !there {
			continue
		}
		var groups []group
		if err := json.Unmarshal(list, &groups); err != nil {
			return nil, nil, fmt.Errorf("hooks.%s must be a list of {matcher, hooks}: %w", event, err)
		}
		for i, g := range groups {
			more, wrong := g.read(file, event, i)
			hooks, problems = append(hooks, more...), append(problems, wrong...)
		}
	}
	for event := range settings.Hooks {
		if events[event] == "" {
			other = append(other, event)
		}
	}
	if slices.Sort(other); len(other) > 0 {
		problems = append(problems, fmt.Sprintf("hooks for %s are ignored: only PreToolUse and PostToolUse are supported", strings.Join(other, ", ")))
	}
	if len(hooks) > maxHooks {
		return nil, nil, fmt.Errorf("it names %d hooks, and the limit is %d", len(hooks), maxHooks)
	}
	return hooks, problems, nil
}

type group struct {
	Matcher string `json:"matcher"`
	Hooks   []struct {
		Type    string  `json:"type"`
		Command string  `json:"command"`
		Timeout float64 `json:"timeout"` // seconds
	} `json:"hooks"`
}

func (g group) read(file, event string, at int) (hooks []Hook, problems []string) {
	matches, err := matcher(g.Matcher)
	if err != nil {
		return nil, []string{fmt.Sprintf("hooks.%s[%d]: the matcher %.80q cannot be understood: %v", event, at, g.Matcher, err)}
	}
	for i, c := range g.Hooks {
		where := fmt.Sprintf("hooks.%s[%d].hooks[%d]", event, at, i)
		switch {
		case c.Type != "" && c.Type != "command":
			problems = append(problems, fmt.Sprintf("%s is ignored: its type is %.20q, and only commands are supported", where, c.Type))
			continue
		case strings.TrimSpace(c.Command) == "":
			problems = append(problems, where+" is ignored: it has no command")
			continue
		}
		limit := DefaultTimeout
		if c.Timeout > 0 {
			limit = min(time.Duration(c.Timeout*float64(time.Second)), maxTimeout)
		}
		hooks = append(hooks, Hook{Name: fmt.Sprintf("%s of %s", describe(c.Command), file), Event: events[event], Tools: g.Matcher, Command: c.Command, Timeout: limit,
			File: file, matches: matches, claude: file == claudeFile})
	}
	return hooks, problems
}

// describe describes a command in a few words: its file, or its beginning.
func describe(command string) string {
	words := strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(command))
	for _, word := range words {
		if strings.Contains(word, "/") && filepath.Ext(word) != "" {
			return filepath.Base(word)
		}
	}
	short := strings.Join(words, " ")
	return short[:min(len(short), 40)]
}

// projectDir are the variables that name the working folder.
var projectDir = []string{"CHORUS_PROJECT_DIR", "CLAUDE_PROJECT_DIR"}

// Environ returns the additional variables of a repository's hook.
func Environ(dir string) (out []string) {
	for _, name := range projectDir {
		out = append(out, name+"="+dir)
	}
	return out
}

// Expand returns the command with the folder's name inserted, so that the files it names can be found.
func (h Hook) Expand(dir string) string {
	command := h.Command
	for _, name := range projectDir {
		command = strings.NewReplacer(`"$`+name+`"`, dir, "${"+name+"}", dir, "$"+name, dir).Replace(command)
	}
	return command
}

// matcher returns the pattern of the tools that hooks are for; nil for all.
func matcher(pattern string) (*regexp.Regexp, error) {
	pattern = strings.TrimSpace(pattern)
	if pattern == "" || pattern == "*" {
		return nil, nil
	}
	if len(pattern) > 1000 {
		return nil, errors.New("it is longer than 1000 bytes")
	}
	return regexp.Compile(`(?i)^(?:` + pattern + `)$`)
}

// claudeNames are another program's names for the tools that we have too.
var claudeNames = map[string]string{"bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit", "search_files": "Grep", "list_files": "Glob", "web_fetch": "WebFetch", "web_search": "WebSearch"}

func claudeName(tool string) string {
	return cmp.Or(claudeNames[tool], tool)
}

// withFile are the tools whose argument path is called file_path by
// another program, which expects it to be absolute.
var withFile = []string{"read", "write", "edit"}

// shown returns a call in the form that a hook expects.
func (h Hook) shown(call Call) Call {
	if !h.claude {
		return call
	}
	var input map[string]json.RawMessage
	var path string
	if slices.Contains(withFile, call.Tool) && json.Unmarshal(call.Input, &input) == nil && json.Unmarshal(input["path"], &path) == nil {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "@") {
			path = filepath.Join(call.Dir, path)
		}
		input["file_path"], _ = json.Marshal(path)        // a text always encodes
		if data, err := json.Marshal(input); err == nil { // it came from JSON
			call.Input = data
		}
	}
	call.Tool = claudeName(call.Tool)
	return call
}

// ownInput returns the arguments from a hook, with the names that the tool uses.
func (h Hook) ownInput(call Call, after json.RawMessage) json.RawMessage {
	var was, given, is map[string]json.RawMessage
	if !h.claude || json.Unmarshal(call.Input, &was) != nil || json.Unmarshal(h.shown(call).Input, &given) != nil || json.Unmarshal(after, &is) != nil {
		return after
	}
	file, there := is["file_path"]
	if !there || !slices.Contains(withFile, call.Tool) {
		return after
	}
	delete(is, "file_path")
	switch {
	case string(file) != string(given["file_path"]):
		is["path"] = file
	case is["path"] == nil:
		is["path"] = was["path"]
	}
	out, err := json.Marshal(is)
	if err != nil {
		return after
	}
	return out
}
