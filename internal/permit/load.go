package permit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"chorus/internal/yamltext"
)

// maxRulesSize is far larger than any rules file that a person writes.
const maxRulesSize = 1 << 20

// Load returns the preset of that name, or the profile in that file. "" means the default, standard.
func Load(nameOrFile string) (*Profile, error) {
	nameOrFile = cmp.Or(nameOrFile, "standard")
	if IsPreset(nameOrFile) {
		return Preset(nameOrFile)
	}
	f, err := os.Open(nameOrFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no rules file %q, and no preset of that name: the presets are %s", nameOrFile, strings.Join(Presets(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRulesSize+1))
	if err != nil {
		return nil, fmt.Errorf("read rules %s: %w", nameOrFile, err)
	}
	if len(data) > maxRulesSize {
		return nil, fmt.Errorf("rules %s: larger than %d bytes", nameOrFile, maxRulesSize)
	}
	r, err := ParseRules(data)
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", nameOrFile, err)
	}
	return Compile(nameOrFile, r)
}

// ParseRules reads rules in JSON or YAML. Unknown keys are errors: a misspelt deny must not be ignored.
func ParseRules(data []byte) (Rules, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return Rules{}, errors.New(`empty: write {"allow":[…],"ask":[…],"deny":[…]}`)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return parseJSON(data)
	}
	var f rulesFile
	if err := yamltext.Read(data, &f); err != nil {
		return Rules{}, err
	}
	return f.rules(), nil
}

// rulesFile is how Rules are stored in a file.
type rulesFile struct {
	Allow []rulesEntry `json:"allow" yaml:"allow"`
	Ask   []rulesEntry `json:"ask" yaml:"ask"`
	Deny  []rulesEntry `json:"deny,omitempty" yaml:"deny"`
}

func (f rulesFile) rules() Rules {
	texts := func(list []rulesEntry) []string {
		if list == nil {
			return nil
		}
		out := make([]string, len(list))
		for i, e := range list {
			out[i] = string(e)
		}
		return out
	}
	return Rules{Allow: texts(f.Allow), Ask: texts(f.Ask), Deny: texts(f.Deny)}
}

// rulesEntry is one rule in a list: a pattern, or an object with
// restrictions. It has the form of Rule.String.
type rulesEntry string

// UnmarshalJSON reads either form.
func (e *rulesEntry) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		r, err := ParseRule(string(data))
		*e = rulesEntry(r.String())
		return err
	}
	return json.Unmarshal(data, (*string)(e))
}

// MarshalJSON writes a restricted rule as an object.
func (e rulesEntry) MarshalJSON() ([]byte, error) {
	if r, err := ParseRule(string(e)); err == nil && r.restricted() {
		return json.Marshal(r)
	}
	return json.Marshal(string(e))
}

// UnmarshalYAML reads either form.
func (e *rulesEntry) UnmarshalYAML(decode func(any) error) error {
	if err := decode((*string)(e)); err == nil {
		return nil
	}
	var fields map[string]any
	if err := decode(&fields); err != nil {
		return errors.New("a rule is a pattern, or an object with rule, roles, agents and channels")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("not a rule: %w", err)
	}
	return e.UnmarshalJSON(text)
}

// MarshalJSON writes empty lists as [] but omits an empty deny list.
func (r Rules) MarshalJSON() ([]byte, error) {
	entries := func(list []string) []rulesEntry {
		out := make([]rulesEntry, len(list))
		for i, s := range list {
			out[i] = rulesEntry(s)
		}
		return out
	}
	return json.Marshal(rulesFile{Allow: entries(r.Allow), Ask: entries(r.Ask), Deny: entries(r.Deny)})
}

// UnmarshalJSON reads what MarshalJSON wrote and rejects unknown keys.
func (r *Rules) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var f rulesFile
	if err := dec.Decode(&f); err != nil {
		return err
	}
	*r = f.rules()
	return nil
}

func parseJSON(data []byte) (Rules, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var f rulesFile
	err := dec.Decode(&f)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return Rules{}, fmt.Errorf("%s: unexpected text after the rules", position(data, dec.InputOffset()))
		}
		return f.rules(), nil
	}
	at := dec.InputOffset()
	var bad *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &bad):
		at = bad.Offset
	case errors.As(err, &wrong):
		return Rules{}, fmt.Errorf("%s: %s must be a list of patterns, not %s", position(data, wrong.Offset), wrong.Field, wrong.Value)
	}
	return Rules{}, fmt.Errorf("%s: %s", position(data, at), strings.TrimPrefix(err.Error(), "json: "))
}

func position(data []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(data)))
	before := data[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Sprintf("line %d, column %d", line, max(column, 1))
}
