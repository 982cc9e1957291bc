// Package mark writes what stands in messages for things that have an id or a moment: a
// person, a channel, a time. The spelling is the one in which messages are stored; a
// platform that spells them differently translates them with Respell.
//
// It promises that a mark has no space in it and is never cut apart by package split.
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

// Time is a moment, shown in the reader's own time zone.
func Time(t time.Time) string { return fmt.Sprintf("<t:%d:f>", t.Unix()) }

// Ago is how long ago or how far ahead a moment is.
func Ago(t time.Time) string { return fmt.Sprintf("<t:%d:R>", t.Unix()) }

// Small is a line of small print.
func Small(line string) string { return "-# " + line }

// Line is a text on one line, of at most so many characters, that can stand in backticks.
func Line(text string, limit int) string {
	return split.Clip(strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "'")), " "), limit)
}

// Spelling is how a platform writes marks. A nil function leaves the mark as it is.
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

// Respell writes a text as a platform wants it. Code stays as it is.
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
