// Package timer lets an agent in a room wake itself later.
//
// It promises that an agent sets and cancels only its own timers, in the room it speaks
// in. Whoever stores the timers limits how often it may do so.
package timer

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/tool"
)

//go:embed set_timer.md
var setProse string

//go:embed activate_self.md
var activateProse string

//go:embed cancel_timer.md
var cancelProse string

// New is a timer to set.
type New struct {
	Key  string           // the same key is set only once
	When string           // plain words, or a point in time
	Note string           // what the agent is told then; "": nothing, it just continues
	For  []chat.Principal // on whose words
}

// Timer is a timer that is set.
type Timer struct {
	ID  string
	Due time.Time
}

// Timers stores the timers of one agent in one room. A mistake that the model can correct is a tool.Mistake.
type Timers interface {
	Set(ctx context.Context, n New) (Timer, error)
	Cancel(ctx context.Context, id string) error
}

type setIn struct {
	When string `json:"when" jsonschema:"in 20 minutes, tomorrow at 9, 2026-12-24 18:00"`
	Note string `json:"note" jsonschema:"what you are told then"`
}

type activateIn struct {
	After string `json:"after" jsonschema:"in 20 minutes"`
}

type cancelIn struct {
	ID string `json:"id" jsonschema:"the timer's id"`
}

// Tools returns set_timer, activate_self and cancel_timer.
func Tools(timers Timers) []tool.Tool {
	set := func(ctx context.Context, when, note string) (tool.Result, error) {
		call := tool.CallFrom(ctx)
		made, err := timers.Set(ctx, New{Key: call.Key, When: when, Note: note, For: call.Senders})
		if err != nil {
			return tool.Answer(err)
		}
		return tool.OK(fmt.Sprintf("Set for %s (id %s).", made.Due.Format("Monday, 2006-01-02 15:04 MST"), made.ID)), nil
	}
	return []tool.Tool{
		tool.New(tool.Func[setIn]{Name: "set_timer", Description: setProse, Risk: tool.Low,
			Access: func(in setIn) []tool.Access { return []tool.Access{{Tool: "set_timer", Detail: in.When}} },
			Label:  func(in setIn) string { return "set a timer: " + in.When },
			Run: func(ctx context.Context, in setIn) (tool.Result, error) {
				if strings.TrimSpace(in.Note) == "" {
					return tool.Fail("Say in the note what you want to be told then."), nil
				}
				return set(ctx, in.When, in.Note)
			}}),
		tool.New(tool.Func[activateIn]{Name: "activate_self", Description: activateProse, Risk: tool.Low,
			Access: func(in activateIn) []tool.Access { return []tool.Access{{Tool: "activate_self", Detail: in.After}} },
			Label:  func(in activateIn) string { return "speak again: " + in.After },
			Run: func(ctx context.Context, in activateIn) (tool.Result, error) {
				return set(ctx, in.After, "")
			}}),
		tool.New(tool.Func[cancelIn]{Name: "cancel_timer", Description: cancelProse, Risk: tool.Low,
			Access: func(in cancelIn) []tool.Access { return []tool.Access{{Tool: "cancel_timer", Detail: in.ID}} },
			Label:  func(in cancelIn) string { return "cancel timer " + in.ID },
			Run: func(ctx context.Context, in cancelIn) (tool.Result, error) {
				if err := timers.Cancel(ctx, in.ID); err != nil {
					return tool.Answer(err)
				}
				return tool.OK("It is cancelled."), nil
			}}),
	}
}
