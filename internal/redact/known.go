package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// leastKnown is the length from which on a value that is known is taken out.
const leastKnown = 6

// leastEncoded is the length from which on an encoded form is looked for: shorter ones
// occur in any base64.
const leastEncoded = 10

// FromEnviron gives the values of "NAME=value" pairs whose name says that they are
// secrets. Several may stand in one value, with commas or spaces between.
func FromEnviron(environ []string) []string {
	var out []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if of, _, _ := called(strings.TrimSuffix(strings.TrimSuffix(name, "S"), "_ID")); of == unnamed && !strings.HasSuffix(name, "_KEY") && !strings.HasSuffix(name, "_KEYS") {
			continue
		}
		out = append(out, value)
		out = append(out, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })...)
	}
	return slices.DeleteFunc(out, func(v string) bool { return len(v) < leastKnown })
}

// matcher finds values, the longest first.
type matcher struct {
	values map[[4]byte][]string // by their beginning
	begins *[1 << 16]bool       // by their first two bytes
}

func newMatcher(known []string) matcher {
	var all []string
	for _, value := range known {
		if whole := strings.TrimSpace(value); strings.Contains(whole, "\n") && !strings.Contains(whole, markHead) {
			all = append(all, forms(whole)...)
		}
		// A value of several lines comes in pieces as often as whole.
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if len(line) >= leastKnown && !strings.Contains(line, markHead) && !strings.HasPrefix(line, "-----") {
				all = append(all, forms(line)...)
			}
		}
	}
	if len(all) == 0 {
		return matcher{}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m := matcher{values: map[[4]byte][]string{}, begins: new([1 << 16]bool)}
	for _, value := range slices.Compact(all) {
		m.begins[pair(value)] = true
		m.values[[4]byte([]byte(value[:4]))] = append(m.values[[4]byte([]byte(value[:4]))], value)
	}
	return m
}

func pair(s string) int { return int(s[0])<<8 | int(s[1]) }

// forms are the ways a value may be written.
func forms(value string) []string {
	out := []string{value}
	add := func(form string) {
		if len(form) >= leastEncoded && form != value {
			out = append(out, form)
		}
	}
	add(url.QueryEscape(value))
	add(url.PathEscape(value))
	if quoted, err := json.Marshal(value); err == nil {
		add(string(quoted[1 : len(quoted)-1]))
	}
	if len(value) < leastEncoded {
		return out
	}
	add(hex.EncodeToString([]byte(value)))
	// In base64 a value looks different at each of three offsets. Only characters that
	// depend on nothing but the value are looked for.
	for shift := range 3 {
		bytes := append(make([]byte, shift), value...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := alphabet.EncodeToString(bytes)
			from := (shift*8 + 5) / 6
			to := len(bytes) * 8 / 6
			add(text[from:to])
		}
	}
	return out
}

func (m matcher) replace(text string) string {
	if m.begins == nil {
		return text
	}
	var out strings.Builder
	from := 0
	for i := 0; i+leastKnown <= len(text); i++ {
		if text[i] == '[' {
			if n := markAt(text, i); n > 0 {
				i += n - 1
				continue
			}
		}
		if !m.begins[pair(text[i:])] {
			continue
		}
		for _, value := range m.values[[4]byte([]byte(text[i:i+4]))] {
			if strings.HasPrefix(text[i:], value) {
				out.WriteString(text[from:i])
				out.WriteString(mark("known"))
				i += len(value) - 1
				from = i + 1
				break
			}
		}
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

// tail is where text ends with the beginning of a value; len(text) if it does not.
func (m matcher) tail(text string) int {
	const least = 4 // fewer bytes say little
	for i := max(0, len(text)-maxValue); i+least <= len(text); i++ {
		for _, value := range m.values[[4]byte([]byte(text[i:i+4]))] {
			if len(value) > len(text)-i && strings.HasPrefix(value, text[i:]) {
				return i
			}
		}
	}
	return len(text)
}
