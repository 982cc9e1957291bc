package runsetup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/tool"
	"chorus/internal/tool/git"
	"chorus/internal/tool/web"
	"chorus/internal/transcript"
)

// UnattendedCall is a tool call that no model makes and that nobody watches: a step of a hook. It
// passes the same gate and runs in the same sandbox as a call of the thread's agent.
type UnattendedCall struct {
	Thread    journal.Thread // it need not be in the journal
	Principal chat.Principal // on whose authority
	ID        string         // marks its processes
	Name      string
	Args      []byte
	Tools     func(*Toolbox) []tool.Tool // in addition to the thread's own; may be nil
	// Approved means that a person has approved what would be asked.
	Approved bool
	Limit    time.Duration
	// Streams receives a command's standard output and standard error
	// separately, without secrets; may be nil.
	Streams func(stdout, stderr string)
}

// DeniedError says why a call was not made.
type DeniedError struct {
	Why   string
	Asked bool // it would have needed approval
}

// Error implements error.
func (e *DeniedError) Error() string { return e.Why }

type unattended struct {
	box    *Toolbox
	judge  *gate.Judge
	call   agent.ProposedCall
	ruling approval.Ruling
}

// JudgeUnattended returns nil if a call would be made, a *DeniedError if not, or what is wrong with it.
func (s *Setup) JudgeUnattended(ctx context.Context, c UnattendedCall) error {
	u, err := s.prepare(ctx, c)
	if err != nil {
		return err
	}
	return u.verdict(c.Approved)
}

func (u unattended) verdict(approved bool) error {
	switch u.ruling.Verdict {
	case approval.Allow:
		return nil
	case approval.Pending, approval.End:
		if approved {
			return nil
		}
		return &DeniedError{Why: fmt.Sprintf("%s needs approval, and nobody has approved it", firstAction(u.call)), Asked: true}
	default:
		return &DeniedError{Why: "permission denied: " + u.ruling.Reason}
	}
}

func firstAction(q agent.ProposedCall) string {
	if len(q.Touches) == 0 {
		return "tool:" + q.Tool.Spec().Name + ":" + string(q.Args)
	}
	return q.Touches[0].Action()
}

// prepare makes what the call needs and judges it.
func (s *Setup) prepare(ctx context.Context, c UnattendedCall) (u unattended, err error) {
	work := engine.Work{Seq: 1, Senders: []transcript.Sender{{Principal: c.Principal, Seq: 1}}}
	folder, err := s.Gate.HoldPlace(ctx, c.Thread, work.Senders)
	if err != nil {
		return u, err
	}
	if u.box, err = s.Toolbox(c.Thread.ID, c.Thread.Dir); err != nil {
		return u, err
	}
	u.box.hold(folder)
	bot, err := s.Settings.BotFor(c.Thread)
	if err != nil {
		return u, err
	}
	u.judge = s.Gate.For(c.Thread, bot, work)
	terms := u.judge.Granted(work.Terms)
	rules, err := u.judge.Limits.Load(cmp.Or(terms.Profile, bot.Permissions))
	if err != nil {
		return u, err
	}
	plan := s.Isolation.Plan(bot, rules, c.Thread, terms, work)
	plan.Programs, plan.Folder = s.programsAsking(u.judge, c.Thread, bot, rules.Name(), nil), folder
	u.box.Web.Configure(s.webConfig(bot, plan.Hosts))
	executor, err := s.Isolation.ExecutorFor(&u.box.Site, plan)
	if err != nil {
		return u, err
	}
	u.box.executor.Switch(executor)
	list := u.box.List
	if c.Tools != nil {
		list = append(c.Tools(u.box), list...)
	}
	t, args, err := resolve(list, c.Name, c.Args)
	if err != nil {
		return u, err
	}
	u.call = agent.ProposedCall{Call: chat.ToolUse{ID: c.ID, Name: c.Name, Args: args}, Tool: t, Args: args, Touches: t.Access(args), Senders: work.Senders}
	u.ruling = u.judge.Judge(u.call, c.Principal)
	return u, nil
}

// resolve returns the first tool of a name and checks the arguments.
func resolve(list []tool.Tool, name string, args []byte) (tool.Tool, []byte, error) {
	for _, t := range list {
		if t.Spec().Name != name {
			continue
		}
		set, err := tool.NewSet(t)
		if err != nil {
			return nil, nil, err
		}
		found, plain, err := set.Resolve(name, args)
		if err == nil {
			err = set.Validate(found, plain)
		}
		return found, plain, err
	}
	return nil, nil, fmt.Errorf("there is no tool %s", name)
}

// CallUnattended makes the call and writes the decision to the audit log.
// A *DeniedError means that the call was not made.
func (s *Setup) CallUnattended(ctx context.Context, c UnattendedCall) (tool.Result, error) {
	u, err := s.prepare(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	denied := u.verdict(c.Approved)
	audit := approval.Audit{Agent: c.Thread.Agent, Thread: c.Thread.ID, Call: c.ID, Principal: c.Principal, Action: s.Logs.Redactor().Text(firstAction(u.call)), Decision: "allow", Rule: u.ruling.Rule}
	switch {
	case denied != nil:
		audit.Decision, audit.Detail = "deny", denied.Error()
	case u.ruling.Verdict != approval.Allow:
		audit.Decision, audit.Detail = "ask_approved", "when the hook was made"
	case u.ruling.Audit != nil:
		audit.Decision, audit.Detail = u.ruling.Audit.Decision, u.ruling.Audit.Detail
	}
	if err := s.DB.Audit(ctx, audit); err != nil {
		return tool.Result{}, err
	}
	if denied != nil {
		return tool.Result{}, denied
	}
	if c.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Limit)
		defer cancel()
	}
	hide := s.Logs.Redactor()
	call := tool.Call{ID: c.ID, Key: c.ID, Senders: []chat.Principal{c.Principal}, Touches: u.call.Touches, Hides: u.ruling.Hides, Progress: func(string) {}}
	if c.Streams != nil {
		call.Streams = func(stdout, stderr string) { c.Streams(hide.Text(stdout), hide.Text(stderr)) }
	}
	res, err := u.call.Tool.Run(tool.WithCall(ctx, call), u.call.Args)
	for i, block := range res.Blocks {
		if text, ok := block.(chat.Text); ok {
			text.Text = hide.Text(text.Text)
			res.Blocks[i] = text
		}
	}
	return res, err
}

// WebGet returns a tool that returns the response of an address unchanged. It is judged like web_fetch.
func (b *Toolbox) WebGet(limit time.Duration, most int64, status *int) tool.Tool {
	type in struct {
		URL string `json:"url" jsonschema:"the address"`
	}
	return tool.New(tool.Func[in]{Name: "http_get", Description: "Ask for an address.", ReadOnly: true,
		Access: func(a in) []tool.Access { return []tool.Access{{Tool: web.FetchName, Detail: a.URL}} },
		Run: func(ctx context.Context, a in) (tool.Result, error) {
			code, body, err := b.Web.Get(ctx, a.URL, limit, most)
			*status = code
			if err != nil {
				return tool.Fail(err.Error()), nil
			}
			return tool.OK(body), nil
		}})
}

// GitCompare returns a tool that compares the workspace's repository with a branch, in the thread's sandbox.
func (b *Toolbox) GitCompare(c git.Comparison) tool.Tool {
	return git.Compare(b.executor, b.Roots, nil, c)
}
