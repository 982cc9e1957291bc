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

// leastKnown is the minimum length of a known value that is redacted.
const leastKnown = 6

// leastEncoded is the minimum length of an encoded form that is
// searched for: shorter ones occur in any base64.
const leastEncoded = 10

// leastBase64 is the minimum length of a value whose hex and base64 forms are searched for.
const leastBase64 = 8

// FromEnviron returns the values of "NAME=value" pairs whose name says that they are
// secrets. One value may contain several, separated by commas or spaces.
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

// matcher finds values, longest first.
type matcher struct {
	values map[[4]byte][]value // by their lower-case beginning
	begins *[1 << 16]bool      // by their first two lower-case bytes
}

// value is one form of a secret.
type value struct {
	text   string
	folded bool // case does not matter
}

// leastFolded is the minimum length of a value that is also searched for in another
// case: a shorter one, or one without a digit, may be a word.
const leastFolded = 10

// stands reports whether a text begins with the value.
func (v value) stands(text []byte) bool {
	if len(text) < len(v.text) {
		return false
	}
	if !v.folded {
		return string(text[:len(v.text)]) == v.text
	}
	for i := range len(v.text) {
		if small[text[i]] != small[v.text[i]] {
			return false
		}
	}
	return true
}

// allForms returns the known values and their encodings.
func allForms(known []string) []string {
	var all []string
	for _, value := range known {
		if whole := strings.TrimSpace(value); strings.Contains(whole, "\n") && !strings.Contains(whole, markHead) {
			all = append(all, forms(whole)...)
		}
		// A multi-line value is as likely to appear in pieces as whole.
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if len(line) >= leastKnown && !strings.Contains(line, markHead) && !strings.HasPrefix(line, "-----") {
				all = append(all, forms(line)...)
			}
		}
	}
	return all
}

func matcherOf(all []string) matcher {
	if len(all) == 0 {
		return matcher{}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m := matcher{values: map[[4]byte][]value{}, begins: new([1 << 16]bool)}
	for _, text := range slices.Compact(all) {
		v := value{text, len(text) >= leastFolded && strings.ContainsAny(text, "0123456789")}
		m.begins[pair([]byte(text))] = true
		m.values[beginning([]byte(text))] = append(m.values[beginning([]byte(text))], v)
	}
	return m
}

func pair(s []byte) int { return int(small[s[0]])<<8 | int(small[s[1]]) }

func beginning(s []byte) [4]byte { return [4]byte{small[s[0]], small[s[1]], small[s[2]], small[s[3]]} }

// forms returns the ways in which a value may be written.
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
	add(strings.ReplaceAll(value, " ", "+"))
	if len(value) < leastBase64 {
		return out
	}
	add(hex.EncodeToString([]byte(value)))
	// In base64 a value looks different at each of three offsets. Only characters
	// that depend on nothing but the value are searched for.
	for shift := range 3 {
		shifted := append(make([]byte, shift), value...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := alphabet.EncodeToString(shifted)
			from := (shift*8 + 5) / 6
			to := len(shifted) * 8 / 6
			add(text[from:to])
		}
	}
	return out
}

// stretch is a part of a text.
type stretch struct{ from, to int }

// replace replaces values by marks in every spelling: unchanged, in another case, with
// characters escaped once or twice, in base64 that was broken into lines.
func (m matcher) replace(text string) string {
	if m.begins == nil {
		return text
	}
	raw := []byte(text)
	found := m.find(raw)
	see := func(v View, at func(int) int) {
		for _, s := range m.find(v.Text) {
			found = append(found, stretch{at(s.from), at(s.to)})
		}
	}
	if v, ok := unwrap(raw); ok {
		see(v, v.At)
	}
	if once, _, ok := Unescape(raw); ok {
		see(once, once.At)
		if twice, _, ok := Unescape(once.Text); ok {
			see(twice, func(i int) int { return once.At(twice.At(i)) })
		}
	}
	return marked(text, found)
}

// marked replaces stretches, which may overlap, by marks.
func marked(text string, found []stretch) string {
	if len(found) == 0 {
		return text
	}
	slices.SortFunc(found, func(a, b stretch) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var out strings.Builder
	done := 0
	for i := 0; i < len(found); {
		s := found[i]
		for i++; i < len(found) && found[i].from < s.to; i++ {
			s.to = max(s.to, found[i].to)
		}
		out.WriteString(text[done:s.from])
		out.WriteString(mark("known"))
		done = s.to
	}
	out.WriteString(text[done:])
	return out.String()
}

func (m matcher) find(text []byte) []stretch {
	var out []stretch
	for i := 0; i+leastKnown <= len(text); i++ {
		if !m.begins[pair(text[i:])] {
			if text[i] == '[' {
				if n := markAt(text, i); n > 0 {
					i += n - 1
				}
			}
			continue
		}
		for _, value := range m.values[beginning(text[i:])] {
			if value.stands(text[i:]) {
				out = append(out, stretch{i, i + len(value.text)})
				i += len(value.text) - 1
				break
			}
		}
	}
	return out
}

// tail returns where text ends with the beginning of a value, or len(text) if it does not.
func (m matcher) tail(text string) int {
	const least = 4 // fewer bytes mean little
	for i := max(0, len(text)-maxValue); i+least <= len(text); i++ {
		for _, v := range m.values[beginning([]byte(text[i:i+least]))] {
			if part := text[i:]; len(v.text) > len(part) && (value{v.text[:len(part)], v.folded}).stands([]byte(part)) {
				return i
			}
		}
	}
	return len(text)
}
