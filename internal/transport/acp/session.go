package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/chat"
	"chorus/internal/transport/repl"
)

// session is one that an editor has open. One goroutine follows the journal and sends what it finds; prompts wait for it.
type session struct {
	agent    *agent
	inner    Session
	show     bool
	head     int64
	caughtUp chan struct{} // everything from before it was opened was sent
	ended    chan struct{} // following the journal has ended
	stop     context.CancelFunc
	ctx      context.Context
	asking   sync.WaitGroup

	translate *translator // of the following goroutine
	commands  func() []sdk.AvailableCommand

	// sending is held from before a prompt is sent until its number is known, so that the following goroutine does not take
	// it for somebody else's.
	sending sync.Mutex

	mu        sync.Mutex
	own       map[int64]bool
	waiting   []*waiter
	approvals map[string]context.CancelFunc // approvals that the editor currently asks, by their ids
	err       error
}

// waiter is a prompt that was sent.
type waiter struct {
	seq       int64
	run       string // the run that took it; "": none yet
	cancelled bool
	done      chan outcome // gets one
}

// outcome is the result of a prompt.
type outcome struct {
	response sdk.PromptResponse
	err      error
}

func newSession(a *agent, inner Session, head int64, show bool) *session {
	s := &session{agent: a, inner: inner, show: show, head: head, caughtUp: make(chan struct{}), ended: make(chan struct{}),
		own: map[int64]bool{}, approvals: map[string]context.CancelFunc{}}
	s.ctx, s.stop = context.WithCancel(a.ctx)
	s.translate = newTranslator(inner.Label, inner.Info().Dir)
	s.commands = sync.OnceValue(func() []sdk.AvailableCommand { return availableCommands(s.ctx, inner) })
	return s
}

func (s *session) id() sdk.SessionId { return sdk.SessionId(s.inner.ID()) }

// start follows the journal from its beginning.
func (s *session) start() {
	if s.head == 0 {
		close(s.caughtUp)
	}
	go func() {
		err := s.follow()
		s.mu.Lock()
		s.err = cmp.Or(err, errors.New("the session was closed"))
		left := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		for _, w := range left {
			w.done <- outcome{err: &sdk.RequestError{Code: -32603, Message: s.failure().Error()}}
		}
		close(s.ended)
	}()
}

func (s *session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *session) close() error {
	s.stop()
	<-s.ended
	s.asking.Wait()
	return s.inner.Close()
}

// goOn continues interrupted work, and asks again about pending approvals.
func (s *session) goOn() { s.inner.GoOn() }

func (s *session) follow() error {
	open := map[string]bool{} // approvals without an answer so far
	past := s.head > 0
	for item, err := range s.inner.Watch(s.ctx, 0) {
		if err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			return err
		}
		if item.Event != nil {
			switch b := item.Event.Body.(type) {
			case chat.ApprovalAsked:
				open[b.ID] = true
			case chat.ApprovalAnswered:
				delete(open, b.ID)
			case chat.RunEnded:
				clear(open)
			}
		}
		s.item(item, past)
		if past && seqOf(item) >= s.head {
			past = false
			close(s.caughtUp)
			for id := range open {
				s.ask(id)
			}
		}
	}
	return nil
}

// seqOf returns the number of an item, even of one that a terminal ignores.
func seqOf(item repl.Item) int64 {
	if item.Event != nil {
		return item.Event.Seq
	}
	var head struct {
		Seq int64 `json:"seq"`
	}
	for _, line := range item.Lines {
		if json.Unmarshal(line, &head) == nil && head.Seq > 0 {
			return head.Seq
		}
	}
	return 0
}

