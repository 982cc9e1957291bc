package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/provider"
)

// question is what a model is asked once, outside the requests of a run.
type question struct {
	row      journal.Thread // the thread whose limits apply
	bot      *config.Bot
	models   *provider.Models
	model    string // "" means the agent's model
	run      string // the run whose task budget applies
	payer    chat.Principal
	yes      bool
	most     ledger.Nanos // most it may cost; 0: whatever the budgets allow
	system   string
	messages []*model.Message
	settings chat.Settings
}

// answer reserves the maximum cost, asks the model, and settles the actual
// cost. It returns the answer and the model's name.
func (s *Setup) answer(ctx context.Context, q question) (model.Done, string, error) {
	name, err := q.models.Name("", cmp.Or(q.model, q.bot.ContinuationModel))
	if err != nil {
		return model.Done{}, "", err
	}
	made, err := q.models.Resolve(name)
	if err != nil {
		return model.Done{}, "", err
	}
	p, err := made.Model.Prepare(model.Request{Model: made.Name, Head: &model.Head{System: q.system}, Settings: q.settings, Messages: q.messages})
	if err != nil {
		return model.Done{}, "", err
	}
	price, _ := PriceOf(q.models, q.bot)(name)
	// Using the time as the step distinguishes the entry from those of the run's
	// own requests and, after a restart, from earlier ones.
	entry := ledger.Entry{Run: q.run, Step: int(time.Now().UnixMicro()), Attempt: 1, Thread: q.row.ID, Agent: q.row.Agent, Payer: q.payer, Model: name,
		Reserved: price.Worst(p.Estimate, q.settings.MaxTokens)}
	under := BudgetOf(q.bot, q.yes).For(q.row.ID, q.row.Agent, q.payer, q.run)
	if under != nil && !price.Known() {
		return model.Done{}, name, &ledger.Refusal{Stand: ledger.Stand{Limit: under.Limits[0]}, Unpriced: name}
	}
	if q.most > 0 && entry.Reserved > q.most {
		return model.Done{}, name, fmt.Errorf("it might cost %s with %s, and may cost %s at most", ledger.Dollars(entry.Reserved), name, ledger.Dollars(q.most))
	}
	if err := s.DB.Charge(ctx, q.row.ID, entry, under); err != nil {
		return model.Done{}, name, err
	}
	done, err := lastChunk(ctx, made.Model, p)
	entry.How, entry.Usage = ledger.ByUsage, done.Usage
	if done.Usage.Total() == 0 && err == nil {
		entry.How, entry.Usage = ledger.Estimate, chat.Usage{Input: p.Estimate, Output: model.Tokens(len(done.Blocks.Text()))}
	}
	entry.Settled = price.Cost(entry.Usage)
	if cerr := s.DB.Charge(context.WithoutCancel(ctx), q.row.ID, entry, nil); cerr != nil {
		err = errors.Join(err, cerr)
	}
	return done, name, err
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
