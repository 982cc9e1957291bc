package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
)

// ReadArguments reads an input from the arguments of a call of its tool, whose names may differ from those of the input's JSON. The input
// is settable. What is wrong with it is a sentence.
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
