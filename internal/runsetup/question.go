package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"chorus/internal/agent/attempt"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/provider"
	"chorus/internal/store"
)

// Question is what a model is asked once, outside the requests of a run.
type Question struct {
	Bot    *config.Bot
	Models *provider.Models
	Model  string // "" means the agent's model
	// Entry says who pays, and for what: run, root, step, attempt, thread, agent and payer.
	Entry   ledger.Entry
	Yes     bool           // no soft limit applies, since nobody is asked
	Within  []ledger.Limit // what its run and those above it may spend
	Most    ledger.Nanos   // most that the answer may cost; 0: whatever the budgets allow
	Request func(window int) (model.Request, error)
}

// Ask reserves the maximum cost, asks the model, and settles the actual cost, as for the requests of a run. It returns the answer and the
// model's name.
func (q Question) Ask(ctx context.Context, db *store.DB) (chat.Said, string, error) {
	name, err := q.Models.Name("", cmp.Or(q.Model, q.Bot.ContinuationModel))
	if err != nil {
		return chat.Said{}, "", err
	}
	made, err := q.Models.Resolve(name)
	if err != nil {
		return chat.Said{}, "", err
	}
	req, err := q.Request(made.Entry.ContextWindow)
	if err != nil {
		return chat.Said{}, "", err
	}
	req.Model = made.Name
	prepared, err := made.Model.Prepare(req)
	if err != nil {
		return chat.Said{}, "", err
	}
	price, _ := PriceOf(q.Models, q.Bot)(name)
	entry := q.Entry
	entry.Model, entry.Reserved = name, price.Worst(prepared.Estimate, req.Settings.MaxTokens)
	if q.Most > 0 && entry.Reserved > q.Most {
		return chat.Said{}, name, fmt.Errorf("it might cost %s with %s, and may cost %s at most", ledger.Dollars(entry.Reserved), name, ledger.Dollars(q.Most))
	}
	under, err := BudgetOf(q.Bot, q.Yes).Under(entry, q.Within, price)
	if err != nil {
		return chat.Said{}, name, err
	}
	if err := db.Charge(ctx, entry.Thread, entry, under); err != nil {
		return chat.Said{}, name, err
	}
	said, err := attempt.Stream(ctx, made, prepared, chat.Said{Step: entry.Step, Attempt: entry.Attempt}, func(chat.Delta) {})
	if err != nil {
		said.Error = attempt.Failure(err)
		if ctx.Err() != nil {
			said.Error.Kind = "stopped" // the provider may have gone on
		}
	}
	if cerr := db.Charge(context.WithoutCancel(ctx), entry.Thread, entry.Settle(price, prepared.Estimate, said), nil); cerr != nil {
		err = errors.Join(err, cerr)
	}
	return said, name, err
}
