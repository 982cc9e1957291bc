package redact

import (
	"bytes"
	"html"
	"sort"
	"strconv"
	"unicode/utf8"
)

// View is a text with some of its bytes spelled differently or left out. It
// knows where each of them was in the original text.
type View struct {
	Text  []byte
	steps []step // where the distance between a byte and its origin changes
}

// step says that bytes from out on were at in and after in the original.
type step struct{ out, in int }

// At returns where the spelling of a byte of the view begins in the
// original; for the end of the view, the end.
func (v View) At(i int) int {
	n := sort.Search(len(v.steps), func(k int) bool { return v.steps[k].out > i })
	if n == 0 {
		return i
	}
	s := v.steps[n-1]
	return s.in + i - s.out
}

// Unescape decodes the ways in which programs spell characters: \/ and \u002f of JSON, \x2f, %2F of
// addresses, &#47; and &amp; of HTML. open is where a spelling begins that the end of the text cuts
// off, or len(text). ok is false if there is no such spelling.
func Unescape(text []byte) (v View, open int, ok bool) {
	open = len(text)
	done := 0
	for i := 0; i < len(text); {
		if c := text[i]; c != '\\' && c != '%' && c != '&' {
			i++
			continue
		}
		plain, n, cut := unescapeOne(text[i:])
		if cut {
			open = min(open, i)
		}
		if n > 1 {
			if v.Text == nil {
				v.Text = make([]byte, 0, len(text))
			}
			v.Text = append(v.Text, text[done:i]...)
			v.steps = append(v.steps, step{len(v.Text), i})
			v.Text = append(v.Text, plain...)
			done = i + n
			v.steps = append(v.steps, step{len(v.Text), done})
		}
		i += n
	}
	if v.Text == nil {
		return View{}, open, false
	}
	v.Text = append(v.Text, text[done:]...)
	return v, open, true
}

// longestSpelling is the length of the longest spelling of one character.
const longestSpelling = 10

// unescapeOne returns the character that a text begins with, and the length of its spelling: 1 for a
// byte that stands for itself. cut means that it may be an incomplete spelling.
func unescapeOne(text []byte) (plain string, n int, cut bool) {
	switch text[0] {
	case '\\':
		return backslash(text)
	case '%':
		if v, ok := number(text, 1, 2); ok {
			return string([]byte{byte(v)}), 3, false
		}
		return "", 1, len(text) < 3
	}
	near := text[:min(len(text), longestSpelling)]
	end := bytes.IndexByte(near, ';')
	if end < 0 {
		return "", 1, len(text) < longestSpelling && bytes.IndexFunc(text[1:], notOfEntity) < 0
	}
	if bytes.IndexFunc(near[1:end], notOfEntity) >= 0 {
		return "", 1, false
	}
	if got := html.UnescapeString(string(near[:end+1])); len(got) < end+1 {
		return got, end + 1, false
	}
	return "", 1, false
}

func notOfEntity(r rune) bool {
	return r != '#' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func backslash(text []byte) (plain string, n int, cut bool) {
	if len(text) < 2 {
		return "", 1, true
	}
	digits := 0
	switch text[1] {
	case '/', '"', '\'', '\\':
		return string(text[1:2]), 2, false
	case 'n':
		return "\n", 2, false
	case 't':
		return "\t", 2, false
	case 'r':
		return "\r", 2, false
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	default:
		return "", 1, false
	}
	v, ok := number(text, 2, digits)
	switch {
	case !ok:
		return "", 1, len(text) < 2+digits
	case digits == 2:
		return string([]byte{byte(v)}), 4, false
	}
	return string(utf8.AppendRune(nil, rune(v))), 6, false
}

// number parses hexadecimal digits.
func number(text []byte, from, digits int) (uint64, bool) {
	if len(text) < from+digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text[from:from+digits]), 16, 32)
	return v, err == nil
}

// small maps each byte to itself with ASCII letters in lower case.
var small = func() (t [256]byte) {
	for c := range 256 {
		t[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}()

// Fold converts ASCII letters to lower case, in place.
func Fold(text []byte) []byte {
	for i, c := range text {
		text[i] = small[c]
	}
	return text
}

// wrappedLine is the minimum length of a line of base64 that a program broke to continue on the next one.
const wrappedLine = 60

// unwrap joins lines of base64 that were broken. ok is false if there are none.
func unwrap(text []byte) (v View, ok bool) {
	done := 0
	for from := 0; ; {
		n := bytes.IndexByte(text[from:], '\n')
		if n < 0 {
			break
		}
		end := from + n
		if n >= wrappedLine && end+1 < len(text) && inRun[text[end+1]] && fullOfData(text[end-wrappedLine:end]) {
			v.Text = append(v.Text, text[done:end]...)
			done = end + 1
			v.steps = append(v.steps, step{len(v.Text), done})
		}
		from = end + 1
	}
	if v.Text == nil {
		return View{}, false
	}
	v.Text = append(v.Text, text[done:]...)
	return v, true
}

func fullOfData(text []byte) bool {
	for _, c := range text {
		if !inRun[c] {
			return false
		}
	}
	return true
}
