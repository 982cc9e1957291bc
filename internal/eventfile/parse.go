// Package eventfile turns files in a folder into events for agents: other programs write a
// file, and its text is delivered to a thread, at once or at set times.
package eventfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"chorus/internal/schedule"
)

// The types of events.
const (
	Immediate = "immediate"
	OneShot   = "one-shot"
	Periodic  = "periodic"
)

// Event is the content of a file.
type Event struct {
	Type     string
	Thread   string // thread that gets the text
	Adapter  string // otherwise: the platform
	Channel  string // and the channel in which a new thread begins
	Text     string
	Schedule string // as written: an instant or cron; "" for an immediate one
	Zone     string
	Spec     schedule.Spec // parsed from Schedule
}

// fields are the keys of a file, in both spellings that are in use.
type fields struct {
	Type      string `json:"type"`
	ThreadID  string `json:"threadId"`
	AdapterID string `json:"adapterId"`
	ChannelID string `json:"channelId"`
	Text      string `json:"text"`
	Schedule  string `json:"schedule"`
	At        string `json:"at"`
	Timezone  string `json:"timezone"`
}

// The limits for a file.
const (
	maxFile = 256 << 10
	maxText = 100_000
)

// Parse reads an event. An error says what to change.
func Parse(data []byte) (Event, error) {
	if len(data) > maxFile {
		return Event{}, fmt.Errorf("the file has %d bytes; at most %d are read", len(data), maxFile)
	}
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return Event{}, fmt.Errorf("it is not a JSON object with an event: %w", err)
	}
	e := Event{Type: f.Type, Thread: f.ThreadID, Adapter: f.AdapterID, Channel: f.ChannelID, Text: f.Text, Zone: f.Timezone}
	switch {
	case strings.TrimSpace(f.Text) == "":
		return Event{}, errors.New(`"text" is missing: what is to be said`)
	case len(f.Text) > maxText || !utf8.ValidString(f.Text):
		return Event{}, fmt.Errorf(`"text" must be UTF-8 and have at most %d bytes`, maxText)
	case f.ThreadID == "" && (f.AdapterID == "" || f.ChannelID == ""):
		return Event{}, errors.New(`say where: "threadId", or "adapterId" and "channelId"`)
	}
	if e.Thread != "" { // it takes precedence over a channel
		e.Adapter, e.Channel = "", ""
	}
	return e, e.when(f)
}

// when reads when an event is due.
func (e *Event) when(f fields) error {
	switch e.Type {
	case Immediate:
		return nil
	case OneShot:
		e.Schedule = f.At
		e.Schedule = cmp.Or(e.Schedule, f.Schedule)
		if e.Schedule == "" {
			return errors.New(`a one-shot event needs "at" (or "schedule"): an instant such as 2026-12-24T18:00:00`)
		}
	case Periodic:
		if e.Schedule = f.Schedule; e.Schedule == "" {
			return errors.New(`a periodic event needs "schedule": cron fields such as "0 9 * * 1-5"`)
		}
	default:
		return fmt.Errorf(`%.40q is no type of event: there are immediate, one-shot and periodic`, e.Type)
	}
	zone, err := schedule.Zone(e.Zone)
	if err != nil {
		return err
	}
	if e.Spec, err = schedule.Read(e.Schedule, zone); err != nil {
		return err
	}
	switch {
	case e.Spec.Repeats() && e.Type == OneShot:
		return fmt.Errorf("%q comes more than once: that is a periodic event", e.Schedule)
	case !e.Spec.Repeats() && e.Type == Periodic:
		return fmt.Errorf("%q comes once: that is a one-shot event", e.Schedule)
	case e.Type == Periodic && e.Spec.Next(time.Unix(0, 0)).IsZero():
		return fmt.Errorf("%q never comes: there is no such day in the calendar", e.Schedule)
	}
	return nil
}

// Words returns the text with its origin, as agents see it.
func (e Event) Words(file string) string {
	when := e.Schedule
	if e.Type == Immediate {
		when = Immediate
	}
	return fmt.Sprintf("[EVENT:%s:%s:%s] %s", file, e.Type, when, e.Text)
}

// Text returns the words without their origin; it reverses Words. Words
// that are not from a file are returned unchanged.
func Text(file, words string) string {
	if rest, ok := strings.CutPrefix(words, "[EVENT:"+file+":"); ok && file != "" {
		if _, text, ok := strings.Cut(rest, "] "); ok { // neither a type nor a time contains such a bracket
			return text
		}
	}
	return words
}
