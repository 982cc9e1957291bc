// Package summary asks an agent's model for a few sentences about conversations, within the budgets of whoever pays for it.
package summary

import (
	"context"
	"errors"
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
	said, _, err := runsetup.Question{Bot: bot, Models: models, Yes: true,
		Entry: ledger.Entry{Run: r.Run, Step: 1, Attempt: max(1, r.Attempt), Thread: r.Thread, Agent: r.Agent, Payer: r.Payer},
		Request: func(window int) (model.Request, error) {
			return transcript.DigestRequest(r.Conversations, chat.Settings{ContextWindow: window, NoCache: true})
		}}.Ask(ctx, w.DB)
	text := strings.TrimSpace(said.Blocks.Text())
	switch {
	case err != nil:
		return "", err
	case said.Stop == chat.StopRefused:
		return "", errors.New("the model would not write a summary")
	case text == "":
		return "", errors.New("the model wrote no summary")
	}
	return text, nil
}
