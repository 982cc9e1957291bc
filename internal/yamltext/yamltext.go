// Package yamltext reads values from YAML that anybody may have written: rules, front matter, scripts. It wraps the library, which panics on
// some texts and takes minutes for others that only nest deeply.
//
// The configuration has a reader of its own (internal/config), since it tells of every value where it stands.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// MaxTokens is more than a thousand rules have. What the parser takes grows with the square of a list's length: for so many it is seconds.
const MaxTokens = 60_000

// levels is far more than anything nests that people write, brackets in regular expressions included.
const levels = 500

// Error is why a text could not be read.
type Error struct {
	reason  string // with line and column
	excerpt string // the same, with the lines around it
}

// Error is the reason and the lines around the place.
func (e *Error) Error() string { return e.excerpt }

// Read reads a text into a value. A key that the value does not have is an error.
func Read(data []byte, into any) error { return read(data, into, yaml.Strict()) }

// ReadKnown is Read, and leaves out the keys that the value does not have.
func ReadKnown(data []byte, into any) error { return read(data, into) }

func read(data []byte, into any, options ...yaml.DecodeOption) (err error) {
	if line := NestsDeeper(data, levels); line > 0 {
		return plain(fmt.Sprintf("line %d nests deeper than %d levels", line, levels))
	}
	defer func() {
		if recover() != nil {
			err = plain("this is not YAML that can be read")
		}
	}()
	if len(lexer.Tokenize(string(data))) > MaxTokens {
		return plain(fmt.Sprintf("it has more than %d words and marks", MaxTokens))
	}
	if err := yaml.UnmarshalWithOptions(data, into, options...); err != nil {
		return &Error{reason: strings.TrimSpace(yaml.FormatError(err, false, false)), excerpt: strings.TrimSpace(yaml.FormatError(err, false, true))}
	}
	return nil
}

func plain(reason string) *Error { return &Error{reason, reason} }

// Reason is what an error of Read says, without the lines around the place.
func Reason(err error) string {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.reason
	}
	return err.Error()
}

// Write is the text of a value. Strings are in single quotes where they need any.
func Write(value any) ([]byte, error) {
	return yaml.MarshalWithOptions(value, yaml.UseSingleQuote(true))
}

// HasAnchors reports whether a text uses anchors or aliases, by which a short one becomes a large value.
func HasAnchors(text string) bool {
	for _, t := range lexer.Tokenize(text) {
		if t.Type == token.AnchorType || t.Type == token.AliasType {
			return true
		}
	}
	return false
}

// NestsDeeper gives the line at which a text nests deeper than so many levels, 0 if it does not. It counts brackets and the
// marks that open a level without needing an indentation, so that the recursion of a parser stays small.
func NestsDeeper(data []byte, levels int) int {
	line, brackets := 0, 0
	for text := range bytes.Lines(data) {
		line++
		marks := 0
		for i, c := range text {
			switch c {
			case '[', '{':
				brackets++
			case ']', '}':
				brackets = max(brackets-1, 0)
			case '-', '?', ':', '!', '&':
				if i+1 >= len(text) || strings.IndexByte(" \t\r\n", text[i+1]) >= 0 || c == '!' || c == '&' {
					marks++
				}
			}
		}
		indent := len(text) - len(bytes.TrimLeft(text, " \t"))
		if brackets > levels || (marks > levels && opensMany(text, levels)) || indent > 1000 {
			return line
		}
	}
	return 0
}

// opensMany reports whether more marks than levels are allowed follow each other in a line.
func opensMany(line []byte, levels int) bool {
	n := 0
	for word := range bytes.FieldsSeq(line) {
		if word[0] != '!' && word[0] != '&' && (len(word) > 1 || bytes.IndexByte([]byte("-?:"), word[0]) < 0) {
			n = 0
			continue
		}
		if n++; n > levels {
			return true
		}
	}
	return false
}
