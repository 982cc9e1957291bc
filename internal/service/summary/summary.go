// Package summary asks an agent's model for a few sentences about conversations, within the budgets of whoever pays for it.
package summary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/transcript"
)

// timeLimit limits the time for a summary. A request over HTTP has to end in 90 s, and more follows the summary.
const timeLimit = time.Minute

// Writer writes summaries.
type Writer struct {
	DB       *store.DB
	Models   *provider.Models
	Settings *settings.Settings
}

// Request describes a summary.
type Request struct {
	Agent         string
	Thread        chat.ThreadID // its guild and channel are charged
	Payer         chat.Principal
	Run           string // its row in the ledger
	Attempt       int    // which attempt at this row it is; 0: the first
	Conversations [][]chat.Line
}

// Write returns the summary. Its cost is reserved before and settled after, as for every call. If a crash interrupts it, the cost
// stays reserved until the end of its period.
func (w *Writer) Write(ctx context.Context, r Request) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	bot, err := w.Settings.BotIn(r.Agent, settings.GuildOf(r.Thread))
	if err != nil {
		return "", err
	}
	models, err := w.Models.For(bot.Vendors)
	if err != nil {
		return "", err
	}
	name, err := models.Name("", bot.ContinuationModel)
	if err != nil {
		return "", err
	}
	made, err := models.Resolve(name)
	if err != nil {
		return "", err
	}
	req, err := transcript.DigestRequest(r.Conversations, chat.Settings{ContextWindow: made.Entry.ContextWindow, NoCache: true})
	if err != nil {
		return "", err
	}
	req.Model = made.Name
	prepared, err := made.Model.Prepare(req)
	if err != nil {
		return "", err
	}
	price, _ := runsetup.PriceOf(models, bot)(name)
	entry := ledger.Entry{Run: r.Run, Step: 1, Attempt: max(1, r.Attempt), Thread: r.Thread, Agent: r.Agent, Payer: r.Payer, Model: name,
		Reserved: price.Worst(prepared.Estimate, transcript.DigestTokens)}
	under := runsetup.BudgetOf(bot, true).For(r.Thread, r.Agent, r.Payer, r.Run)
	if under != nil && !price.Known() {
		return "", &ledger.Refusal{Stand: ledger.Stand{Limit: under.Limits[0]}, Unpriced: name}
	}
	if err := w.DB.Charge(ctx, r.Thread, entry, under); err != nil {
		return "", err
	}
	text, usage, err := readAnswer(ctx, made.Model, prepared)
	entry.How, entry.Usage = ledger.ByUsage, usage
	if usage.Total() == 0 && err == nil {
		entry.How, entry.Usage = ledger.Estimate, chat.Usage{Input: prepared.Estimate, Output: model.Tokens(len(text))}
	}
	entry.Settled = price.Cost(entry.Usage)
	if cerr := w.DB.Charge(context.WithoutCancel(ctx), r.Thread, entry, nil); cerr != nil {
		return text, errors.Join(err, cerr)
	}
	return text, err
}

// readAnswer reads an answer to its end.
func readAnswer(ctx context.Context, m model.Model, p model.Prepared) (string, chat.Usage, error) {
	for chunk, err := range m.Stream(ctx, p) {
		if err != nil {
			return "", chat.Usage{}, err
		}
		done, ok := chunk.(model.Done)
		if !ok {
			continue
		}
		text := strings.TrimSpace(done.Blocks.Text())
		switch {
		case done.Stop == chat.StopRefused:
			return "", done.Usage, errors.New("the model would not write a summary")
		case text == "":
			return "", done.Usage, errors.New("the model wrote no summary")
		}
		return text, done.Usage, nil
	}
	return "", chat.Usage{}, fmt.Errorf("the summary ended without an end mark")
}
