// Package mark writes the marks in messages for people, channels and times. It uses the spelling in
// which messages are stored; a platform with another spelling translates with Respell.
//
// A mark contains no space, and package split never cuts it.
package mark

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"chorus/internal/pattern"
	"chorus/internal/room/split"
)

// Person is a mention of somebody.
func Person(id string) string { return "<@" + id + ">" }

// Channel is a mention of a channel.
func Channel(id string) string { return "<#" + id + ">" }

// Time is an instant, shown in the reader's own time zone.
func Time(t time.Time) string { return fmt.Sprintf("<t:%d:f>", t.Unix()) }

// Ago shows how far an instant lies in the past or the future.
func Ago(t time.Time) string { return fmt.Sprintf("<t:%d:R>", t.Unix()) }

// Small is a line of small print.
func Small(line string) string { return "-# " + line }

// Line returns a text on one line, with at most limit characters, that can be put into backticks.
func Line(text string, limit int) string {
	return split.Clip(strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "'")), " "), limit)
}

// Words returns a text on one line that is shown unchanged. Text that a platform could
// read as formatting, a mention or a link is put into backticks.
func Words(text string, limit int) string {
	line := Line(text, limit)
	if strings.ContainsAny(line, "*_~|\\<>[]@#:") {
		return "`" + line + "`"
	}
	return line
}

// Spelling is how a platform writes marks. A nil function leaves the mark unchanged.
type Spelling struct {
	Person  func(id string) string
	Role    func(id string) string
	Channel func(id string) string
	Time    func(t time.Time, ago bool) string
	Small   func(line string) string
}

var (
	marks = pattern.Lazy(`<(?:(@&|@!?|#)([^\s<>]{1,200})|t:(-?\d{1,15}):([fR]))>`)
	small = pattern.Lazy(`(?m)^-# (.*)$`)
)

// Respell rewrites a text in a platform's spelling. Code stays unchanged.
func Respell(text string, s Spelling) string {
	return split.Prose(text, func(prose string) string {
		prose = marks().ReplaceAllStringFunc(prose, func(whole string) string {
			part := marks().FindStringSubmatch(whole)
			var to func(string) string
			switch part[1] {
			case "":
				if s.Time == nil {
					return whole
				}
				seconds, _ := strconv.ParseInt(part[3], 10, 64) // digits only
				return s.Time(time.Unix(seconds, 0), part[4] == "R")
			case "#":
				to = s.Channel
			case "@&":
				to = s.Role
			default:
				to = s.Person
			}
			if to == nil {
				return whole
			}
			return to(part[2])
		})
		if s.Small != nil {
			prose = small().ReplaceAllStringFunc(prose, func(line string) string { return s.Small(line[len("-# "):]) })
		}
		return prose
	})
}
