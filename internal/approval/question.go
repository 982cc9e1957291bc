package approval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// Misfit says why an answer does not fit a question.
type Misfit struct {
	Field string // the field's name
	Why   string
}

func (m *Misfit) Error() string { return clip(m.Field) + " " + m.Why }

// AnswerText returns the answer to a question as people write it, given the values
// of its fields: one line each. If a value could be misunderstood, it returns a
// JSON object. Fields without a value are left out.
func AnswerText(values map[string][]string) string {
	var lines []string
	object, plain := map[string]any{}, true
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var given []string
		for _, v := range values[name] {
			if v = strings.TrimSpace(v); v != "" {
				given = append(given, v)
			}
		}
		if len(given) == 0 {
			continue
		}
		line := name + ": " + strings.Join(given, ", ")
		lines = append(lines, line)
		plain = plain && !strings.ContainsAny(line, "\n;{") && !strings.ContainsAny(name, ":=")
		if object[name] = given[0]; len(given) > 1 {
			object[name] = given
			plain = plain && !strings.Contains(strings.Join(given, ""), ",")
		}
	}
	if plain {
		return strings.Join(lines, "\n")
	}
	data, _ := json.Marshal(object) // strings and lists of strings cannot fail
	return string(data)
}

// ReadAnswer returns the values of a question's fields from what a person wrote: a JSON
// object, one line per field, or the value of the only field. Fields that were left out
// have no value. A value that does not fit is a *Misfit.
func ReadAnswer(fields []chat.Field, text string) (map[string]any, error) {
	out, wrong, err := readAll(fields, text)
	if err == nil && len(wrong) > 0 {
		return nil, wrong[0]
	}
	return out, err
}

// Misfits returns, for each field that an answer does not fit, the reason, by field name.
func Misfits(fields []chat.Field, text string) map[string]string {
	_, wrong, err := readAll(fields, text)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, m := range wrong {
		out[m.Field] = m.Why
	}
	return out
}

func readAll(fields []chat.Field, text string) (out map[string]any, wrong []*Misfit, err error) {
	given, err := SplitAnswer(fields, text)
	if err != nil {
		return nil, nil, err
	}
	out = map[string]any{}
	for _, f := range fields {
		said, ok := given[f.Name]
		switch {
		case ok:
			value, misfit := readSaid(f, said)
			if misfit == nil {
				misfit = fits(f, value)
			}
			if misfit != nil {
				wrong = append(wrong, misfit)
			} else {
				out[f.Name] = value
			}
		case f.Optional:
		case f.Kind == "boolean" && len(fields) == 1:
			out[f.Name] = true // a yes is the answer
		default:
			wrong = append(wrong, &Misfit{f.Name, "is missing"})
		}
	}
	return out, wrong, nil
}

// SplitAnswer splits an answer into what was said about each field.
func SplitAnswer(fields []chat.Field, text string) (map[string]any, error) {
	out := map[string]any{}
	if text = strings.TrimSpace(text); text == "" {
		return out, nil
	}
	if strings.HasPrefix(text, "{") {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber() // so that a million is not 1e+06
		err := d.Decode(&out)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it is incomplete")
		}
		if rest := strings.TrimSpace(text[d.InputOffset():]); err == nil && rest != "" {
			err = fmt.Errorf("%q follows it; remove that, or write everything into the object", clip(rest))
		}
		if err != nil {
			return nil, fmt.Errorf("this is not a JSON object: %w", err)
		}
		return out, nil
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "; ", "\n"), "\n") {
		at := strings.IndexAny(line, ":=")
		if at < 0 {
			continue
		}
		name := strings.TrimSpace(line[:at])
		if i := slices.IndexFunc(fields, func(f chat.Field) bool { return strings.EqualFold(f.Name, name) }); i >= 0 {
			out[fields[i].Name] = strings.TrimSpace(line[at+1:])
		}
	}
	if len(out) > 0 || len(fields) == 0 {
		return out, nil
	}
	if len(fields) > 1 && !fields[1].Optional {
		return nil, fmt.Errorf("say which value belongs to which field, for example %s: %s", fields[0].Name, clip(text))
	}
	out[fields[0].Name] = text
	return out, nil
}