// item sends one item, and notifies those who wait for it. Of the past, only messages are sent.
func (s *session) item(item repl.Item, past bool) {
	if item.Event == nil {
		for _, u := range s.translate.live(item.Live) {
			s.send(u)
		}
		return
	}
	e := *item.Event
	mine := false
	switch b := e.Body.(type) {
	case chat.Received:
		mine = !past && s.isOwn(e.Seq)
	case chat.Took:
		s.took(b)
	case chat.ApprovalAsked:
		if !past {
			s.ask(b.ID)
		}
	case chat.ApprovalAnswered:
		s.answered(b.ID)
	}
	for _, u := range s.translate.event(e, mine) {
		if s.show || !past {
			s.send(u)
		}
	}
	switch b := e.Body.(type) {
	case chat.Refused:
		s.refused(b)
	case chat.Deleted:
		s.refused(chat.Refused{Seq: b.Seq, Why: "it was cancelled"})
	case chat.RunEnded:
		s.runEnded(b, past)
	}
}

func (s *session) isOwn(seq int64) bool {
	s.sending.Lock() // wait for a prompt that is being sent
	defer s.sending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[seq]
}

func (s *session) send(u sdk.SessionUpdate) {
	if err := s.agent.conn.SessionUpdate(s.ctx, sdk.SessionNotification{SessionId: s.id(), Update: u}); err != nil && s.ctx.Err() == nil {
		s.agent.log.Warn("send an update", "session", s.inner.ID(), "error", err)
	}
}

// prompt sends a message and waits for the end of the run that takes it.
func (s *session) prompt(ctx context.Context, blocks []sdk.ContentBlock) (sdk.PromptResponse, error) {
	s.sending.Lock()
	said, err := s.read(ctx, blocks)
	if err != nil {
		s.sending.Unlock()
		return sdk.PromptResponse{}, refusal(err)
	}
	if name, ok := s.commandOf(said); ok {
		s.sending.Unlock()
		return s.command(ctx, name, said)
	}
	if ctx.Err() != nil { // cancelled before it was sent
		s.sending.Unlock()
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	}
	receipt, err := s.inner.Send(s.ctx, said)
	if err != nil || receipt.Refused != "" && receipt.Seq == 0 {
		s.sending.Unlock()
		if err == nil {
			err = errors.New(receipt.Refused)
		}
		if _, ok := errors.AsType[*AuthError](err); ok {
			return sdk.PromptResponse{}, refusal(err)
		}
		return sdk.PromptResponse{}, &sdk.RequestError{Code: -32603, Message: err.Error()}
	}
	w := &waiter{seq: receipt.Seq, done: make(chan outcome, 1)}
	s.mu.Lock()
	s.own[receipt.Seq] = true
	s.waiting = append(s.waiting, w)
	gone := s.err != nil
	s.mu.Unlock()
	s.sending.Unlock()
	if gone {
		return sdk.PromptResponse{}, &sdk.RequestError{Code: -32603, Message: s.failure().Error()}
	}
	select { // not for ctx: an editor cancels with session/cancel, and still gets the end
	case out := <-w.done:
		return out.response, out.err
	case <-s.ended:
		select {
		case out := <-w.done:
			return out.response, out.err
		default:
			return sdk.PromptResponse{}, &sdk.RequestError{Code: -32603, Message: s.failure().Error()}
		}
	}
}

// commandOf returns the slash command of a prompt; an unknown one is a prompt like any other.
func (s *session) commandOf(said string) (string, bool) {
	name, _, _ := strings.Cut(strings.TrimSpace(said), " ")
	known := slices.ContainsFunc(s.commands(), func(c sdk.AvailableCommand) bool { return "/"+c.Name == name })
	return name, known
}

func (s *session) command(ctx context.Context, name, line string) (sdk.PromptResponse, error) {
	text, err := s.inner.Command(ctx, line)
	if err != nil {
		return sdk.PromptResponse{}, refusal(err)
	}
	s.send(sdk.UpdateAgentMessageText(fence(strings.TrimRight(text, "\n"))))
	switch name {
	case "/mode", "/model":
		if options := s.agent.options(ctx, s); len(options) > 0 {
			s.send(sdk.SessionUpdate{ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: options}})
		}
		if _, now := s.inner.Modes(); name == "/mode" && now != "" {
			s.send(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(now)}})
		}
	}
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

// cancelTime is how long the store may take to record the request to end a run.
const cancelTime = 10 * time.Second

