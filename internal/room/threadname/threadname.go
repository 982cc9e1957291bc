// Package threadname names platform threads that are opened on somebody's words.
package threadname

import (
	"cmp"
	"strings"
	"unicode"

	"chorus/internal/room/split"
)

// The length of a thread's name: lists of threads show about this much.
const (
	maxLength   = 80
	minSentence = 12 // anything shorter says too little by itself
)

// Of returns the name for a platform thread opened on somebody's words: what they are
// about. It leaves out addressees, marks and attached files. From a long text it takes
// the first sentence, or else as many whole words as fit.
func Of(words string) string {
	words, _, _ = strings.Cut(words, "<attachment filename=")
	words = Plain(words)
	fields := strings.FieldsFunc(strings.Map(plainRune, words), unicode.IsSpace)
	for len(fields) > 1 && strings.HasPrefix(fields[0], "@") {
		fields = fields[1:]
	}
	name := strings.TrimLeft(strings.Join(fields, " "), "#>-,:; ")
	if split.Length(name) <= maxLength {
		return cmp.Or(name, "conversation")
	}
	if end := sentence(name); end > 0 {
		return name[:end]
	}
	cut := strings.TrimSuffix(split.Clip(name, maxLength), "…")
	if at := strings.LastIndexByte(cut, ' '); at > maxLength/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:-") + "…"
}

// Plain returns a text with people's names as people write them, without those
// it begins by addressing: "<@chorus> ask <@ada>" becomes "ask @ada". A text
// that only addresses somebody keeps their names.
func Plain(words string) string {
	rest := strings.TrimSpace(words)
	for {
		_, after, ok := called(rest)
		if after = strings.TrimLeft(after, ",:; \n"); !ok || after == "" {
			break
		}
		rest = after
	}
	var out strings.Builder
	for {
		at := strings.Index(rest, "<@")
		if at < 0 {
			return out.String() + rest
		}
		out.WriteString(rest[:at])
		name, after, ok := called(rest[at:])
		if !ok {
			name, after = "<", rest[at+1:]
		}
		out.WriteString(name)
		rest = after
	}
}

// called removes a mention from the beginning of a text: <@ada> is @ada.
func called(text string) (name, rest string, ok bool) {
	inside, ok := strings.CutPrefix(text, "<@")
	if !ok {
		return "", text, false
	}
	name, rest, ok = strings.Cut(inside, ">")
	if !ok || name == "" || strings.ContainsAny(name, "<\n") {
		return "", text, false
	}
	return "@" + name, rest, true
}

// sentence returns where the first sentence ends, or 0 if it is too short or too long for a name.
func sentence(text string) int {
	for i := 0; i+1 < len(text) && i < maxLength; i++ {
		if strings.IndexByte(".?!", text[i]) >= 0 && text[i+1] == ' ' && i >= minSentence {
			if text[i] == '.' {
				return i
			}
			return i + 1
		}
	}
	return 0
}

// plainRune drops marks that a name does not show.
func plainRune(r rune) rune {
	switch r {
	case '*', '`', '|', '~':
		return -1
	}
	return r
}
