package acp

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/approval"
)

// The answers to an approval in the editor.
const (
	once     = "allow"
	sitting  = "allow_session"
	keep     = "keep_" // and the number of the step
	never    = "reject"
	mostKept = 2 // offered steps; more would hide the rest
)

// ask shows an approval in the editor. It returns at once.
func (s *session) ask(id string) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	if s.approvals[id] != nil {
		s.mu.Unlock()
		cancel()
		return
	}
	s.approvals[id] = cancel
	s.mu.Unlock()
	s.asking.Go(func() {
		defer cancel()
		s.await(ctx, id)
	})
}

// answered withdraws an approval that was answered elsewhere.
func (s *session) answered(id string) {
	s.mu.Lock()
	cancel := s.approvals[id]
	delete(s.approvals, id)
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// await waits for the person's answer, unless somebody else answers.
func (s *session) await(ctx context.Context, id string) {
	select { // an editor that loads a session is asked after its history was sent
	case <-s.caughtUp:
	case <-ctx.Done():
		return
	}
	a, err := s.inner.Approval(ctx, id)
	if err != nil || a.State != approval.Open {
		return
	}
	steps := s.steps(ctx, id)
	response, err := s.agent.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{SessionId: s.id(), ToolCall: s.asked(a), Options: options(steps)})
	if ctx.Err() != nil {
		return // answered elsewhere, or the run ended
	}
	if err == nil && response.Outcome.Selected != nil {
		err = s.choose(ctx, id, string(response.Outcome.Selected.OptionId), steps)
	} else {
		why := "the question was closed in the editor"
		if err != nil {
			why = "the editor could not ask: " + err.Error()
		}
		err = s.inner.Answer(ctx, id, false, why, false)
	}
	if err != nil && ctx.Err() == nil {
		s.agent.log.Warn("answer an approval", "session", s.inner.ID(), "approval", id, "error", err)
	}
}

// steps are the rules that an approval could keep permanently.
func (s *session) steps(ctx context.Context, id string) []approval.Step {
	always, err := s.inner.Propose(ctx, id)
	if err != nil || always.Never != "" {
		return nil
	}
	return always.Steps[:min(len(always.Steps), mostKept)]
}

func options(steps []approval.Step) []sdk.PermissionOption {
	out := []sdk.PermissionOption{{OptionId: once, Name: "Allow once", Kind: sdk.PermissionOptionKindAllowOnce},
		{OptionId: sitting, Name: "Allow in this session", Kind: sdk.PermissionOptionKindAllowAlways}}
	for i, step := range steps {
		out = append(out, sdk.PermissionOption{OptionId: sdk.PermissionOptionId(keep + strconv.Itoa(i)), Name: "Always: " + step.Means, Kind: sdk.PermissionOptionKindAllowAlways})
	}
	return append(out, sdk.PermissionOption{OptionId: never, Name: "Reject", Kind: sdk.PermissionOptionKindRejectOnce})
}

// choose applies the person's choice; an unknown choice is a denial.
func (s *session) choose(ctx context.Context, id, choice string, steps []approval.Step) error {
	switch choice {
	case once:
		return s.inner.Answer(ctx, id, true, "", false)
	case sitting:
		return s.inner.Answer(ctx, id, true, "", true)
	}
	if number, ok := strings.CutPrefix(choice, keep); ok {
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(steps) {
			return s.inner.Keep(ctx, id, steps[i].Rules)
		}
	}
	return s.inner.Answer(ctx, id, false, "", false)
}

// asked is the pending call, with everything that a person needs to decide.
func (s *session) asked(a approval.Approval) sdk.ToolCallUpdate {
	title := cmp.Or(s.inner.Label(a.Call.Name, a.Call.Args), a.Call.Name)
	kind := kindOf(a.Call.Name)
	pending := sdk.ToolCallStatusPending
	out := sdk.ToolCallUpdate{ToolCallId: callID(a.Run, a.Call.ID), Title: &title, Kind: &kind, Status: &pending, RawInput: rawInput(a.Call.Args),
		Content: diffs(a.Preview, s.translate.dir), Locations: locations(a.Call.Args, s.translate.dir)}
	var words []string
	if a.Reason != "" {
		words = append(words, a.Reason)
	}
	if a.Again != "" {
		words = append(words, "Asked again: "+a.Again)
	}
	if len(out.Content) == 0 {
		for _, action := range a.Actions {
			words = append(words, "`"+strings.ReplaceAll(action, "`", "'")+"`")
		}
	}
	if a.Rule != "" {
		words = append(words, fmt.Sprintf("Rule: `%s`", strings.ReplaceAll(a.Rule, "`", "'")))
	}
	if len(words) > 0 {
		out.Content = append(out.Content, sdk.ToolContent(sdk.TextBlock(strings.Join(words, "\n\n"))))
	}
	return out
}
