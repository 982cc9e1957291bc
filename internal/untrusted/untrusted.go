// Package untrusted marks text that nobody wrote whom the agent serves: files, the output
// of commands, answers of MCP servers, pages, what others left in a memory.
//
// It promises a frame that the text inside can neither close nor forge: whatever it is,
// the whole has exactly one beginning, at its start, and one end, at its end. The same
// text always gives the same bytes, so the prefix of a prompt stays what it was. The frame
// is for the model alone and grants or takes nothing: rights are the gate's affair.
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

// Frame sets text between the marks. The source says in a few words where it is from:
// "file src/a.go". Whoever shows a model what others wrote, a memory for one, goes
// through here.
func Frame(source, text string) string {
	return begin + label(source) + "\">\n" + Defuse(element, text) + "\n" + end
}

// Blocks frames a tool's result: all its text, then its pictures, in one frame. Without
// a source the blocks are ours and come back as they are.
func Blocks(source string, blocks chat.Blocks) chat.Blocks {
	if source == "" || len(blocks) == 0 {
		return blocks
	}
	framed := Frame(source, blocks.Text())
	out := make(chat.Blocks, 1, len(blocks)+1)
	for _, b := range blocks {
		if im, ok := b.(chat.Image); ok {
			im.Name = Defuse(element, im.Name) // it is told when the picture is no longer shown
			out = append(out, im)
		}
	}
	if len(out) == 1 {
		return chat.TextBlocks(framed)
	}
	out[0] = chat.Text{Text: strings.TrimSuffix(framed, "\n"+end)}
	return append(out, chat.Text{Text: end})
}

// Open takes a frame apart: where the text is from, and the text as it stands in it. It
// is for readers that show a framed text to people.
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

// Line is a line of a text that may have frames in it.
type Line struct {
	Source string // of the frame in which it stands; "": it stands in none
	Text   string
}

// Lines are the lines of a text with frames in it, without the marks.
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

// longest is how much of a source's name is told: enough for a path, too little for a story.
const longest = 120

// label is a source's name as it may stand in the first line.
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

// Defuse sets a backslash into everything in text that could pass for a tag of the
// element, also one with odd spaces, capitals, wide brackets or characters that do not show.
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

// bracket is the width of the opening bracket that text begins with, 0 without one.
func bracket(text string) int {
	switch {
	case text[0] == '<':
		return 1
	case text[0] == 0xEF && (strings.HasPrefix(text, "＜") || strings.HasPrefix(text, "﹤")):
		return len("＜")
	}
	return 0
}

// names reports whether what stands behind a bracket is the element's name, perhaps as
// that of its end.
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

// unseen are characters that change nothing of what is read.
func unseen(r rune) bool { return r > unicode.MaxASCII && unicode.Is(unicode.Cf, r) || r == 0 }
