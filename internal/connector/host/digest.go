package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/transcript"
)

// digestTime limits the time for a summary.
const digestTime = 2 * time.Minute

// digesting is a summary that somebody pays for.
type digesting struct {
	agent         string
	thread        chat.ThreadID // its guild and channel are charged
	payer         chat.Principal
	run           string // its row in the ledger
	attempt       int
	conversations [][]chat.Line
}

// digest asks the agent's model for a few sentences about conversations. Its cost is
// reserved before and settled after, as for every call. If a crash interrupts it, the cost stays
// reserved until the end of its period.
func (h *Host) digest(ctx context.Context, d digesting) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, digestTime)
	defer cancel()
	bot, err := h.Settings.BotIn(d.agent, settings.GuildOf(d.thread))
	if err != nil {
		return "", err
	}
	models, err := h.Models.For(bot.Vendors)
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
	req, err := transcript.DigestRequest(d.conversations, chat.Settings{ContextWindow: made.Entry.ContextWindow, NoCache: true})
	if err != nil {
		return "", err
	}
	req.Model = made.Name
	prepared, err := made.Model.Prepare(req)
	if err != nil {
		return "", err
	}
	price, _ := runsetup.PriceOf(models, bot)(name)
	entry := ledger.Entry{Run: d.run, Step: 1, Attempt: max(1, d.attempt), Thread: d.thread, Agent: d.agent, Payer: d.payer, Model: name,
		Reserved: price.Worst(prepared.Estimate, transcript.DigestTokens)}
	under := runsetup.BudgetOf(bot, true).For(d.thread, d.agent, d.payer, d.run)
	if under != nil && !price.Known() {
		return "", &ledger.Refusal{Stand: ledger.Stand{Limit: under.Limits[0]}, Unpriced: name}
	}
	if err := h.DB.Charge(ctx, d.thread, entry, under); err != nil {
		return "", err
	}
	text, usage, err := readAnswer(ctx, made.Model, prepared)
	entry.How, entry.Usage = ledger.ByUsage, usage
	if usage.Total() == 0 && err == nil {
		entry.How, entry.Usage = ledger.Estimate, chat.Usage{Input: prepared.Estimate, Output: model.Tokens(len(text))}
	}
	entry.Settled = price.Cost(entry.Usage)
	if cerr := h.DB.Charge(context.WithoutCancel(ctx), d.thread, entry, nil); cerr != nil {
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
