package runsetup

import (
	"context"
	"fmt"
	"slices"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/overrides"
	"chorus/internal/settings"
	"chorus/internal/tool"
	"chorus/internal/tool/web"
)

// ToolResult is the result of a tool run by hand.
type ToolResult struct {
	Text   string
	Failed bool
	Denied string // why it was not run
}

// ToolQuestion is a call that needs approval.
type ToolQuestion struct {
	Approval approval.Approval
	Label    string
}

// toolboxFor returns the toolbox for a call by hand, of a thread that never existed.
func (s *Setup) toolboxFor(o *SessionOptions) (*Toolbox, *gate.Judge, error) {
	if err := s.Check(o); err != nil {
		return nil, nil, err
	}
	thread, err := chat.NewThreadID("cli", settings.Place(o.Dir), "tool-"+id.New(), chat.DefaultAgent)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.Toolbox(thread, o.Dir)
	if err != nil {
		return nil, nil, err
	}
	bot, err := s.Settings.Bot("")
	if err != nil {
		return nil, nil, err
	}
	b.Web.Configure(s.webConfig(bot, bot.EgressHosts))
	work := engine.Work{Terms: chat.Terms{Yes: o.Yes, Profile: o.Profile}, Seq: 1}
	g := s.Gate.For(journal.Thread{ID: thread, Place: thread.Place(), Dir: o.Dir}, bot, work)
	g.Kept = nil // rules kept for good were given to an agent
	g.Choice.Set(func(c *overrides.Values) { c.CanAsk = o.CanAsk })
	return b, g, nil
}

// ToolSpecs lists the tools.
func (s *Setup) ToolSpecs(o SessionOptions) ([]tool.Spec, error) {
	b, _, err := s.toolboxFor(&o)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(b.Tools.Specs(), func(spec tool.Spec) bool { return spec.Name == web.SearchName && !b.Web.Searches() }), nil
}

// RunTool runs one tool as an agent would.
func (s *Setup) RunTool(ctx context.Context, o SessionOptions, name string, raw []byte, confirm func(ToolQuestion) bool) (ToolResult, error) {
	b, g, err := s.toolboxFor(&o)
	if err != nil {
		return ToolResult{}, err
	}
	t, args, err := b.Tools.Resolve(name, raw)
	if err == nil {
		err = b.Tools.Validate(t, args)
	}
	if err != nil {
		return ToolResult{Text: err.Error(), Failed: true}, nil
	}
	q := agent.ProposedCall{Call: chat.ToolUse{ID: id.New(), Name: name, Args: args}, Tool: t, Args: args, Touches: t.Access(args)}
	r := g.Judge(q, s.Me())
	switch r.Verdict {
	case approval.Allow:
	case approval.Pending:
		approval := approval.Approval{ID: q.Call.ID, Call: q.Call, Dir: o.Dir, Rule: r.Rule, Assessment: r.Assessment, AskedBy: s.Me()}
		for _, touch := range q.Touches {
			approval.Actions = append(approval.Actions, touch.Action())
		}
		if p, ok := t.(tool.Previewer); ok {
			approval.Preview = p.Preview(ctx, args)
		}
		if !confirm(ToolQuestion{approval, b.Tools.Label(name, args)}) {
			return ToolResult{Denied: "you said no"}, nil
		}
	default:
		return ToolResult{Denied: r.Reason}, nil
	}
	res, err := t.Run(tool.WithCall(ctx, tool.Call{ID: q.Call.ID, Touches: q.Touches, Hides: r.Hides}), args)
	if err != nil {
		return ToolResult{}, fmt.Errorf("%s: %w", t.Spec().Name, err)
	}
	out := ToolResult{Text: res.Blocks.Text(), Failed: res.Failed || res.Exit != 0}
	for _, block := range res.Blocks {
		if img, ok := block.(chat.Image); ok {
			out.Text += fmt.Sprintf("(a picture: %s, %d bytes)", img.MediaType, img.Size)
		}
	}
	return out, nil
}
