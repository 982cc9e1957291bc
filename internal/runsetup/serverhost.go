package runsetup

import (
	"cmp"
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
	model   string // that the run asks for; "": the agent's
}

var _ mcp.Host = (*serverHost)(nil)

// questionTime is how long a server's question waits: the call that it is asked in waits as well, and no call may take
// longer than a quarter of an hour.
const questionTime = 10 * time.Minute

// approval is what people are shown while a call runs.
func (h *serverHost) approval(call string) approval.Approval {
	run, use, _ := strings.Cut(call, "/")
	return approval.Approval{Thread: h.row.ID, Run: run, Call: chat.ToolUse{ID: use, Name: "mcp"}, AskedBy: payer(h.gate.Work), Payer: payer(h.gate.Work)}
}

// Ask implements mcp.Host: the question stands among the approvals, and the note of a yes is the answer. Only whoever is
// worked for may answer: the server asks for something of theirs.
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
	a.Preview = q.Message + "\n\n" + q.How()
	if q.Wrong != "" {
		a.Again = q.Wrong
	}
	now, err := h.setup.Gate.Engine(nil).QuestionDuring(ctx, a, asking)
	switch {
	case err != nil:
		return mcp.Reply{Action: mcp.Cancel}, nil
	case now.State != approval.Approved:
		return mcp.Reply{Action: mcp.Decline}, nil
	}
	return mcp.Reply{Action: mcp.Accept, Text: now.Note}, nil
}

// sampleTime is how long an answer for a server may take.
const sampleTime = 2 * time.Minute

// Sample implements mcp.Host. It is judged as an action of the server, asked for where the rules say so, and charged to
// whoever pays for the run, under the run's limits.
func (h *serverHost) Sample(ctx context.Context, call string, s mcp.Sampling) (mcp.Sampled, error) {
	if err := h.allowed(ctx, call, s); err != nil {
		return mcp.Sampled{}, err
	}
	name, err := h.models.Name("", cmp.Or(h.model, h.bot.ContinuationModel))
	if err != nil {
		return mcp.Sampled{}, err
	}
	made, err := h.models.Resolve(name)
	if err != nil {
		return mcp.Sampled{}, err
	}
	req := model.Request{Model: made.Name, Head: &model.Head{System: s.System}, Settings: chat.Settings{MaxTokens: s.MaxTokens, Stop: s.Stop, NoCache: true}}
	for _, m := range s.Messages {
		role, from := model.User, chat.Participant{Kind: chat.System}
		if m.Assistant {
			role, from = model.Assistant, chat.Participant{}
		}
		msg, err := model.NewMessage(role, from, chat.TextBlocks(m.Text))
		if err != nil {
			return mcp.Sampled{}, err
		}
		req.Messages = append(req.Messages, msg)
	}
	prepared, err := made.Model.Prepare(req)
	if err != nil {
		return mcp.Sampled{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	return h.charged(ctx, call, name, prepared, s.MaxTokens, func() (model.Done, error) { return lastChunk(ctx, made.Model, prepared) })
}

// allowed asks the gate, and people where it says so.
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
		a.Actions, a.Rule, a.Risk = []string{"tool:" + s.Action + ":" + text.Clip(text.OneLine(last), 200)}, ruling.Rule, "medium"
		a.Reason = fmt.Sprintf("the MCP server %s wants the model to answer this, at your expense: %s", s.Server, text.Clip(last, 1000))
		return h.setup.Gate.Engine(nil).AskDuring(ctx, a, asking)
	}
	return errors.New("it is not allowed: " + ruling.Reason)
}

// charged reserves what an answer may cost, has it made, and settles what it did cost.
func (h *serverHost) charged(ctx context.Context, call, name string, p model.Prepared, most int, answer func() (model.Done, error)) (mcp.Sampled, error) {
	price, _ := PriceOf(h.models, h.bot)(name)
	run, _, _ := strings.Cut(call, "/")
	who := payer(h.gate.Work).Person()
	// The time as the step keeps the entry apart from those of the run's own requests and, after a restart, of earlier ones.
	entry := ledger.Entry{Run: run, Step: int(time.Now().UnixMicro()), Attempt: 1, Thread: h.row.ID, Agent: h.row.Agent, Payer: who, Model: name,
		Reserved: price.Worst(p.Estimate, most)}
	under := BudgetOf(h.bot, h.gate.Choice.Snapshot().Yes).For(h.row.ID, h.row.Agent, who, run)
	if under != nil && !price.Known() {
		return mcp.Sampled{}, &ledger.Refusal{Stand: ledger.Stand{Limit: under.Limits[0]}, Unpriced: name}
	}
	if err := h.setup.DB.Charge(ctx, h.row.ID, entry, under); err != nil {
		return mcp.Sampled{}, err
	}
	done, err := answer()
	said := done.Blocks.Text()
	entry.How, entry.Usage = ledger.ByUsage, done.Usage
	if done.Usage.Total() == 0 && err == nil {
		entry.How, entry.Usage = ledger.Estimate, chat.Usage{Input: p.Estimate, Output: model.Tokens(len(said))}
	}
	entry.Settled = price.Cost(entry.Usage)
	if cerr := h.setup.DB.Charge(context.WithoutCancel(ctx), h.row.ID, entry, nil); cerr != nil {
		err = errors.Join(err, cerr)
	}
	return mcp.Sampled{Text: said, Model: name, Cut: done.Stop == chat.StopLength}, err
}

// lastChunk reads an answer to its end.
func lastChunk(ctx context.Context, m model.Model, p model.Prepared) (model.Done, error) {
	for chunk, err := range m.Stream(ctx, p) {
		if err != nil {
			return model.Done{}, err
		}
		if done, ok := chunk.(model.Done); ok {
			return done, nil
		}
	}
	return model.Done{}, errors.New("the answer ended without an end mark")
}
