package agent_test

import (
	"context"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/agent/record"
	"chorus/internal/chat"
	"chorus/internal/ledger"
)

// stingy is a host whose budget ends before the second request.
type stingy struct {
	host
	asked int
}

func (s *stingy) Commit(ctx context.Context, b record.Batch) ([]chat.Event, error) {
	for _, ev := range b.Events {
		if _, ok := ev.Body.(chat.Asked); !ok {
			continue
		}
		if s.asked++; s.asked > 1 {
			return nil, &ledger.Refusal{Stand: ledger.Stand{Limit: ledger.Limit{Ceiling: ledger.Ceiling{Scope: ledger.Agent, Period: ledger.Day}, Subject: "main"}}, Want: 5}
		}
	}
	return s.host.Commit(ctx, b)
}

// A budget that forbids the next request ends the run with its sentence. The result
// that was to travel with the request is written all the same, and once.
func TestBudgetEndsTheRun(t *testing.T) {
	t.Parallel()
	h, did := &stingy{}, &act{}
	h.guest(prompt())
	log := fold(t, &h.host)
	state, err := newAgent(t, did, call(1), chat.TextBlocks("never")).Run(context.Background(), log, h)
	if err != nil || state != agent.Finished || len(did.ran) != 1 {
		t.Fatal(state, err, did.ran)
	}
	if got := h.kinds(); got != "received run_started took asked said tool_began tool_ran run_ended" {
		t.Fatal(got)
	}
	end := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
	if end.Reason != chat.EndBudget || !strings.Contains(end.Text, "the budget of agent main for one day does not allow this call") {
		t.Errorf("ended %+v", end)
	}
}
