package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// ReadArguments reads an input from the arguments of a tool call, whose names may differ from those of the input's JSON.
// The input must be settable. Errors are written for people.
func (d *Definition) ReadArguments(args []byte) (reflect.Value, error) {
	in := reflect.New(d.In)
	var given map[string]json.RawMessage
	if len(bytes.TrimSpace(args)) > 0 {
		if err := json.Unmarshal(args, &given); err != nil {
			return in.Elem(), errors.New("the arguments must be a JSON object")
		}
	}
	for _, f := range d.Fields() {
		name, _, ok := f.In(AsTool)
		data, has := given[name]
		switch {
		case !ok || !has && !f.Required:
			continue
		case !has:
			return in.Elem(), errors.New(name + ": it is required")
		}
		if f.Type.Kind() == reflect.String && strings.HasSuffix(strings.ToLower(f.Name), "id") && isNumber(data) {
			data = []byte(`"` + string(bytes.TrimSpace(data)) + `"`) // ids of chat platforms are digits, and models omit the quotes
		}
		if err := json.Unmarshal(data, in.Elem().FieldByIndex(f.Index).Addr().Interface()); err != nil {
			return in.Elem(), errors.New(name + ": it does not fit: " + err.Error())
		}
		delete(given, name)
	}
	for name := range given {
		return in.Elem(), errors.New("there is no argument " + name)
	}
	return in.Elem(), nil
}

// isNumber reports whether a JSON value is a number. Its digits are not changed: ids may have more than a float can hold.
func isNumber(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && (data[0] == '-' || data[0] >= '0' && data[0] <= '9')
}
