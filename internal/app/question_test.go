package app

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/polltest"
	"chorus/internal/runsetup"
)

// What a model is asked outside of a run's requests is charged as those are: also if the answer is cut off, to the run that began it all, and
// within what the run may spend.
func TestQuestionsAreChargedLikeRequests(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, filepath.Join(home, "config", "shared.yaml"), "prices:\n  demo/script: {input: 3, output: 15}\nbudgets:\n  task: 0.05\n")
	a := openNode(t, filepath.Join(t.TempDir(), "a.db"), home)
	const thread = chat.ThreadID("web:main:one@chorus")
	bot, err := a.Settings.BotFor(journal.Thread{ID: thread, Agent: "chorus", Place: "main"})
	if err != nil {
		t.Fatal(err)
	}
	models, err := a.Models.For(bot.Vendors)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, script string, entry ledger.Entry, most ledger.Nanos) (chat.Said, ledger.Entry, error) {
		t.Helper()
		msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(script))
		if err != nil {
			t.Fatal(err)
		}
		entry.Step, entry.Attempt, entry.Thread, entry.Agent, entry.Payer = 1, 1, thread, "chorus", a.Me()
		q := runsetup.Question{Bot: bot, Models: models, Model: "demo/script", Entry: entry, Yes: true, Within: ledger.Within(entry.Run, chat.Terms{MaxCost: most}), Request: func(int) (model.Request, error) {
			return model.Request{Head: &model.Head{System: "Answer."}, Messages: []*model.Message{msg}, Settings: chat.Settings{MaxTokens: 1000}}, nil
		}}
		said, _, err := q.Ask(ctx, a.DB)
		rows, lerr := a.DB.LedgerEntries(t.Context(), entry.Run)
		if lerr != nil {
			t.Fatal(lerr)
		}
		if len(rows) == 0 {
			return said, ledger.Entry{}, err
		}
		return said, rows[0], err
	}

	said, row, err := ask(t.Context(), "!say yes\n!usage in=100 out=10", ledger.Entry{Run: "whole"}, 0)
	if err != nil || said.Blocks.Text() != "yes" || row.How != ledger.ByUsage || row.Settled != 100*3000+10*15000 {
		t.Errorf("%+v, %+v, %v", said, row, err)
	}
	said, row, err = ask(t.Context(), "!say 0123456789\n!cut", ledger.Entry{Run: "cut"}, 0)
	if err == nil || said.Error == nil || row.How != ledger.Estimate || row.Usage.Output == 0 || row.Usage.Input == 0 || row.Settled == 0 {
		t.Errorf("cut off: %+v, %+v, %v", said, row, err)
	}
	late, stop := context.WithCancel(t.Context())
	go func() {
		defer stop()
		polltest.Soon(func() bool {
			rows, err := a.DB.LedgerEntries(t.Context(), "late")
			return err == nil && len(rows) == 1
		})
	}()
	if _, row, err = ask(late, "!wait", ledger.Entry{Run: "late"}, 0); err == nil || row.How != ledger.Estimate || row.Usage.Input == 0 {
		t.Errorf("its time ran out: %+v, %v", row, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, row, err = ask(over, "!wait", ledger.Entry{Run: "over"}, 0); err == nil || row.Run != "" {
		t.Errorf("asked when the time was over: %+v, %v", row, err)
	}
	if _, row, err = ask(t.Context(), "!fail auth", ledger.Entry{Run: "refused"}, 0); err == nil || row.Settled != 0 || row.How != ledger.ByUsage {
		t.Errorf("refused: %+v, %v", row, err)
	}

	// 1,000 tokens cost 1.5 cents at most, and the task may cost 5: its fourth one is refused, whichever run of it asks.
	var refusal *ledger.Refusal
	for _, run := range []string{"task", "part-1", "part-2"} {
		entry := ledger.Entry{Run: run, Root: "task"}
		if run == "task" {
			entry.Root = ""
		}
		if _, _, err := ask(t.Context(), "!say yes\n!usage in=1 out=1000", entry, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := ask(t.Context(), "!say yes", ledger.Entry{Run: "part-3", Root: "task"}, 0); !errors.As(err, &refusal) {
		t.Errorf("a part of a task that is out of money: %v", err)
	}
	if _, _, err := ask(t.Context(), "!say yes", ledger.Entry{Run: "small"}, 1_000_000); !errors.As(err, &refusal) {
		t.Errorf("a run that may spend a tenth of a cent: %v", err)
	}
}
