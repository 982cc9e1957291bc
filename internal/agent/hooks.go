package agent

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/toolcall"
	"chorus/internal/chat"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// hookTime bounds what the hooks around a call take all together.
const hookTime = 2 * time.Minute

// deniedByHook says why a call is not made.
type deniedByHook struct{ why string }

func (d *deniedByHook) Error() string { return d.why }

// HookVerdict is what the hooks before a call made of it.
type HookVerdict struct {
	Args   []byte // the arguments that it has now
	Denied string // why it is not made; "": it is not denied
	Ask    string // why a person is to be asked; "": the rules decide alone
}

// prepared is what the hooks made of a call.
type prepared struct {
	HookVerdict
	changed bool
}

// note tells the model, and whoever reads along, that a call has other arguments than the model wrote.
func (p prepared) note() string {
	if !p.changed {
		return ""
	}
	return "[a hook changed the arguments of this call to " + string(p.Args) + "]\n"
}

// before asks the hooks before a call, once for each call of this process. What they make of it is what is judged,
// shown and run. Arguments that the tool cannot take deny the call: the model did not write them.
func (r *runner) before(ctx context.Context, c transcript.Call, t tool.Tool, args []byte) (tool.Tool, []byte, error) {
	if r.Before == nil {
		return t, args, nil
	}
	made, known := r.prepared[c.Use.ID]
	if !known {
		r.waits(deadline.Wait{For: "the hooks before " + c.Use.Name, Quiet: hookTime + r.bounds.Grace, Total: hookTime + r.bounds.Grace})
		asked, cancel := context.WithTimeout(ctx, hookTime)
		made.HookVerdict = r.Before(asked, t.Spec().Name, args)
		cancel()
		if ctx.Err() != nil {
			return t, args, ctx.Err()
		}
		made.changed = made.Denied == "" && !bytes.Equal(made.Args, args)
		if r.prepared == nil {
			r.prepared = map[string]prepared{}
		}
		r.prepared[c.Use.ID] = made
	}
	switch {
	case made.Denied != "":
		return t, args, &deniedByHook{made.Denied}
	case !made.changed:
		return t, args, nil
	}
	other, plain, err := r.Tools.Resolve(t.Spec().Name, made.Args)
	if err == nil {
		err = r.Tools.Validate(other, plain)
	}
	if err != nil {
		return t, args, &deniedByHook{"a hook changed the arguments to what the tool does not take, so the call is not made: " + err.Error()}
	}
	return other, plain, nil
}

// after tells the hooks of a call that was made, and the model what they say.
func (r *runner) after(ctx context.Context, one toolcall.Call, out *toolcall.Outcome) {
	if note := r.prepared[one.Use.ID].note(); note != "" {
		out.Ran.Blocks = append(chat.Blocks{chat.Text{Text: note}}, out.Ran.Blocks...)
	}
	if r.After == nil || ctx.Err() != nil {
		return
	}
	r.waits(deadline.Wait{For: "the hooks after " + one.Use.Name, Quiet: hookTime + r.bounds.Grace, Total: hookTime + r.bounds.Grace})
	asked, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	more := r.After(asked, one.Tool.Spec().Name, one.Args, out.Ran)
	if asked.Err() != nil && ctx.Err() == nil {
		more += fmt.Sprintf("\n[the hooks after this call took longer than %s and were told to end]", hookTime)
	}
	if more != "" {
		out.Ran.Blocks = append(out.Ran.Blocks, chat.Text{Text: "\n" + more})
	}
}
