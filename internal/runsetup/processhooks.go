package runsetup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/background"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/text"
	"chorus/internal/tool"
)

// Limits for reading instructions, which takes one short answer.
const (
	compileTime              = 30 * time.Second
	compileMost ledger.Nanos = 50_000_000 // five cents
)

// CompileHooks asks the model of a thread's agent to read instructions that the grammar does not
// understand. payer pays for it. The resulting rules are not in force yet.
func (s *Setup) CompileHooks(ctx context.Context, row journal.Thread, payer chat.Principal, words string) ([]background.Rule, error) {
	bot, err := s.Settings.BotFor(row)
	if err != nil {
		return nil, err
	}
	models, err := s.Models.For(bot.Vendors)
	if err != nil {
		return nil, err
	}
	return s.compileHooks(ctx, Question{Bot: bot, Models: models, Entry: ledger.Entry{Run: id.New(), Step: 1, Attempt: 1, Thread: row.ID, Agent: row.Agent, Payer: payer}}, words)
}

func (s *Setup) compileHooks(ctx context.Context, q Question, words string) ([]background.Rule, error) {
	msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks("The instructions:\n"+words))
	if err != nil {
		return nil, err
	}
	q.Most = compileMost
	q.Request = func(int) (model.Request, error) {
		return model.Request{Head: &model.Head{System: background.CompilePrompt}, Messages: []*model.Message{msg}, Settings: chat.Settings{MaxTokens: background.CompileTokens, NoCache: true}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	said, _, err := q.Ask(ctx, s.DB)
	if err != nil {
		return nil, fmt.Errorf("no model could read the instructions: %w", err)
	}
	return background.Read(said.Blocks.Text())
}

// serve sets the run that the processes now belong to.
func (o *ownProcesses) serve(host *serverHost) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.host = host
}

// Understand implements process.Processes: a model reads the words at the run's expense. If the
// rules require approval for hooks, people see the result before it takes effect.
func (o *ownProcesses) Understand(ctx context.Context, words string) ([]background.Rule, error) {
	o.mu.Lock()
	h := o.host
	o.mu.Unlock()
	if h == nil {
		return nil, errors.New("no run is on")
	}
	call := tool.CallFrom(ctx).Key
	rules, err := o.setup.compileHooks(ctx, h.question(call), words)
	if err != nil {
		return nil, err
	}
	var said []string
	for _, r := range rules {
		said = append(said, r.String())
	}
	shown := strings.Join(said, "; ")
	ruling := h.gate.JudgeDuring("add_process_hooks", text.Clip(text.OneLine(shown), 500))
	switch ruling.Verdict {
	case approval.Allow:
		return rules, nil
	case approval.Pending:
		asking, err := h.setup.Gate.Asking(h.row, h.bot, h.profile)
		if err != nil {
			return nil, err
		}
		asking.For = questionTime
		a := h.approval(call)
		a.Call.Name, a.Actions, a.Rule, a.Assessment = "add_process_hooks", []string{"tool:add_process_hooks:" + text.Clip(text.OneLine(shown), 500)}, ruling.Rule, ruling.Assessment
		a.Reason = "a model derived this from plain words that the grammar does not understand"
		a.Preview = text.Clip(words, 1000) + "\n\nwas understood as:\n- " + strings.Join(said, "\n- ")
		if err := h.setup.Gate.Engine(nil).AskDuring(ctx, a, asking); err != nil {
			return nil, fmt.Errorf("the instructions were understood as %q, and that was not confirmed: %w", shown, err)
		}
		return rules, nil
	}
	return nil, fmt.Errorf("the instructions were understood as these hooks, which may not be added unseen (%s): %s", ruling.Reason, background.Spell(rules))
}
