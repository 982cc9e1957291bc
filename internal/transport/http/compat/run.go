package compat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// run is one completion: the run that answers one prompt.
type run struct {
	executor   operation.Executor
	by         operation.Caller
	session    string
	ownSession bool   // the session was made for this completion
	again      bool   // the same request with the same key came before
	key        string // its Idempotency-Key: if the request comes again, it continues this run
	seq        int64
	id         string // of the run, once it has started
	called     bool   // a tool was called, and a retry would call it again

	step, attempt int
	sent          string // the part of this step's text that was sent
	sentAny       bool   // something was sent at all
	complete      bool   // this step's text is complete
}

// outcome is how a run ended.
type outcome struct {
	finish string
	usage  feed.Usage
}

// maxImages is the limit of one message.
const maxImages = 10

// completions serves POST /v1/chat/completions.
func (d *handler) completions(w http.ResponseWriter, r *http.Request) {
	if _, err := caller(r.Context()); err != nil { // before the body is read
		d.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.MaxDuration)
	defer cancel()
	control := http.NewResponseController(w)
	a, err := readRequest(w, r)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	// A run takes longer than ordinary requests; each write sets its own deadline.
	_ = control.SetReadDeadline(time.Time{}) // writers that cannot set one have none
	_ = control.SetWriteDeadline(time.Time{})
	one, agent, err := d.start(ctx, a)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	w.Header().Set(SessionHeader, one.session)
	if one.again {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	out := &response{w: w, control: control, heartbeat: d.Heartbeat, stream: a.Stream, id: "chatcmpl-" + one.session + "-" + strconv.FormatInt(one.seq, 10),
		model: modelPrefix + agent.Name, created: time.Now().Unix(), usage: a.StreamOptions != nil && a.StreamOptions.IncludeUsage}
	end, err := one.stream(ctx, out)
	gone := r.Context().Err() != nil || out.disconnected
	// A client that sent a key may come back for the answer.
	if ctx.Err() != nil && !gone || gone && one.key == "" {
		one.abort(ctx)
	}
	if !one.mayRepeat() {
		w.Header().Set(retryHeader, "false") // has no effect once a stream has started, and clients do not retry then
	}
	switch {
	case gone:
		return
	case ctx.Err() != nil:
		err = operation.Errorf(operation.Unavailable, "the run took longer than %s and was stopped", d.MaxDuration)
	}
	if err != nil && !out.started {
		d.fail(w, r, err)
		return
	}
	out.finish(end, err)
}

// start sends the prompt, in a new session or in the one that the request names.
func (d *handler) start(ctx context.Context, a request) (*run, operations.Agent, error) {
	agent, err := d.agentByModel(ctx, a.Model)
	if err != nil {
		return nil, agent, err
	}
	by, err := caller(ctx)
	if err != nil {
		return nil, agent, err
	}
	one := &run{executor: d.Executor, by: by, key: a.key, session: a.Metadata[sessionKey], step: -1, complete: true}
	if a.key != "" { // two requests with one key must not both start
		d.beginning.Lock()
		defer d.beginning.Unlock()
	}
	if err := d.sameRequest(ctx, by, a); err != nil {
		return nil, agent, err
	}
	if one.session == "" {
		made, err := operations.CreateSession.Call(ctx, d.Executor, by, operations.NewSession{Agent: agent.Name, History: a.history(), Key: sessionKeyOf(a.key), Attended: true})
		if err != nil {
			return nil, agent, err
		}
		one.session, one.ownSession = made.SessionID, true
	} else {
		there, err := operations.GetSession.Call(ctx, d.Executor, by, operations.SessionRef{ID: one.session})
		if err != nil {
			return nil, agent, err
		}
		if there.Agent != agent.Name {
			return nil, agent, operation.InvalidField("model", "session %s belongs to agent/%s", one.session, there.Agent)
		}
	}
	message := operations.Message{ID: one.session, Message: a.prompt().text, Key: a.key}
	if len(a.prompt().images) > maxImages {
		return nil, agent, operation.InvalidField("messages", "at most %d images can be sent with one message", maxImages)
	}
	for i, image := range a.prompt().images {
		file, err := operations.Attach.Call(ctx, d.Executor, by, operations.NewAttachment{ID: one.session, File: operation.Upload(fmt.Sprintf("picture-%d", i+1), bytes.NewReader(image))})
		if err != nil {
			return nil, agent, err
		}
		message.Attachments = append(message.Attachments, file.ID)
	}
	said, err := operations.Say.Call(ctx, d.Executor, by, message)
	one.seq, one.again = said.Seq, said.Again
	return one, agent, err
}

// sessionKeyOf keeps keys of completions distinct from those of sessions created through the API.
func sessionKeyOf(key string) string {
	if key == "" {
		return ""
	}
	return "v1/" + key
}

// sameRequest rejects a key that was used for another request: the client would get that request's answer.
func (d *handler) sameRequest(ctx context.Context, by operation.Caller, a request) error {
	if a.key == "" || d.Memory == nil {
		return nil
	}
	who := by.Principal.String()
	// The first digest stays, so two simultaneous requests see the same one.
	if err := d.Memory.KeepAnswer(ctx, who, a.key, completionsRoute, a.digest, http.StatusOK, nil); err != nil {
		return err
	}
	digest, _, _, err := d.Memory.RecallAnswer(ctx, who, a.key, completionsRoute)
	if err == nil && digest != a.digest {
		err = &runError{status: http.StatusUnprocessableEntity, kind: "invalid_request_error", code: "key_reused", pointless: true,
			message: "this Idempotency-Key was used for another request; use a new key for a new request"}
	}
	return err
}

// mayRepeat reports whether the client can send the request again without doing anything twice. With a key it would only
// get the same answer; in a session that continues, its message would be there twice.
func (o *run) mayRepeat() bool { return o.key == "" && o.ownSession && !o.called }

// abort ends the run. In a shared session it waits until the run is known, because it could otherwise end somebody else's.
func (o *run) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if o.id != "" || o.ownSession {
		_, _ = operations.Abort.Call(ctx, o.executor, o.by, operations.AbortRequest{ID: o.session, All: o.ownSession}) // on an error the run ends at its limits
	}
}

