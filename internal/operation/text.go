package operation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	clip "chorus/internal/text"
)

// SetText sets a field of an input from typed text. Lists are separated by commas and appended to; times are dates,
// moments, or durations before now. The error is written for whoever typed it.
func (f Field) SetText(into reflect.Value, text string, now time.Time) error {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if into.Type() == reflect.TypeFor[time.Time]() {
		t, err := ParseTime(text, now)
		if err != nil {
			return err
		}
		into.Set(reflect.ValueOf(t))
		return nil
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("it must be true or false, not %.40q", text)
		}
		into.SetBool(yes)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("it must be a whole number, not %.40q", text)
		}
		into.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("it must be a number, not %.40q", text)
		}
		into.SetFloat(n)
	case reflect.Slice:
		return appendText(into, text)
	default:
		if into.Type() == reflect.TypeFor[JSON]() && !json.Valid([]byte(text)) {
			text = strconv.Quote(text) // the handler may also understand words
		}
		if err := json.Unmarshal([]byte(text), into.Addr().Interface()); err != nil {
			return fmt.Errorf("it must be JSON: %w", err)
		}
	}
	return nil
}

func appendText(into reflect.Value, text string) error {
	if into.Type().Elem().Kind() != reflect.String {
		return fmt.Errorf("a list of %s cannot be typed", into.Type().Elem())
	}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			into.Set(reflect.Append(into, reflect.ValueOf(part).Convert(into.Type().Elem())))
		}
	}
	return nil
}

// ParseTime parses a point in time: a date or time in now's zone, RFC 3339, or a duration before now.
func ParseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("invalid time %.40q; write 2026-01-31, 2026-01-31T15:04 or 24h", text)
}

// byJSONName finds a field of a struct, including embedded ones.
func byJSONName(v reflect.Value, name string) (reflect.Value, bool) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if n, _, _ := strings.Cut(f.Tag.Get("json"), ","); n == name && f.IsExported() {
			return v.FieldByIndex(f.Index), true
		}
	}
	return reflect.Value{}, false
}

// Sentence fills the names in braces of a template such as Done with values of the output, or else of the input.
func Sentence(template string, in, out any) string {
	return braces(template, func(name string) string {
		for _, from := range []any{out, in} {
			if v, ok := byJSONName(reflect.ValueOf(from), name); ok {
				return Cell(v, "")
			}
		}
		return "{" + name + "}"
	})
}

// Shower is an item of an output that renders itself for people, as Markdown.
type Shower interface{ Shown() string }

// Render fills a template of several lines with values of the output, or else of the input. A name may have a format:
// one of Cell's, "block" for preformatted text, "diff" for a difference, "diffs" for a list of differences with their
// paths, "list" for one line per item, "each" for items that render themselves (Shower), "yes|no" for the words for true
// and false, and for a text's format and the words if there is none. A line whose names are all empty is left out.
func Render(template string, in, out any) string {
	var lines []string
	for line := range strings.SplitSeq(template, "\n") {
		names, filled := 0, 0
		line = braces(line, func(name string) string {
			names++
			name, format, _ := strings.Cut(name, ":")
			text := ""
			for _, from := range []any{out, in} {
				if v, ok := byJSONName(reflect.ValueOf(from), name); ok {
					text = formatted(v, format)
					break
				}
			}
			if text != "" {
				filled++
			}
			return text
		})
		if names == 0 || filled > 0 {
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	return strings.Join(lines, "\n")
}

func formatted(v reflect.Value, format string) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	yes, no, choice := strings.Cut(format, "|")
	switch {
	case v.Kind() == reflect.Bool && choice && v.Bool():
		return yes
	case v.Kind() == reflect.Bool && choice:
		return no
	case v.Kind() == reflect.String && choice && v.Len() == 0:
		return no
	case v.Kind() == reflect.String && choice:
		format = yes
	}
	switch {
	case v.Kind() != reflect.Int && v.Kind() != reflect.Int64 && v.IsZero():
		return ""
	case format == "block":
		return fenced("", Cell(v, ""))
	case format == "diff":
		return fenced("diff", Cell(v, ""))
	case v.Kind() == reflect.Slice && (format == "list" || format == "diffs" || format == "each"):
		var lines []string
		for i := range v.Len() {
			item := v.Index(i)
			switch shows, ok := item.Interface().(Shower); {
			case format == "each" && ok:
				lines = append(lines, shows.Shown())
			case format == "diffs":
				lines = append(lines, Render("{path} {how}\n{diff:diff}", nil, item.Interface()))
			case item.Kind() == reflect.Struct:
				lines = append(lines, "- "+inOneLine(item))
			default:
				lines = append(lines, "- "+Cell(item, ""))
			}
		}
		return strings.Join(lines, "\n")
	}
	return Cell(v, format)
}

// fenced is text between fences of Markdown, which it cannot close itself.
func fenced(language, body string) string {
	return "```" + language + "\n" + strings.TrimRight(strings.ReplaceAll(body, "```", "'''"), "\n") + "\n```"
}

func braces(template string, value func(name string) string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(template, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			b.WriteString("{" + rest)
			return b.String()
		}
		b.WriteString(value(name))
		template = after
	}
}

