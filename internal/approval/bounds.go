package approval

import (
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// formats describes the formats of text for people.
var formats = map[string]string{
	"email": "an email address, as ada@example.org", "uri": "an address, as https://example.org/page",
	"date": "a date, as 2026-11-18", "date-time": "a date and time, as 2026-11-18T15:04:05Z",
}

// fits returns which of a field's bounds a value violates, or nil.
func fits(f chat.Field, value any) *Misfit {
	why := ""
	switch v := value.(type) {
	case string:
		if len(f.Choices) == 0 {
			why = textFits(f, v)
		}
	case int64:
		why = numberFits(f, float64(v))
	case float64:
		why = numberFits(f, v)
	case []any:
		switch n := len(v); {
		case n < f.MinItems:
			why = fmt.Sprintf("must have at least %s, not %d", text.Count(f.MinItems, "value"), n)
		case f.MaxItems > 0 && n > f.MaxItems:
			why = fmt.Sprintf("must have at most %s, not %d", text.Count(f.MaxItems, "value"), n)
		}
	}
	if why == "" {
		return nil
	}
	return &Misfit{f.Name, why}
}

func textFits(f chat.Field, s string) string {
	switch n := utf8.RuneCountInString(s); {
	case n < f.MinLength:
		return fmt.Sprintf("must have at least %s, not %d", text.Count(f.MinLength, "character"), n)
	case f.MaxLength > 0 && n > f.MaxLength:
		return fmt.Sprintf("must have at most %s, not %d", text.Count(f.MaxLength, "character"), n)
	case !hasFormat(f.Format, s):
		return fmt.Sprintf("must be %s, not %q", formats[f.Format], clip(s))
	case !matches(f.Pattern, s):
		return fmt.Sprintf("must match %s", text.Clip(f.Pattern, 100))
	}
	return ""
}

func hasFormat(format, s string) bool {
	switch format {
	case "email":
		at, err := mail.ParseAddress(s)
		return err == nil && at.Address == s
	case "uri":
		u, err := url.Parse(s)
		return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "")
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
		return err == nil
	}
	return true
}

// matches reports whether a text matches a pattern. Patterns are those of
// JavaScript. One that cannot be parsed here is left to whoever asks.
func matches(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(s)
}

func numberFits(f chat.Field, n float64) string {
	switch {
	case f.Min != nil && n < *f.Min:
		return "must be at least " + number(*f.Min)
	case f.Max != nil && n > *f.Max:
		return "must be at most " + number(*f.Max)
	}
	return ""
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// written says how to write a field's value; "" for any text.
func written(f chat.Field) string {
	switch f.Kind {
	case "integer", "number":
		return kinds[f.Kind] + between(f.Min, f.Max)
	case "":
		kind := formats[f.Format]
		if length := lengths(f.MinLength, f.MaxLength); length != "" {
			if kind == "" {
				kind = "text"
			}
			kind += length
		}
		return kind
	}
	return kinds[f.Kind]
}

func between(least, most *float64) string {
	switch {
	case least != nil && most != nil:
		return " from " + number(*least) + " to " + number(*most)
	case least != nil:
		return ", at least " + number(*least)
	case most != nil:
		return ", at most " + number(*most)
	}
	return ""
}

func lengths(least, most int) string {
	switch {
	case least > 0 && most > 0:
		return fmt.Sprintf(" of %d to %d characters", least, most)
	case least > 1:
		return fmt.Sprintf(" of at least %d characters", least)
	case most > 0:
		return fmt.Sprintf(" of at most %s", text.Count(most, "character"))
	}
	return ""
}
