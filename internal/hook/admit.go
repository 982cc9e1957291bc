package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
)

// The limits on runs.
const (
	AtOnce    = 2  // runs that gather, ask or act at the same time
	PerMinute = 60 // runs that begin within a minute, of all hooks
	MaxQueued = 10 // waiting runs of one hook
)

// Matches reports whether an event triggers it.
func (t Trigger) Matches(e Event) bool {
	if t.Type != OnEvent || t.Event != e.Type {
		return false
	}
	if t.Agent != "" && t.Agent != e.Thread.Agent() || t.Session != "" && t.Session != e.Thread.Thread() && t.Session != string(e.Thread) {
		return false
	}
	return t.Holds(e.Data)
}

// Holds reports whether the conditions in Where are true for an event's data.
func (t Trigger) Holds(data json.RawMessage) bool {
	for path, want := range t.Where {
		var v Values
		_, text, _ := v.text("", lookup(data, strings.Split(path, ".")))
		if !like(want, text) {
			return false
		}
	}
	return true
}

// like reports whether a text matches a pattern in which * stands for any text. Its
// time is proportional to the length of the text, for each star.
func like(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(text, rest)
		}
		_, text, ok = strings.Cut(text, part)
		rest = more
	}
	return false
}

// Standing describes a hook's runs when it is triggered.
type Standing struct {
	LastAt     time.Time
	Unfinished int // its unfinished runs
	LastMinute int // runs of all hooks that began within the last minute
}

// Verdict says what becomes of a trigger.
type Verdict int

// What can become of a trigger.
const (
	Begin Verdict = iota
	Pass          // it is only counted
)

// Admit decides whether a triggered hook runs. A hook fired manually
// ignores its cooldown. why is a sentence for people.
func (h Hook) Admit(now time.Time, s Standing, manual bool) (verdict Verdict, why string) {
	switch {
	case !h.Enabled:
		return Pass, "the hook is disabled"
	case manual && s.Unfinished > 0:
		return Pass, fmt.Sprintf("Hook '%s' is already running", h.Name)
	case !manual && !s.LastAt.IsZero() && now.Before(s.LastAt.Add(h.Cooldown)):
		return Pass, fmt.Sprintf("its cooldown of %s was not over", h.Cooldown)
	case s.Unfinished >= MaxQueued:
		return Pass, fmt.Sprintf("%d of its runs were waiting already", s.Unfinished)
	case s.LastMinute >= PerMinute:
		return Pass, fmt.Sprintf("%d runs of hooks had begun within a minute, which is the limit", s.LastMinute)
	}
	return Begin, ""
}

// Triggered is a hook that was triggered, with what to write when it runs or passes.
type Triggered struct {
	Hook Hook
	Run  Run // state Waiting; or Skipped, if it is only recorded
	// Reader, Thread and Seq are the position of the event reader: in a thread, or in the
	// events of the work queue. Reader is "" if the trigger is not an event.
	Reader string
	Thread chat.ThreadID
	Seq    int64
	Due    time.Time // the due time that was read, for a periodic trigger
	Next   time.Time // the one after it
	// Delivery is the key of a webhook's delivery, which is accepted once.
	Delivery string
	Manual   bool
	At       time.Time
}

// Outcome is the result of a trigger.
type Outcome struct {
	Run   string // the run that was begun or recorded, now or before
	Again bool   // it was a repetition, and nothing was written
	Why   string // why it did not begin; "" if it did
}

// String describes a trigger in a few words.
func (t Trigger) String() string {
	switch {
	case t.Type == Periodic && t.Schedule != "":
		return t.Schedule
	case t.Type == Periodic:
		return "every " + (time.Duration(t.Interval) * time.Second).String()
	case t.Type == OnEvent:
		return "on " + t.Event
	default:
		return t.Type
	}
}
