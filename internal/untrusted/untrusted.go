// Package untrusted marks text that was not written by anybody whom the agent serves: files, the
// output of commands, answers of MCP servers, pages, what others left in a memory.
//
// The text inside can neither close nor forge the frame: whatever it is, the whole has
// exactly one beginning, at its start, and one end, at its end. The same text always gives
// the same bytes, so the prefix of a prompt stays the same. The frame is only for the model
// and changes no rights, which the gate decides.
package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"chorus/internal/chat"
)

// element is the name of the frame. The system prompt explains it.
const element = "untrusted"

const (
	begin = "<" + element + ` from="`
	end   = "</" + element + ">"
)

// Frame puts text between the marks. The source says in a few words where it is from: "file
// src/a.go". Everything that shows a model what others wrote, such as a memory, uses Frame.
func Frame(source, text string) string {
	return begin + label(source) + "\">\n" + Defuse(element, text) + "\n" + end
}

// Blocks frames a tool's result in one frame: all its text, then its pictures.
// Without a source the blocks are ours and are returned unchanged.
func Blocks(source string, blocks chat.Blocks) chat.Blocks {
	if source == "" || len(blocks) == 0 {
		return blocks
	}
	framed := Frame(source, blocks.Text())
	out := make(chat.Blocks, 1, len(blocks)+1)
	for _, b := range blocks {
		if im, ok := b.(chat.Image); ok {
			im.Name = Defuse(element, im.Name) // it is shown when the picture no longer is
			out = append(out, im)
		}
	}
	if len(out) == 1 {
		return chat.TextBlocks(framed)
	}
	out[0] = chat.Text{Text: strings.TrimSuffix(framed, "\n"+end)}
	return append(out, chat.Text{Text: end})
}

// Open takes a frame apart: where the text is from, and the text as written
// in it. It is for showing a framed text to people.
func Open(framed string) (source, text string, ok bool) {
	rest, ok := strings.CutPrefix(framed, begin)
	if !ok {
		return "", "", false
	}
	source, rest, ok = strings.Cut(rest, "\">\n")
	if !ok {
		return "", "", false
	}
	rest, ok = strings.CutSuffix(rest, end)
	return source, strings.TrimSuffix(rest, "\n"), ok
}

// Line is a line of a text that may contain frames.
type Line struct {
	Source string // source of its frame; "" outside of frames
	Text   string
}

// Lines returns the lines of a text that contains frames, without the marks.
func Lines(text string) (out []Line) {
	source := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch rest, opens := strings.CutPrefix(line, begin); {
		case source == "" && opens && strings.HasSuffix(rest, "\">"):
			source = strings.TrimSuffix(rest, "\">")
		case source != "" && line == end:
			source = ""
		default:
			out = append(out, Line{source, line})
		}
	}
	return out
}

// longest is how much of a source's name is shown: enough for a path, too little for a message.
const longest = 120

// label returns a source's name in a form that is safe for the first line.
func label(source string) string {
	source = strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r == '<':
			return '('
		case r == '>':
			return ')'
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, source)
	if runes := []rune(source); len(runes) > longest {
		source = "…" + string(runes[len(runes)-longest:])
	}
	return source
}

// Defuse inserts a backslash into everything in text that could pass for a tag of the element,
// including variants with odd spaces, capitals, wide brackets or invisible characters.
func Defuse(element, text string) string {
	var out strings.Builder
	copied := 0
	for i := 0; i < len(text); i++ {
		width := bracket(text[i:])
		if width == 0 || !names(text[i+width:], element) {
			continue
		}
		out.WriteString(text[copied : i+width])
		out.WriteByte('\\')
		copied = i + width
	}
	if copied == 0 {
		return text
	}
	out.WriteString(text[copied:])
	return out.String()
}

// bracket returns the width of the opening bracket at the beginning of text, or 0.
func bracket(text string) int {
	switch {
	case text[0] == '<':
		return 1
	case text[0] == 0xEF && (strings.HasPrefix(text, "＜") || strings.HasPrefix(text, "﹤")):
		return len("＜")
	}
	return 0
}

// names reports whether what follows a bracket is the element's name, possibly in an end tag.
func names(text, element string) bool {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == '／' || unseen(r) })
	for _, want := range element {
		text = strings.TrimLeftFunc(text, unseen)
		r, width := utf8.DecodeRuneInString(text)
		if unicode.ToLower(unicode.ToUpper(r)) != want {
			return false
		}
		text = text[width:]
	}
	next, _ := utf8.DecodeRuneInString(text)
	return text == "" || next != '_' && next != '-' && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

// unseen reports whether a rune is invisible.
func unseen(r rune) bool { return r > unicode.MaxASCII && unicode.Is(unicode.Cf, r) || r == 0 }
