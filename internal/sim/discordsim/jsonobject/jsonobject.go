// Package jsonobject reads fields of JSON objects that the simulator passes on unchanged: embeds, components, the options of commands.
package jsonobject

type object = map[string]any

// Text is a text of an object; "": there is none.
func Text(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

// List returns the objects in a list of an object.
func List(o object, key string) []object {
	list, _ := o[key].([]any)
	out := make([]object, 0, len(list))
	for _, v := range list {
		one, _ := v.(map[string]any)
		out = append(out, one)
	}
	return out
}

// Kind is the type number of a component or an option.
func Kind(c object) int {
	n, _ := c["type"].(float64)
	return int(n)
}

// Number returns a number of a component, or the default.
func Number(o object, key string, otherwise int) int {
	if n, ok := o[key].(float64); ok {
		return int(n)
	}
	return otherwise
}
