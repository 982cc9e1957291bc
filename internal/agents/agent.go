package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"chorus/internal/text"
)

// Agent is the contents of agent.json. Keys that Chorus does not know are kept.
type Agent struct {
	Name         string
	SystemPrompt string
	Model        string   // provider/model; empty: the server's default
	Permissions  string   // name of a profile
	Tools        []string // empty: all. "task.*" means the tools of a group
	RareTools    []string // further tools, found by searching; written likewise
	WebSearch    bool
	Worker       string // claude, codex or acp: another program that does its work; empty: a model with our tools
	CreatedAt    time.Time
	Extra        map[string]json.RawMessage
}

// agentJSON sets the order in which the known keys are written.
type agentJSON struct {
	Name         string    `json:"name"`
	SystemPrompt string    `json:"systemPrompt"`
	Model        string    `json:"model"`
	Permissions  string    `json:"permissions"`
	Tools        []string  `json:"tools,omitempty"`
	RareTools    []string  `json:"rareTools,omitempty"`
	WebSearch    bool      `json:"webSearch,omitempty"`
	Worker       string    `json:"worker,omitempty"`
	CreatedAt    time.Time `json:"createdAt,omitzero"`
}

// spellings are the older names of keys, which are read and rewritten.
var spellings = map[string]string{
	"system_prompt": "systemPrompt", "rare_tools": "rareTools", "web_search": "webSearch", "created_at": "createdAt",
}

var errNoObject = errors.New("it must hold one JSON object")

// MarshalJSON writes the known keys in their order, then the others by name.
func (a Agent) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	known, err := text.JSON(agentJSON{a.Name, a.SystemPrompt, a.Model, a.Permissions, a.Tools, a.RareTools, a.WebSearch, a.Worker, a.CreatedAt})
	if err != nil {
		return nil, err
	}
	buf.Write(bytes.TrimSuffix(known, []byte("}")))
	for _, key := range slices.Sorted(maps.Keys(a.Extra)) {
		name, err := text.JSON(key)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&buf, ",%s:%s", name, a.Extra[key])
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// UnmarshalJSON reads an agent.json, including the older spellings of its keys.
func (a *Agent) UnmarshalJSON(data []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return err
	}
	if keys == nil {
		return errNoObject // null
	}
	for old, key := range spellings {
		if value, ok := keys[old]; ok {
			if _, both := keys[key]; !both {
				keys[key] = value
			}
			delete(keys, old)
		}
	}
	var read Agent
	for _, field := range []struct {
		key  string
		into any
	}{
		{"name", &read.Name}, {"systemPrompt", &read.SystemPrompt}, {"model", &read.Model}, {"permissions", &read.Permissions},
		{"tools", &read.Tools}, {"rareTools", &read.RareTools}, {"webSearch", &read.WebSearch}, {"worker", &read.Worker}, {"createdAt", &read.CreatedAt},
	} {
		value, ok := keys[field.key]
		if !ok {
			continue
		}
		if err := json.Unmarshal(value, field.into); err != nil {
			return &keyError{field.key, err}
		}
		delete(keys, field.key)
	}
	read.CreatedAt = read.CreatedAt.UTC().Truncate(time.Microsecond) // the precision of stores
	if len(keys) > 0 {
		read.Extra = keys
	}
	*a = read
	return nil
}

// keyError is the error for a value of the wrong kind.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](e.err); ok {
		return fmt.Sprintf("%q must be %s, not a %s", e.key, wanted(kind.Type.String()), kind.Value)
	}
	return fmt.Sprintf("%q: %v", e.key, e.err)
}

func (e *keyError) Unwrap() error { return e.err }

func wanted(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list of names"
	case goType == "bool":
		return "true or false"
	default:
		return "text"
	}
}

// parse parses an agent.json and says where it is broken.
func parse(path string, data []byte) (Agent, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var a Agent
	err := json.Unmarshal(data, &a)
	if err == nil {
		return a, nil
	}
	problem := &FileError{Path: path, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var key *keyError
	switch {
	case errors.As(err, &syntax):
		problem.Line, problem.Column = position(data, syntax.Offset)
	case errors.As(err, &key):
		problem.Err = key
		if at := bytes.Index(data, []byte(`"`+key.key+`"`)); at >= 0 {
			problem.Line, problem.Column = position(data, int64(at)+1)
		}
	case errors.As(err, &kind):
		problem.Err = errNoObject
	}
	return Agent{}, problem
}

// position converts the number of bytes read to a line and a column, from 1.
func position(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// FileError is the error for an unusable agent.json. Line and Column are 0 if the place does not matter.
type FileError struct {
	Path         string
	Line, Column int
	Err          error
}

// Error says what is wrong and where.
func (e *FileError) Error() string {
	where := e.Path
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.Path, e.Line, e.Column)
	}
	return fmt.Sprintf("%s: %v; fix the file, until then the last good version applies", where, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// document returns agent.json as it is written: indented, with a trailing newline.
func document(a Agent) ([]byte, error) {
	data, err := a.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", a.Name, err)
	}
	var buf bytes.Buffer
	if err := json.Indent(&buf, data, "", "  "); err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", a.Name, err)
	}
	buf.WriteByte('\n')
	return buf.Bytes(), nil
}

// same reports whether two agents would be written alike.
func same(a, b Agent) bool {
	x, errX := json.Marshal(a) // compact and uniformly escaped, wherever the bytes of Extra come from
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
