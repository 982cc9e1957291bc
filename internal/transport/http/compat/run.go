package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/command"
	"chorus/internal/feed"
)

// run is one completion: the run that answers one prompt.
type run struct {
	service command.Service
	by      command.Caller
	session string
	fresh   bool // made for this completion alone
	seq     int64
	id      string // of the run, once it has begun

	step, attempt int
	shown         string // what of this step's text was given on
	said          bool   // something was given on at all
	whole         bool   // this step's text is complete
}

// turn is what a run came to.
type turn struct {
	finish string
	usage  feed.Usage
}

// maxPictures is what goes with one message.
const maxPictures = 10

// completions answers one request.
func (d *door) completions(w http.ResponseWriter, r *http.Request) {
	if _, err := caller(r.Context()); err != nil { // before anything that was sent is looked at
		d.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Longest)
	defer cancel()
	control := http.NewResponseController(w)
	a, err := read(w, r)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	// A run takes longer than an ordinary request; what is written has deadlines of its own.
	_ = control.SetReadDeadline(time.Time{}) // not every writer can, and then there is none
	_ = control.SetWriteDeadline(time.Time{})
	one, agent, err := d.begin(ctx, a)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	w.Header().Set(SessionHeader, one.session)
	out := &answer{w: w, control: control, heartbeat: d.Heartbeat, stream: a.Stream, id: "chatcmpl-" + one.session + "-" + strconv.FormatInt(one.seq, 10),
		model: prefix + agent.Name, created: time.Now().Unix(), usage: a.StreamOptions != nil && a.StreamOptions.IncludeUsage}
	end, err := one.follow(ctx, out)
	if ctx.Err() != nil || out.gone {
		one.abandon(ctx)
	}
	switch {
	case r.Context().Err() != nil || out.gone:
		return // nobody is there
	case ctx.Err() != nil:
		err = command.Errorf(command.Unavailable, "the run took longer than %s and was stopped", d.Longest)
	}
	if err != nil && !out.begun {
		d.fail(w, r, err)
		return
	}
	out.finish(end, err)
}

// begin gives the prompt, in a session of its own or the one that was named.
func (d *door) begin(ctx context.Context, a ask) (*run, command.Agent, error) {
	agent, err := d.find(ctx, a.Model)
	if err != nil {
		return nil, agent, err
	}
	by, err := caller(ctx)
	if err != nil {
		return nil, agent, err
	}
	one := &run{service: d.Service, by: by, session: a.Metadata[sessionKey], step: -1, whole: true}
	if one.session == "" {
		made, err := d.Service.CreateSession(ctx, by, command.NewSession{Agent: agent.Name, History: a.history()})
		if err != nil {
			return nil, agent, err
		}
		one.session, one.fresh = made.ID, true
	} else {
		there, err := d.Service.GetSession(ctx, by, one.session)
		if err != nil {
			return nil, agent, err
		}
		if there.Agent != agent.Name {
			return nil, agent, bad("model", "session %s is one with agent/%s", one.session, there.Agent)
		}
	}
	words := command.Words{Message: a.prompt().text}
	if len(a.prompt().pictures) > maxPictures {
		return nil, agent, bad("messages", "at most %d pictures go with one message", maxPictures)
	}
	for i, picture := range a.prompt().pictures {
		file, err := d.Service.Attach(ctx, by, one.session, fmt.Sprintf("picture-%d", i+1), bytes.NewReader(picture))
		if err != nil {
			return nil, agent, err
		}
		words.Attachments = append(words.Attachments, file.ID)
	}
	said, err := d.Service.Say(ctx, by, one.session, words)
	one.seq = said.Seq
	return one, agent, err
}

// abandon ends a run that nobody waits for any more. One that has not begun is only
// ended where nobody else's could be meant.
func (o *run) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if o.id != "" || o.fresh {
		_, _ = o.service.Abort(ctx, o.by, o.session, o.fresh) // it ends at its limits otherwise
	}
}

// follow gives the run's words on until it has ended or waits for somebody.
func (o *run) follow(ctx context.Context, out *answer) (turn, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	items := make(chan step)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(items)
		for item, err := range o.service.Watch(watching, o.by, o.session, o.seq-1) {
			select {
			case items <- step{item, err}:
			case <-watching.Done():
				return
			}
		}
	}()
	defer func() { stop(); <-done }()
	beat := time.NewTicker(out.heartbeat)
	defer beat.Stop()
	for !out.gone {
		select {
		case s, ok := <-items:
			switch {
			case !ok:
				return turn{}, command.Errorf(command.Unavailable, "the conversation was cut off; ask again")
			case s.err != nil:
				return turn{}, s.err
			}
			if end, over, err := o.take(ctx, s.item, out); over || err != nil {
				return end, err
			}
		case <-beat.C:
			out.beat()
		case <-ctx.Done():
			return turn{}, ctx.Err()
		}
	}
	return turn{}, nil
}

