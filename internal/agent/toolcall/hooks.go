package toolcall

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/tool"
)

// hookTime is how long all hooks around a call may take together.
const hookTime = 2 * time.Minute

// HookVerdict is the result of the hooks before a call.
type HookVerdict struct {
	Args   []byte // the arguments after the hooks
	Denied string // why the call is not made; "" if it is not denied
	Ask    string // why a person must be asked; "" leaves it to the rules
}

// DeniedByHook says why a call is not made.
type DeniedByHook struct{ Why string }

func (d *DeniedByHook) Error() string { return d.Why }

// Tools is the set of tools of an agent.
type Tools interface {
	// Resolve finds a tool by any of its names and converts the
	// arguments to its form. The model reads the error.
	Resolve(name string, args []byte) (tool.Tool, []byte, error)
	// Validate checks the arguments against the tool's schema. The model reads the error.
	Validate(t tool.Tool, args []byte) error
}

// Hooks are called around calls. It remembers their result for each call,
// so that they are called once per call and process.
type Hooks struct {
	Before func(ctx context.Context, tool string, args []byte) HookVerdict                     // nil if there are none
	After  func(ctx context.Context, tool string, args []byte, ran chat.ToolRan) (more string) // nil if there are none
	Tools  Tools
	Grace  time.Duration
	Waits  func(deadline.Wait)
	made   map[string]Prepared // by call id
}

// Prepared is what the hooks before a call made of it.
type Prepared struct {
	HookVerdict
	Changed bool
}

// Note tells the model, and people who read along, that a call's arguments differ from what the model wrote.
func (p Prepared) Note() string {
	if !p.Changed {
		return ""
	}
	return "[a hook changed the arguments of this call to " + string(p.Args) + "]\n"
}

// Made returns what the hooks have made of a call so far.
func (h *Hooks) Made(call string) Prepared { return h.made[call] }

// Prepare runs the hooks before a call. Their result is what is judged, shown and run. If they
// set arguments that the tool does not accept, the call is denied, because the model did not
// write them. The error is a *DeniedByHook, or that of ctx.
func (h *Hooks) Prepare(ctx context.Context, use chat.ToolUse, t tool.Tool, args []byte) (tool.Tool, []byte, error) {
	if h.Before == nil {
		return t, args, nil
	}
	made, known := h.made[use.ID]
	if !known {
		h.Waits(deadline.Wait{For: "the hooks before " + use.Name, Quiet: hookTime + h.Grace, Total: hookTime + h.Grace})
		asked, cancel := context.WithTimeout(ctx, hookTime)
		made.HookVerdict = h.Before(asked, t.Spec().Name, args)
		cancel()
		if ctx.Err() != nil {
			return t, args, ctx.Err()
		}
		made.Changed = made.Denied == "" && !bytes.Equal(made.Args, args)
		if h.made == nil {
			h.made = map[string]Prepared{}
		}
		h.made[use.ID] = made
	}
	switch {
	case made.Denied != "":
		return t, args, &DeniedByHook{made.Denied}
	case !made.Changed:
		return t, args, nil
	}
	other, plain, err := h.Tools.Resolve(t.Spec().Name, made.Args)
	if err == nil {
		err = h.Tools.Validate(other, plain)
	}
	if err != nil {
		return t, args, &DeniedByHook{"a hook changed the arguments to something the tool does not accept, so the call is not made: " + err.Error()}
	}
	return other, plain, nil
}

// Tell tells the hooks about a call that was made, and tells the model what they say.
func (h *Hooks) Tell(ctx context.Context, one Call, out *Outcome) {
	if note := h.made[one.Use.ID].Note(); note != "" {
		out.Ran.Blocks = append(chat.Blocks{chat.Text{Text: note}}, out.Ran.Blocks...)
	}
	if h.After == nil || ctx.Err() != nil {
		return
	}
	h.Waits(deadline.Wait{For: "the hooks after " + one.Use.Name, Quiet: hookTime + h.Grace, Total: hookTime + h.Grace})
	asked, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	more := h.After(asked, one.Tool.Spec().Name, one.Args, out.Ran)
	if asked.Err() != nil && ctx.Err() == nil {
		more += fmt.Sprintf("\n[the hooks after this call took longer than %s and were told to end]", hookTime)
	}
	if more != "" {
		out.Ran.Blocks = append(out.Ran.Blocks, chat.Text{Text: "\n" + more})
	}
}
