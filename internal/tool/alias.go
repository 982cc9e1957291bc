package tool

import (
	"encoding/json"
	"fmt"
)

// Also returns an alias with the same arguments.
func Also(name string) Alias { return Alias{Name: name} }

// Renamed returns an alias with other parameter names. names maps the alias's names to ours. A
// parameter mapped to "" is dropped; one that is not listed stays as it is.
func Renamed(name string, names map[string]string) Alias {
	return Converted(name, func(fields map[string]json.RawMessage) error {
		for theirs, ours := range names {
			raw, ok := fields[theirs]
			if !ok {
				continue
			}
			delete(fields, theirs)
			if _, both := fields[ours]; both {
				return fmt.Errorf("both '%s' and '%s' were given", theirs, ours)
			}
			if ours != "" {
				fields[ours] = raw
			}
		}
		return nil
	})
}

// Converted returns an alias whose parameters convert turns into ours in place.
func Converted(name string, convert func(fields map[string]json.RawMessage) error) Alias {
	return Alias{Name: name, Convert: func(args []byte) ([]byte, error) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(args, &fields); err != nil || fields == nil {
			return nil, fmt.Errorf("they must be one JSON object")
		}
		if err := convert(fields); err != nil {
			return nil, err
		}
		return json.Marshal(fields)
	}}
}
