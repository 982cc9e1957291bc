package redact

import "encoding/json"

// JSON redacts the strings of a JSON text and leaves everything else unchanged, so that it stays JSON. A
// value whose key names a secret is redacted too. Text that is not JSON is redacted as text.
func (r *Redactor) JSON(data []byte) []byte {
	if !json.Valid(data) {
		return []byte(r.Text(string(data)))
	}
	out := make([]byte, 0, len(data))
	key := ""
	for i := 0; i < len(data); {
		if data[i] != '"' {
			if data[i] == '{' || data[i] == '[' {
				key = ""
			}
			out = append(out, data[i])
			i++
			continue
		}
		end := literal(data, i)
		text := data[i:end]
		i = end
		var value string
		if json.Unmarshal(text, &value) != nil {
			out = append(out, text...) // impossible: it is valid
			continue
		}
		if isKey(data, i) {
			key = value
		} else if hidden := r.named(key, value); hidden != value {
			text = quote(hidden)
		}
		out = append(out, text...)
	}
	return out
}

// literal returns where the string that begins at i ends.
func literal(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func isKey(data []byte, i int) bool {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i < len(data) && data[i] == ':'
}

// quote returns a text as a JSON string.
func quote(text string) []byte {
	data, err := json.Marshal(text)
	if err != nil {
		return []byte(`"` + mark("unreadable") + `"`) // impossible: it is a string
	}
	return data
}

// named redacts a value by its name and by its content.
func (r *Redactor) named(name, value string) string {
	if of, kind, _ := called(name); of != unnamed && value != "" {
		a := assignment{text: value, of: of, quoted: true, to: len(value)}
		if of == header {
			a.credentials()
		}
		if a.to > a.from && a.secret() {
			return value[:a.from] + mark(kind) + value[a.to:]
		}
	}
	return r.Text(value)
}
