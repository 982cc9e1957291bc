package format

import (
	"bytes"
	"encoding/json"
	"strings"

	"chorus/internal/chat"
)

// detail is a piece of OpenRouter's reasoning_details. All its fields go back as they came.
type detail map[string]json.RawMessage

// details is a list of them; anything else in its place is skipped.
type details []detail

func (d *details) UnmarshalJSON(data []byte) error {
	var list []detail
	if json.Unmarshal(data, &list) == nil {
		*d = list
	}
	return nil
}

func (d detail) word(key string) string {
	var s text
	_ = json.Unmarshal(d[key], &s) // anything but a string counts as empty
	return string(s)
}

// text returns the readable text of the pieces.
func (d details) text() string {
	var b strings.Builder
	for _, one := range d {
		b.WriteString(one.word("text"))
		b.WriteString(one.word("summary"))
	}
	return b.String()
}

// mergeDetail adds a piece: to the last one if it continues it, or else after it.
func mergeDetail(list []detail, d detail) []detail {
	if len(d) == 0 {
		return list
	}
	n := len(list)
	if n == 0 || d.word("type") == "reasoning.encrypted" || !sameField(list[n-1], d, "type") || !sameField(list[n-1], d, "index") {
		return append(list, d)
	}
	last := list[n-1]
	for key, value := range d {
		switch {
		case key == "text" || key == "summary":
			last[key] = encodeWord(last.word(key) + d.word(key))
		case string(value) != "null" && string(value) != `""`:
			last[key] = value
		}
	}
	return list
}

func sameField(a, b detail, key string) bool { return bytes.Equal(a[key], b[key]) }

func encodeWord(s string) json.RawMessage {
	data, _ := json.Marshal(s) // strings always encode
	return data
}

// joinDetails writes the list, with the fields of each piece sorted by name.
func joinDetails(list []detail) string {
	data, err := json.Marshal(list)
	if err != nil {
		return "[]" // impossible: every value came from JSON
	}
	return string(data)
}

// Details returns the pieces of reasoning in blocks that OpenRouter must
// get back, as a JSON list, or nil if there are none.
func Details(blocks chat.Blocks) []byte {
	var all []detail
	for _, b := range blocks {
		t, ok := b.(chat.Thinking)
		if !ok {
			continue
		}
		sealed, ok := strings.CutPrefix(t.Signature+t.Redacted, RouterTag)
		var list []detail
		if ok && json.Unmarshal([]byte(sealed), &list) == nil {
			all = append(all, list...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []byte(joinDetails(all))
}
