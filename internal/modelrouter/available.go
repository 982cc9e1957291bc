package modelrouter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"chorus/internal/datadir"
)

// Available is available_models.json: what each vendor said it offers.
type Available struct {
	LastUpdated time.Time          `json:"last_updated"`
	Providers   map[string]Offered `json:"providers"`
}

// Offered is one vendor's answer.
type Offered struct {
	Valid  bool     `json:"valid"`
	Models []string `json:"models"`
	Error  string   `json:"error,omitempty"`
}

// Has reports whether a model is offered: it is listed, or it is a dated version of one that is.
func (o Offered) Has(name string) bool {
	undated, _ := withoutDate(name)
	return slices.Contains(o.Models, name) || slices.Contains(o.Models, undated)
}

// State says in a word or two whether a vendor can be used.
func (v Available) State(vendor Vendor) string {
	o, asked := v.Providers[vendor.Name]
	switch {
	case vendor.Provider().Offline:
		return "none needed"
	case !vendor.Configured():
		return "none"
	case !asked:
		return "not checked"
	case o.Valid && o.Error != "":
		return "valid, but"
	case o.Valid:
		return "valid"
	default:
		return "no"
	}
}

// ReadAvailable reads the file in its form with providers, or in the flat form. A missing file is an empty
// list. An unreadable file is also an empty list, together with an error that only deserves a warning.
func ReadAvailable(path string) (Available, error) {
	none := Available{Providers: map[string]Offered{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read the list of models: %w", err)
	}
	v, err := ParseAvailable(data)
	if err != nil {
		return none, fmt.Errorf("%s cannot be read (%w); create it again with: chorus models --refresh", path, err)
	}
	return v, nil
}

// ParseAvailable parses the file's contents. The flat form has the vendors
// at the top level, with or without last_updated.
func ParseAvailable(data []byte) (Available, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return Available{}, err
	}
	v := Available{Providers: map[string]Offered{}}
	if at, ok := top["last_updated"]; ok {
		// A date in another form is no reason to lose the list.
		var text string
		if json.Unmarshal(at, &text) == nil {
			v.LastUpdated = parseTime(text)
		}
		delete(top, "last_updated")
	}
	if nested, ok := top["providers"]; ok {
		top = nil
		if err := json.Unmarshal(nested, &top); err != nil {
			return Available{}, err
		}
	}
	for name, raw := range top {
		var o Offered
		if err := json.Unmarshal(raw, &o); err != nil {
			return Available{}, fmt.Errorf("%s: %w", name, err)
		}
		if o.Models == nil {
			o.Models = []string{}
		}
		v.Providers[name] = o
	}
	return v, nil
}

// parseTime parses a time with or without a zone. It returns the zero time if it cannot.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// Write writes the file completely or not at all.
func (v Available) Write(path string) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write the list of models: %w", err)
	}
	return datadir.WriteFile(path, append(data, '\n'), 0o600)
}
