package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/digest"
)

// NewRun returns a run of a hook for a reason. Its id is derived from the key of its
// trigger, so that the same trigger gives the same run. If the hook must not run because of
// its cause, NewRun returns a skipped run and a *StoppedError.
func NewRun(h Hook, reason, key string, cause chat.Principal, event json.RawMessage) (Run, error) {
	r := Run{ID: RunID(h.ID, reason, key), Hook: h.ID, Reason: reason, State: Waiting, Progress: Progress{Event: event}}
	acting, err := ActingFor(h, cause)
	r.Acting = acting
	if stopped, ok := errors.AsType[*StoppedError](err); ok {
		r.State, r.Why = Skipped, stopped.Why
		r.Acting = chat.Principal{Kind: chat.HookRule, ID: h.ID, For: &h.Owner}
	}
	return r, err
}

// RunID returns the id of the run that a trigger starts.
func RunID(hook, reason, key string) string {
	return digest.Of(strings.Join([]string{hook, reason, key}, "\x00"))[:20]
}

// The maximum stored length of an event's texts, and of the whole event.
const (
	maxEventText = 8 << 10
	maxEvent     = 64 << 10
)

// BoundData returns an event's object with additional fields and long texts shortened.
func BoundData(data json.RawMessage, more map[string]string) json.RawMessage {
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&object) != nil {
		object = map[string]any{}
	}
	for name, value := range more {
		if _, there := object[name]; !there && value != "" {
			object[name] = value
		}
	}
	for most := maxEventText; ; most /= 4 {
		out, _ := json.Marshal(shorten(object, most)) // it came from JSON
		if len(out) <= maxEvent || most < 16 {
			if len(out) > maxEvent { // a great many small values
				out = []byte(`{"cut":true}`)
			}
			return out
		}
	}
}

func shorten(value any, most int) any {
	switch v := value.(type) {
	case string:
		return bound(v, most)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = shorten(inner, most)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = shorten(inner, most)
		}
		return out
	default:
		return value
	}
}
