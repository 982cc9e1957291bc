package hook

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"chorus/internal/pattern"
)

// maxRendered is the maximum length of a rendered template, in bytes.
// It is far more than a model reads with care.
const maxRendered = 400_000

// placeholder matches {{step_0}}, {{step_0.exit_code}}, {{event}},
// {{event.result.ok}}, {{response}} and the like.
var placeholder = pattern.Lazy(`\{\{\s*([a-z]+(?:_[0-9]{1,4})?)((?:\.[A-Za-z0-9_-]{1,64}){0,8})\s*\}\}`)

// Values are the values of placeholders.
type Values struct {
	Event    json.RawMessage
	Steps    []Result
	Response string
	Hook     string // its name
	// Frame marks text that others wrote; nil inserts it unchanged.
	Frame func(source, text string) string
}

// Render fills in a template. A missing value is empty; an unknown placeholder stays as
// written. The template is read once: inserted values are not read again.
func (v Values) Render(template string) string {
	return v.render(template, func(source, text string) string {
		if v.Frame == nil || source == "" {
			return text
		}
		return v.Frame(source, text)
	})
}

// RenderURL fills in a URL. Inserted values cannot leave their part of the path or the query.
func (v Values) RenderURL(template string) string {
	return v.render(template, func(_, text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") })
}

func (v Values) render(template string, put func(source, text string) string) string {
	var out strings.Builder
	at := 0
	for _, m := range placeholder().FindAllStringSubmatchIndex(template, -1) {
		if out.Len() > maxRendered {
			break
		}
		out.WriteString(template[at:m[0]])
		at = m[1]
		source, text, known := v.value(template[m[2]:m[3]], strings.Split(strings.TrimPrefix(template[m[4]:m[5]], "."), "."))
		switch {
		case !known:
			out.WriteString(template[m[0]:m[1]])
		case text != "":
			out.WriteString(put(source, text))
		}
	}
	if out.Len() <= maxRendered {
		out.WriteString(template[at:])
	}
	text := out.String()
	if len(text) <= maxRendered {
		return text
	}
	cut := maxRendered
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + fmt.Sprintf("\n[cut at %d bytes]", maxRendered)
}

// value returns the value of a name. source says who wrote it; "" if nobody else did, as with numbers.
func (v Values) value(name string, path []string) (source, text string, known bool) {
	if path[0] == "" {
		path = nil
	}
	switch {
	case name == "event":
		if path == nil {
			return v.text("event", v.Event)
		}
		return v.text("event", lookup(v.Event, path))
	case name == "response" && path == nil:
		return "the hook's model", v.Response, true
	case name == "hook" && slices.Equal(path, []string{"name"}):
		return "", v.Hook, true
	}
	number, ok := strings.CutPrefix(name, "step_")
	if !ok {
		return "", "", false
	}
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(v.Steps) {
		return "", "", err == nil
	}
	r := v.Steps[n]
	source = fmt.Sprintf("step %d (%s)", n, r.Type)
	if path == nil {
		return source, r.Text(), true
	}
	data, _ := json.Marshal(r) // text and numbers only
	return v.text(source, lookup(data, path))
}

// text returns a value as inserted in a template: strings without quotes, anything
// else as JSON. Numbers and booleans are not anybody's words.
func (v Values) text(source string, data json.RawMessage) (string, string, bool) {
	if len(data) == 0 || string(data) == "null" {
		return "", "", true
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		return source, s, true
	}
	if c := data[0]; c != '{' && c != '[' {
		source = ""
	}
	return source, string(data), true
}

// lookup finds a value in nested objects, or returns nil.
func lookup(data json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return nil
		}
		data = object[name]
	}
	return data
}

// placeholders returns the names that a text uses.
func placeholders(text string) (names []string) {
	for _, m := range placeholder().FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// RenderArgs fills in the texts of arguments, which remain valid JSON whatever is inserted.
func (v Values) RenderArgs(args json.RawMessage) json.RawMessage {
	var object any
	if len(args) == 0 || json.Unmarshal(args, &object) != nil {
		return args
	}
	out, _ := json.Marshal(v.renderAll(object)) // it came from JSON
	return out
}

func (v Values) renderAll(value any) any {
	switch x := value.(type) {
	case string:
		return v.render(x, func(_, text string) string { return text })
	case map[string]any:
		for name, inner := range x {
			x[name] = v.renderAll(inner)
		}
	case []any:
		for i, inner := range x {
			x[i] = v.renderAll(inner)
		}
	}
	return value
}