// Column is one column of a table.
type Column struct{ Title, Field, Format string }

// TableColumns reads Columns: "TITLE=field:format | …". Formats are those of Cell.
func (d *Definition) TableColumns() []Column {
	var out []Column
	for part := range strings.SplitSeq(d.Columns, "|") {
		title, field, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			continue
		}
		field, format, _ := strings.Cut(field, ":")
		out = append(out, Column{title, field, format})
	}
	return out
}

// Table is an output for people: a list with the definition's columns, anything else as names and values.
type Table struct {
	Head []string // nil: the first cell of a row is its name
	Rows [][]string
}

// TableOf makes a table of an output.
func (d *Definition) TableOf(out any) Table {
	v := reflect.ValueOf(out)
	if v.Kind() == reflect.Struct {
		if items, ok := byJSONName(v, "items"); ok && items.Kind() == reflect.Slice && d.Columns != "" {
			return d.listTable(items)
		}
	}
	var t Table
	if v.Kind() != reflect.Struct {
		return t
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Anonymous {
			continue
		}
		value := v.FieldByIndex(f.Index)
		if value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct {
			t.Rows = append(t.Rows, below(name, value)...)
		} else if text := Cell(value, ""); !value.IsZero() && text != "" {
			t.Rows = append(t.Rows, []string{name, text})
		}
	}
	return t
}

// below returns the rows of a nested list: one per item, the first with its name.
func below(name string, items reflect.Value) (rows [][]string) {
	for i := range items.Len() {
		rows = append(rows, []string{name, inOneLine(items.Index(i))})
		name = ""
	}
	return rows
}

// inOneLine formats a struct as the values of its fields. A time on its own is shown as a date in its own zone.
func inOneLine(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format("Mon 2006-01-02 15:04 -07:00")
	}
	var parts []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		if name := f.Tag.Get("json"); name == "" || name == "-" || f.Anonymous || value.IsZero() {
			continue
		}
		if text := Cell(value, ""); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "  ")
}

func (d *Definition) listTable(items reflect.Value) Table {
	columns := d.TableColumns()
	t := Table{}
	for _, c := range columns {
		t.Head = append(t.Head, c.Title)
	}
	for i := range items.Len() {
		row := make([]string, len(columns))
		for n, c := range columns {
			if v, ok := byJSONName(items.Index(i), c.Field); ok {
				row[n] = Cell(v, c.Format)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Cell formats a value for people. A format is day or minute (of a time), a number (maximum characters), thousands (of a number: 1,234), or the text for an empty value.
func Cell(v reflect.Value, format string) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if t, ok := v.Interface().(time.Time); ok {
		return timeCell(t, format)
	}
	text := ""
	switch v.Kind() {
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			text = string(raw)
			break
		}
		parts := make([]string, v.Len())
		for i := range parts {
			if v.Index(i).Kind() == reflect.Struct {
				return strconv.Itoa(v.Len())
			}
			parts[i] = fmt.Sprint(v.Index(i))
		}
		text = strings.Join(parts, ", ")
	case reflect.Struct, reflect.Map:
		data, err := json.Marshal(v.Interface())
		if err != nil {
			return ""
		}
		text = string(data)
	default:
		text = fmt.Sprint(v)
	}
	if format == "thousands" && v.CanInt() {
		return clip.Thousands(int(v.Int()))
	}
	if most, err := strconv.Atoi(format); err == nil {
		return clip.Clip(clip.OneLine(text), most)
	}
	return cmp.Or(text, format)
}

func timeCell(t time.Time, format string) string {
	switch {
	case t.IsZero():
		return "–"
	case format == "day":
		return t.Local().Format(time.DateOnly)
	default:
		return t.Local().Format("2006-01-02 15:04")
	}
}
