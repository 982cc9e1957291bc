package permit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
)

// largestRules is far beyond any rule file a person writes.
const largestRules = 1 << 20

// Load gives the preset of that name, or the profile in that file. "" is the
// default, standard.
func Load(nameOrFile string) (*Profile, error) {
	if nameOrFile == "" {
		nameOrFile = "standard"
	}
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
	data, err := io.ReadAll(io.LimitReader(f, largestRules+1))
	if err != nil {
		return nil, fmt.Errorf("read rules %s: %w", nameOrFile, err)
	}
	if len(data) > largestRules {
		return nil, fmt.Errorf("rules %s: larger than %d bytes", nameOrFile, largestRules)
	}
	r, err := ParseRules(data)
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", nameOrFile, err)
	}
	return Compile(nameOrFile, r)
}

// ParseRules reads rules written as JSON or YAML, whichever the content is. An
// unknown key is an error: a misspelt deny must not vanish.
func ParseRules(data []byte) (Rules, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return Rules{}, errors.New(`empty: write {"allow":[…],"ask":[…],"deny":[…]}`)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return parseJSON(data)
	}
	var f struct {
		Allow []string `yaml:"allow"`
		Ask   []string `yaml:"ask"`
		Deny  []string `yaml:"deny"`
	}
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return Rules{}, fmt.Errorf("%s", strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	return Rules{Allow: f.Allow, Ask: f.Ask, Deny: f.Deny}, nil
}

func parseJSON(data []byte) (Rules, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var r Rules
	err := dec.Decode(&r)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return Rules{}, fmt.Errorf("%s: something stands after the rules", position(data, dec.InputOffset()))
		}
		return r, nil
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