// readSaid converts what was said, words or a JSON value, to what the field needs.
func readSaid(f chat.Field, said any) (any, *Misfit) {
	text, ok := said.(string)
	if !ok {
		if list, isList := said.([]any); isList && f.Kind == "list" {
			out := make([]any, len(list))
			for i, one := range list {
				value, err := choice(f, fmt.Sprint(one))
				if err != nil {
					return nil, err
				}
				out[i] = value
			}
			return out, nil
		}
		text = fmt.Sprint(said)
	}
	return readValue(f, text)
}

// ReadValue converts what a person wrote or chose to what the field
// needs. A value that does not fit is a *Misfit.
func ReadValue(f chat.Field, text string) (any, error) {
	value, misfit := readValue(f, text)
	if misfit == nil {
		misfit = fits(f, value)
	}
	if misfit != nil {
		return nil, misfit
	}
	return value, nil
}

func readValue(f chat.Field, text string) (any, *Misfit) {
	text = strings.TrimSpace(text)
	switch f.Kind {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, &Misfit{f.Name, fmt.Sprintf("must be a whole number, not %q", clip(text))}
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n-n != 0 { // JSON has no infinity
			return nil, &Misfit{f.Name, fmt.Sprintf("must be a number, not %q", clip(text))}
		}
		return n, nil
	case "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true", "1", "on":
			return true, nil
		case "n", "no", "false", "0", "off":
			return false, nil
		}
		return nil, &Misfit{f.Name, fmt.Sprintf("must be yes or no, not %q", clip(text))}
	case "list":
		out := []any{}
		for part := range strings.SplitSeq(text, ",") {
			value, err := choice(f, strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	}
	return choice(f, text)
}

// choice returns one of the allowed values. People may give its label.
func choice(f chat.Field, text string) (any, *Misfit) {
	if len(f.Choices) == 0 {
		return text, nil
	}
	for _, c := range f.Choices {
		if strings.EqualFold(c.Value, text) || strings.EqualFold(c.Label, text) {
			return c.Value, nil
		}
	}
	return nil, &Misfit{f.Name, fmt.Sprintf("cannot be %q: it is %s", clip(text), kindOf(f))}
}

// Hint says what a field is for and, if it is not a choice, how to write it.
func Hint(f chat.Field) string {
	kind := written(f)
	if len(f.Choices) > 0 || kind == "" {
		return f.Hint
	}
	if f.Hint == "" {
		return kind
	}
	return f.Hint + " (" + kind + ")"
}

// HowToAnswer explains how to answer a question without a form: each field with what fits it.
func HowToAnswer(fields []chat.Field) string {
	var lines []string
	for _, f := range fields {
		line := f.Name + " (" + kindOf(f) + ")"
		if about := strings.TrimSpace(strings.Trim(f.Label+": "+f.Hint, ": ")); about != f.Name && about != "" {
			line += ": " + strings.TrimPrefix(about, f.Name+": ")
		}
		lines = append(lines, line)
	}
	switch len(fields) {
	case 0:
		lines = append(lines, "Answer yes or no.")
	case 1:
		lines = append(lines, "Answer with the value.")
	default:
		lines = append(lines, "Answer with a line for each, as "+fields[0].Name+": VALUE; what is left out stays as it is.")
	}
	return strings.Join(lines, "\n")
}

var kinds = map[string]string{"integer": "a whole number", "number": "a number", "boolean": "yes or no", "list": "several, with commas"}

// kindOf says what fits a field.
func kindOf(f chat.Field) string {
	kind := cmp.Or(written(f), "text")
	if len(f.Choices) > 0 && f.Kind != "boolean" {
		var names []string
		for _, c := range f.Choices {
			name := c.Value
			if c.Label != c.Value {
				name += " = " + c.Label
			}
			names = append(names, name)
		}
		kind = "one of " + strings.Join(names, ", ")
		if f.Several {
			kind = "some of " + strings.Join(names, ", ")
		}
	}
	switch {
	case f.Optional && len(f.Values) > 0:
		kind += ", else " + strings.Join(f.Values, ", ")
	case f.Optional:
		kind += ", may be left out"
	}
	return kind
}

// clip shortens what is quoted back.
func clip(s string) string { return text.Clip(s, 40) }