// stream sends the run's text until it ends or needs approval.
func (o *run) stream(ctx context.Context, out *response) (outcome, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	items := make(chan streamItem)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(items)
		for item, err := range operations.Watch.Follow(watching, o.executor, o.by, operations.WatchRequest{ID: o.session, After: o.seq - 1}) {
			select {
			case items <- streamItem{item, err}:
			case <-watching.Done():
				return
			}
		}
	}()
	defer func() { stop(); <-done }()
	beat := time.NewTicker(out.heartbeat)
	defer beat.Stop()
	for !out.disconnected {
		select {
		case s, ok := <-items:
			switch {
			case !ok:
				return outcome{}, operation.Errorf(operation.Unavailable, "the stream of the session ended unexpectedly; try again")
			case s.err != nil:
				return outcome{}, s.err
			}
			if end, over, err := o.handle(ctx, s.item, out); over || err != nil {
				return end, err
			}
		case <-beat.C:
			out.sendHeartbeat()
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
	return outcome{}, nil
}

type streamItem struct {
	item feed.Item
	err  error
}

// handle processes one item and reports whether it was the last.
func (o *run) handle(ctx context.Context, item feed.Item, out *response) (end outcome, over bool, err error) {
	switch it := item.(type) {
	case feed.Trace:
		o.noteRun(it)
		return outcome{}, false, nil
	case feed.Refused:
		if it.PromptSeq == o.seq {
			return outcome{}, true, operation.Errorf(operation.Busy, "the prompt was not accepted: %s", it.Reason)
		}
		return outcome{}, false, nil
	}
	if o.id == "" || item.Header().Run != o.id {
		return outcome{}, false, nil // of another run
	}
	switch it := item.(type) {
	case feed.ToolCall:
		o.called = true
	case feed.TextDelta:
		o.delta(it, out)
	case feed.AssistantMessage:
		o.message(it, out)
	case feed.ApprovalRequired:
		o.add(o.approvalText(ctx, it), out)
		return outcome{finish: "stop"}, true, nil
	case feed.Completed:
		if it.Text != "" && (!o.sentAny || it.StopReason != "done") {
			o.add(it.Text, out)
		}
		return outcome{finishReason(it.StopReason), it.Usage}, true, nil
	case feed.Error:
		return outcome{}, true, runFailed(it)
	}
	return outcome{}, false, nil
}

// noteRun remembers which run answers the prompt.
func (o *run) noteRun(it feed.Trace) {
	var data struct {
		Run  string  `json:"run"`
		Seqs []int64 `json:"seqs"`
	}
	if o.id == "" && it.Kind == "took" && json.Unmarshal(it.Data, &data) == nil && slices.Contains(data.Seqs, o.seq) {
		o.id = data.Run
	}
}

// startText resets the text for another step or attempt.
func (o *run) startText(step, attempt int) {
	if step != o.step || attempt != o.attempt {
		o.step, o.attempt, o.sent, o.complete = step, attempt, "", false
	}
}

// delta sends the new part of a delta. After a gap it sends nothing: the message brings the rest.
func (o *run) delta(it feed.TextDelta, out *response) {
	if it.Step < o.step || it.Step == o.step && it.Attempt < o.attempt {
		return
	}
	o.startText(it.Step, it.Attempt)
	have := len(o.sent)
	if o.complete || it.Offset < 0 || it.Offset > have || it.Offset+len(it.Text) <= have {
		return
	}
	o.text(it.Text[have-it.Offset:], out)
}

// message sends what the deltas left out.
func (o *run) message(it feed.AssistantMessage, out *response) {
	o.startText(it.Step, it.Attempt)
	if !strings.HasPrefix(it.Text, o.sent) {
		o.sent = "" // the final text differs; what was sent cannot be taken back
	}
	o.text(it.Text[len(o.sent):], out)
	o.complete = true
}

func (o *run) text(text string, out *response) {
	if text == "" {
		return
	}
	if o.sent == "" && o.sentAny {
		out.text("\n\n")
	}
	o.sent += text
	o.sentAny = true
	out.text(text)
}

// add appends a text that is not part of the answer.
func (o *run) add(text string, out *response) {
	o.sent = ""
	o.text(text, out)
}

// approvalText lists the pending approvals and says how to answer them.
func (o *run) approvalText(ctx context.Context, it feed.ApprovalRequired) string {
	lines := []string{"This needs approval before it can continue:"}
	list, err := operations.ListApprovals.Call(ctx, o.executor, o.by, operations.ApprovalQuery{Session: o.session})
	if err != nil || len(list.Items) == 0 {
		list.Items = []operations.Approval{{ID: it.ApprovalID, Label: it.Label, Tool: it.Tool}}
	}
	for _, q := range list.Items {
		what := cmp.Or(q.Label, q.Tool)
		lines = append(lines, fmt.Sprintf("- %s (approval %s)", what, q.ID))
	}
	return strings.Join(append(lines, fmt.Sprintf("Approve it on the web page or with `chorus approvals approve ID`. The session is %s; "+
		"continue it by sending the header %s.", o.session, SessionHeader)), "\n")
}

func finishReason(reason string) string {
	if reason == "limit" {
		return "length"
	}
	return "stop"
}
