package apierror

import (
	"encoding/json"
)

// Patch is a body of which only the given fields matter.
type Patch map[string]json.RawMessage

// Take reads one field into v, if it is given. null empties it.
func Take[T any](p Patch, key string, v *T) error {
	raw, ok := p[key]
	if !ok {
		return nil
	}
	var fresh T
	if err := json.Unmarshal(raw, &fresh); err != nil {
		return Wrong(key, "BASE_TYPE_BAD_TYPE", "%s", err.Error())
	}
	*v = fresh
	return nil
}