// cancel ends the current run and withdraws waiting prompts.
func (s *session) cancel(ctx context.Context) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer done()
	s.sending.Lock() // includes a prompt that is being sent
	s.mu.Lock()
	for _, w := range s.waiting {
		w.cancelled = true
	}
	s.mu.Unlock()
	s.sending.Unlock()
	return s.inner.Abort(ctx, true)
}

// took records which run has a prompt. If the prompt was just cancelled, the run is ended.
func (s *session) took(b chat.Took) {
	again := false
	s.mu.Lock()
	for _, w := range s.waiting {
		if slices.Contains(b.Seqs, w.seq) {
			w.run = b.Run
			again = again || w.cancelled
		}
	}
	s.mu.Unlock()
	if again {
		if err := s.inner.Abort(s.ctx, false); err != nil && s.ctx.Err() == nil {
			s.agent.log.Warn("end a run", "session", s.inner.ID(), "error", err)
		}
	}
}

// settle removes the matching waiters and notifies them.
func (s *session) settle(meant func(*waiter) bool, out func(*waiter) outcome) {
	s.mu.Lock()
	var told []*waiter
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if meant(w) {
			told = append(told, w)
			return true
		}
		return false
	})
	s.mu.Unlock()
	for _, w := range told {
		w.done <- out(w)
	}
}

func (s *session) refused(b chat.Refused) {
	s.isOwn(b.Seq) // after it is known
	s.settle(func(w *waiter) bool { return w.seq == b.Seq }, func(w *waiter) outcome {
		if w.cancelled {
			return outcome{response: sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}}
		}
		return outcome{err: &sdk.RequestError{Code: -32603, Message: "not accepted: " + b.Why}}
	})
}

func (s *session) runEnded(b chat.RunEnded, past bool) {
	for _, cancel := range s.takeQuestions() {
		cancel()
	}
	found := false
	s.settle(func(w *waiter) bool { return w.run == b.Run }, func(w *waiter) outcome {
		found = true
		return s.ending(b, w.cancelled)
	})
	if !found && !past && b.Reason == chat.EndFailed { // of a run that nobody waits for
		s.send(sdk.UpdateAgentMessageText("\n\n" + failed(b)))
	}
}

func (s *session) takeQuestions() map[string]context.CancelFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.approvals
	s.approvals = map[string]context.CancelFunc{}
	return out
}

func failed(b chat.RunEnded) string {
	if b.Error != nil {
		return cmp.Or(b.Error.Message, b.Text, "the run failed")
	}
	return cmp.Or(b.Text, "the run failed")
}

// ending converts the end of a run.
func (s *session) ending(b chat.RunEnded, cancelled bool) outcome {
	total := b.Usage.Input + b.Usage.Output + b.Usage.CacheRead + b.Usage.CacheWrite
	response := sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn, Usage: &sdk.Usage{InputTokens: b.Usage.Input, OutputTokens: b.Usage.Output,
		CachedReadTokens: &b.Usage.CacheRead, CachedWriteTokens: &b.Usage.CacheWrite, TotalTokens: total}}
	switch b.Reason {
	case chat.EndAborted:
		response.StopReason = sdk.StopReasonCancelled
	case chat.EndLimit:
		response.StopReason = sdk.StopReasonMaxTurnRequests
		if s.translate.stop == chat.StopLength {
			response.StopReason = sdk.StopReasonMaxTokens
		}
	case chat.EndFailed:
		switch {
		case cancelled:
			response.StopReason = sdk.StopReasonCancelled
		case s.translate.stop == chat.StopRefused:
			response.StopReason = sdk.StopReasonRefusal
		default:
			return outcome{err: &sdk.RequestError{Code: -32603, Message: failed(b)}}
		}
	}
	return outcome{response: response}
}

func (s *session) modes() *sdk.SessionModeState {
	all, now := s.inner.Modes()
	if len(all) == 0 {
		return nil
	}
	out := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(now)}
	for _, m := range all {
		out.AvailableModes = append(out.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m.ID), Name: m.Name, Description: optional(m.About)})
	}
	return out
}
