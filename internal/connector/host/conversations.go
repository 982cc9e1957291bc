package host

import (
	"context"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/room"
	"chorus/internal/runsetup"
	"chorus/internal/service/savedcontext"
	"chorus/internal/store"
)

// ClearContext implements connector.Conversations.
func (h *Backend) ClearContext(ctx context.Context, thread chat.ThreadID, by chat.Principal) (int, error) {
	n, err := h.engine().Clear(ctx, thread, by.String())
	return n, h.handler.ToError(err)
}

// SaveContext implements connector.Conversations.
func (h *Backend) SaveContext(ctx context.Context, rows []journal.Thread, by chat.Principal, description string) (connector.Saved, error) {
	if len(rows) == 0 {
		return connector.Saved{}, savedcontext.ErrEmpty
	}
	saved, err := h.App.Contexts.Save(ctx, savedcontext.Saving{Rows: rows, By: by, Description: description})
	return h.saved(saved), h.handler.ToError(err)
}

// saved converts a row, removing secrets.
func (h *Backend) saved(c store.SavedContext) connector.Saved {
	hide := h.App.Logs.Redactor()
	return connector.Saved{ID: c.ID, Agent: c.Agent, Description: hide.Text(c.Description), Summary: hide.Text(c.Summary), By: c.By, At: c.At,
		Messages: c.Messages, Quiet: !c.Quiet.IsZero()}
}

// SavedContexts implements connector.Conversations.
func (h *Backend) SavedContexts(ctx context.Context, agent, place string) ([]connector.Saved, error) {
	found, err := h.DB.SavedContexts(ctx, store.ContextFilter{Agent: agent, Transport: h.Platform.Name, Place: place})
	out := make([]connector.Saved, 0, len(found))
	for _, c := range found {
		out = append(out, h.saved(c))
	}
	return out, h.handler.ToError(err)
}

// RestoreContext implements connector.Conversations.
func (h *Backend) RestoreContext(ctx context.Context, place, id string, rows []journal.Thread, by chat.Principal) (connector.Restored, error) {
	saved, err := h.App.Contexts.Named(ctx, store.ContextFilter{Transport: h.Platform.Name, Place: place}, id)
	if err != nil {
		return connector.Restored{}, h.handler.ToError(err)
	}
	var own []journal.Thread
	for _, row := range rows {
		if row.Agent == saved.Agent {
			own = append(own, row)
		}
	}
	out, err := h.App.Contexts.Restore(ctx, h.App.Running(), saved, own, by.String())
	return connector.Restored{Saved: h.saved(saved), Conversations: out.Conversations, Messages: out.Messages, Cleared: out.Cleared, LeftOut: out.LeftOut}, h.handler.ToError(err)
}

// maxRunEvents limits how much of one run is read.
const maxRunEvents = 20_000

// RunEvents implements connector.Conversations.
func (h *Backend) RunEvents(ctx context.Context, thread chat.ThreadID, run string) ([]chat.Event, error) {
	runs, err := h.DB.RunsOf(ctx, thread, 200)
	if err != nil {
		return nil, err
	}
	var out []chat.Event
	for _, r := range runs {
		id := r.Start.Body.(chat.RunStarted).Run
		if run != "" && id != run {
			continue
		}
		for ev, err := range h.DB.AllEvents(ctx, thread, r.Start.Seq-1) {
			if err != nil {
				return nil, err
			}
			out = append(out, ev)
			end, over := ev.Body.(chat.RunEnded)
			if over && end.Run == id || len(out) == maxRunEvents {
				break
			}
		}
		return out, nil
	}
	return nil, nil
}

// RunOf implements connector.Conversations.
func (h *Backend) RunOf(ctx context.Context, thread chat.ThreadID, seq int64) (string, error) {
	seqs, err := h.DB.Seqs(ctx, thread, chat.KindTook, seq, 0, 500)
	if err != nil {
		return "", err
	}
	for _, at := range seqs {
		ev, err := h.DB.Event(ctx, thread, at)
		if err != nil {
			return "", err
		}
		if took, ok := ev.Body.(chat.Took); ok && slices.Contains(took.Seqs, seq) {
			return took.Run, nil
		}
	}
	return "", nil
}

// WindowUse implements connector.Conversations.
func (h *Backend) WindowUse(ctx context.Context, thread chat.ThreadID) (int, error) {
	row, err := h.DB.Thread(ctx, thread)
	if err != nil {
		return 0, err
	}
	log, err := h.App.Service.LogAt(ctx, thread, row.Next-1)
	if err != nil {
		return 0, err
	}
	return log.Tokens(), nil
}

// Defaults implements connector.Conversations.
func (h *Backend) Defaults(ctx context.Context, agent room.Agent, in room.Channel) (model, profile string) {
	bot, _, err := h.App.Settings.BotAt(ctx, agent, in.Guild, in.ID)
	if err != nil {
		own := h.handler.Defaults(agent.Name)
		return own.Model, own.Permissions
	}
	if model, err = h.App.Models.Name("", bot.ContinuationModel); err != nil {
		model = bot.ContinuationModel
	}
	return model, bot.Permissions
}

// PromptSources implements connector.Conversations.
func (h *Backend) PromptSources(_ context.Context, hash string) ([]string, error) {
	return h.App.Service.PromptSources(hash)
}

// ForkInto implements connector.Conversations.
func (h *Backend) ForkInto(ctx context.Context, from journal.Thread, into chat.ThreadID, by chat.Principal, atSeq int64) (int, error) {
	made, err := h.handler.Standing(ctx, from.ID)
	if err != nil {
		return 0, h.handler.ToError(err)
	}
	if err := h.App.Service.Fork(ctx, from, into, by, atSeq, made.Terms); err != nil {
		return 0, h.handler.ToError(err)
	}
	row, err := h.DB.Thread(ctx, into)
	if err != nil {
		return 0, h.handler.ToError(err)
	}
	lines, err := h.App.Service.LinesUpTo(ctx, into, row.Next-1)
	return len(lines), h.handler.ToError(err)
}

// ApprovalDetails implements connector.Approver.
func (h *Backend) ApprovalDetails(ctx context.Context, id string) (operations.Approval, error) {
	a, err := h.DB.Approval(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return operations.Approval{}, operation.Errorf(operation.NotFound, "this approval no longer exists")
	}
	return h.handler.Approval(ctx, operation.Caller{}, a), h.handler.ToError(err)
}

// Redact implements connector.Conversations.
func (h *Backend) Redact(text string) string { return h.App.Logs.Redactor().Text(text) }

// pricing returns the prices of an agent's tokens, for showing an active run.
func (h *Backend) pricing(bot *config.Bot) func(model string, u chat.Usage) int64 {
	models, err := h.App.Models.For(bot.Vendors)
	if err != nil {
		return nil
	}
	prices := runsetup.PriceOf(models, bot)
	return func(model string, u chat.Usage) int64 {
		price, _ := prices(model)
		return price.Cost(u)
	}
}
