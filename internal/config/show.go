package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"chorus/internal/pattern"
	"chorus/internal/text"
)

// Row is one value for people: where it came from, secrets masked.
type Row struct {
	Key    string `json:"key"`
	Label  string `json:"label"`
	Path   string `json:"-"`     // of its key in the table, with a "*" where Key has a name
	Value  any    `json:"value"` // null: not set, and no default
	Layer  string `json:"layer"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// Rows lists every key in the table's order, and the contents of maps.
func (b *Bot) Rows() []Row {
	var out []Row
	for _, k := range Keys() {
		if !strings.Contains(k.Path, "*") {
			out = append(out, b.row(&k, k.Path))
			continue
		}
		for _, l := range b.merged.leaves {
			if l.key != nil && l.key.Path == k.Path && l.value.form != isNull {
				out = append(out, b.row(&k, l.path))
			}
		}
	}
	for _, l := range b.pinned {
		const path = "channels.*.permissions"
		here := strings.Replace(path, "*", "here", 1)
		out = append(out, Row{Key: here, Label: table().keys[path].labelAt(here), Path: path, Value: l.value.text, Layer: l.at.Layer.String(), File: l.at.File, Line: l.at.Line})
	}
	return out
}

func (b *Bot) row(k *Key, path string) Row {
	at := b.Origin(path)
	row := Row{Key: shownPath(path), Label: k.labelAt(path), Path: k.Path, Value: k.Default, Layer: at.Layer.String(), File: at.File, Line: at.Line}
	if text, from, ok := b.derived(path); ok {
		row.Value, row.Layer, row.File, row.Line = text, from.Layer.String(), from.File, from.Line
		return row
	}
	l := b.merged.get(path)
	if l == nil {
		return row
	}
	row.Value = l.value.plain()
	if !k.Secret {
		return row
	}
	if onlyReference().MatchString(l.value.text) { // a name is no secret
		row.Secret = true
		return row
	}
	if hidden(k, path, l.value.text) {
		row.Value, row.Secret = masked(l.value.text), true
	}
	return row
}

// onlyReference matches values that contain only references to where the secret is.
var onlyReference = pattern.Lazy(`^((Bearer )?\$\{[A-Za-z0-9_]+\}|file:[^\n]*)(\n(\$\{[A-Za-z0-9_]+\}|file:[^\n]*))*$`)

// derived returns a value that follows from another key: a prompt
// from its file, the inner name from the bot's.
func (b *Bot) derived(path string) (string, Place, bool) {
	switch path {
	case "innerName":
		return b.InnerName, Place{}, !b.IsSet(path) && b.InnerName != ""
	case "systemPrompt":
		return b.SystemPrompt, b.Origin(path + "File"), b.SystemPrompt != b.text(path)
	case "contextPrefix":
		return b.ContextPrefix, b.Origin(path + "File"), b.ContextPrefix != b.text(path)
	}
	return "", Place{}, false
}

// Shown returns the value as one line of a table.
func (r Row) Shown() string {
	switch v := r.Value.(type) {
	case nil:
		return "–"
	case string:
		if v == "" || strings.ContainsFunc(v, unicode.IsControl) || v != strings.TrimSpace(v) {
			return text.Clip(fmt.Sprintf("%q", v), 60)
		}
		return text.Clip(v, 60)
	case bool, int, float64:
		return fmt.Sprint(v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return text.Clip(string(data), 60)
	}
}

// From returns where the value came from, for people.
func (r Row) From() string {
	if r.File == "" {
		return r.Layer
	}
	if r.Line == 0 {
		return r.File
	}
	return fmt.Sprintf("%s:%d", r.File, r.Line)
}