type step struct {
	item feed.Item
	err  error
}

// take handles one object and reports whether it was the last.
func (o *run) take(ctx context.Context, item feed.Item, out *answer) (end turn, over bool, err error) {
	switch it := item.(type) {
	case feed.Trace:
		o.took(it)
		return turn{}, false, nil
	case feed.Refused:
		if it.PromptSeq == o.seq {
			return turn{}, true, command.Errorf(command.Busy, "it was not taken: %s", it.Reason)
		}
		return turn{}, false, nil
	}
	if o.id == "" || item.Header().Run != o.id {
		return turn{}, false, nil // somebody else's
	}
	switch it := item.(type) {
	case feed.TextDelta:
		o.piece(it, out)
	case feed.AssistantMessage:
		o.message(it, out)
	case feed.ApprovalRequired:
		o.add(o.question(ctx, it), out)
		return turn{finish: "stop"}, true, nil
	case feed.Completed:
		if it.Text != "" && (!o.said || it.StopReason != "done") {
			o.add(it.Text, out)
		}
		return turn{finishOf(it.StopReason), it.Usage}, true, nil
	case feed.Error:
		kind := command.Failed
		if it.StopReason == "budget" {
			kind = command.Busy
		}
		return turn{}, true, command.Errorf(kind, "%s", it.Message)
	}
	return turn{}, false, nil
}

// took notes which run answers our prompt.
func (o *run) took(it feed.Trace) {
	var data struct {
		Run  string  `json:"run"`
		Seqs []int64 `json:"seqs"`
	}
	if o.id == "" && it.Kind == "took" && json.Unmarshal(it.Data, &data) == nil && slices.Contains(data.Seqs, o.seq) {
		o.id = data.Run
	}
}

// turnTo begins the text of another step or attempt.
func (o *run) turnTo(step, attempt int) {
	if step != o.step || attempt != o.attempt {
		o.step, o.attempt, o.shown, o.whole = step, attempt, "", false
	}
}

// piece gives on what is new of a delta; behind a gap, the message will fill it.
func (o *run) piece(it feed.TextDelta, out *answer) {
	if it.Step < o.step || it.Step == o.step && it.Attempt < o.attempt {
		return
	}
	o.turnTo(it.Step, it.Attempt)
	have := len(o.shown)
	if o.whole || it.Offset < 0 || it.Offset > have || it.Offset+len(it.Text) <= have {
		return
	}
	o.text(it.Text[have-it.Offset:], out)
}

// message gives on what the deltas have left out.
func (o *run) message(it feed.AssistantMessage, out *answer) {
	o.turnTo(it.Step, it.Attempt)
	if !strings.HasPrefix(it.Text, o.shown) {
		o.shown = "" // it came out differently; what was sent cannot be taken back
	}
	o.text(it.Text[len(o.shown):], out)
	o.whole = true
}

func (o *run) text(text string, out *answer) {
	if text == "" {
		return
	}
	if o.shown == "" && o.said {
		out.text("\n\n")
	}
	o.shown += text
	o.said = true
	out.text(text)
}

// add says something of ours behind what was said.
func (o *run) add(text string, out *answer) {
	o.shown = ""
	o.text(text, out)
}

// question says what waits for whose answer, and how to give it.
func (o *run) question(ctx context.Context, it feed.ApprovalRequired) string {
	lines := []string{"This cannot go on before somebody says yes to:"}
	list, err := o.service.Approvals(ctx, o.by, command.ApprovalQuery{Session: o.session})
	if err != nil || len(list.Items) == 0 {
		list.Items = []command.Approval{{ID: it.ApprovalID, Label: it.Label, Tool: it.Tool}}
	}
	for _, q := range list.Items {
		what := q.Label
		if what == "" {
			what = q.Tool
		}
		lines = append(lines, fmt.Sprintf("- %s (approval %s)", what, q.ID))
	}
	return strings.Join(append(lines, fmt.Sprintf("Answer it on the web page or with `chorus approvals approve ID`. The session is %s; "+
		"go on with it by sending the header %s.", o.session, SessionHeader)), "\n")
}

func finishOf(reason string) string {
	if reason == "limit" {
		return "length"
	}
	return "stop"
}
