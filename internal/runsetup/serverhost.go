package runsetup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/provider"
	"chorus/internal/text"
	"chorus/internal/tool/mcp"
)

// serverHost answers what MCP servers ask during the calls of a run.
type serverHost struct {
	setup   *Setup
	row     journal.Thread
	bot     *config.Bot
	profile string
	gate    *gate.Judge
	models  *provider.Models
	terms   chat.Terms // of the run
}

var _ mcp.Host = (*serverHost)(nil)

// questionTime is how long a server's question waits. The call that it belongs to waits
// as well, and no call may take longer than a quarter of an hour.
const questionTime = 10 * time.Minute

// approval returns what people are shown during a call.
func (h *serverHost) approval(call string) approval.Approval {
	run, use, _ := strings.Cut(call, "/")
	return approval.Approval{Thread: h.row.ID, Run: run, Call: chat.ToolUse{ID: use, Name: "mcp"}, Bound: approval.Facts{Declared: true}.Encode(), AskedBy: payer(h.gate.Work), Payer: payer(h.gate.Work)}
}

// Ask implements mcp.Host. The question is shown as an approval, and the note with the approval is the
// answer. Only the person for whom the run works may answer, because the server asks for something of theirs.
func (h *serverHost) Ask(ctx context.Context, call string, q mcp.Question) (mcp.Reply, error) {
	if !h.gate.Choice.Snapshot().CanAsk {
		return mcp.Reply{Action: mcp.Cancel}, nil
	}
	asking, err := h.setup.Gate.Asking(h.row, h.bot, h.profile)
	if err != nil {
		return mcp.Reply{}, err
	}
	asking.Who, asking.For = approval.DefaultWho, questionTime
	a := h.approval(call)
	a.Actions = []string{approval.QuestionAction("MCP server " + q.Server)}
	a.Reason = "the MCP server " + q.Server + " asks"
	a.Preview = q.Text()
	a.Again, a.Fields = q.Wrong, q.Asked()
	now, err := h.setup.Gate.Engine(nil).QuestionDuring(ctx, a, asking)
	switch {
	case err != nil, now.State == approval.Expired, now.State == approval.Cancelled:
		return mcp.Reply{Action: mcp.Cancel}, nil
	case now.State != approval.Approved:
		return mcp.Reply{Action: mcp.Decline}, nil
	}
	return mcp.Reply{Action: mcp.Accept, Text: now.Note}, nil
}

// sampleTime limits how long an answer for a server may take.
const sampleTime = 2 * time.Minute

// Sample implements mcp.Host. The request is judged as an action of the server, needs approval if the
// rules say so, and is charged to whoever pays for the run, under the run's limits.
func (h *serverHost) Sample(ctx context.Context, call string, s mcp.Sampling) (mcp.Sampled, error) {
	if err := h.allowed(ctx, call, s); err != nil {
		return mcp.Sampled{}, err
	}
	var messages []*model.Message
	for _, m := range s.Messages {
		role, from := model.User, chat.Participant{Kind: chat.System}
		if m.Assistant {
			role, from = model.Assistant, chat.Participant{}
		}
		msg, err := model.NewMessage(role, from, chat.TextBlocks(m.Text))
		if err != nil {
			return mcp.Sampled{}, err
		}
		messages = append(messages, msg)
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	q := h.question(call)
	q.Request = func(int) (model.Request, error) {
		return model.Request{Head: &model.Head{System: s.System}, Messages: messages, Settings: chat.Settings{MaxTokens: s.MaxTokens, Stop: s.Stop, NoCache: true}}, nil
	}
	said, name, err := q.Ask(ctx, h.setup.DB)
	if err != nil {
		return mcp.Sampled{}, err
	}
	return mcp.Sampled{Text: said.Blocks.Text(), Model: name, Cut: said.Stop == chat.StopLength}, nil
}

// question is asked at the expense of the run, and within what that may spend. The time as the step distinguishes its entry from those of
// the run's own requests and, after a restart, from earlier ones.
func (h *serverHost) question(call string) Question {
	who := payer(h.gate.Work).Person()
	if who.String() == "" {
		who = chat.Principal{Kind: chat.TheSystem, ID: h.row.Agent}
	}
	return Question{Bot: h.bot, Models: h.models, Model: h.terms.Model, Yes: h.gate.Choice.Snapshot().Yes, Within: ledger.Within(runOf(call), h.terms),
		Entry: ledger.Entry{Run: runOf(call), Root: h.row.Parent.Root, Step: int(time.Now().UnixMicro()), Attempt: 1, Thread: h.row.ID, Agent: h.row.Agent, Payer: who}}
}

func runOf(call string) string {
	run, _, _ := strings.Cut(call, "/")
	return run
}

// allowed asks the gate, and people if the gate requires it.
func (h *serverHost) allowed(ctx context.Context, call string, s mcp.Sampling) error {
	last := s.Messages[len(s.Messages)-1].Text
	ruling := h.gate.JudgeDuring(s.Action, text.Clip(text.OneLine(last), 200))
	switch ruling.Verdict {
	case approval.Allow:
		return nil
	case approval.Pending:
		asking, err := h.setup.Gate.Asking(h.row, h.bot, h.profile)
		if err != nil {
			return err
		}
		a := h.approval(call)
		a.Actions, a.Rule, a.Assessment = []string{"tool:" + s.Action + ":" + text.Clip(text.OneLine(last), 200)}, ruling.Rule, ruling.Assessment
		a.Reason = fmt.Sprintf("the MCP server %s wants the model to answer this, at your expense: %s", s.Server, text.Clip(last, 1000))
		return h.setup.Gate.Engine(nil).AskDuring(ctx, a, asking)
	}
	return errors.New("it is not allowed: " + ruling.Reason)
}
