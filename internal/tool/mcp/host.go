//lint:file-ignore SA1019 sampling is deprecated in newer versions of the protocol, and servers use it

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/approval"
)

// Host is what servers may ask of the run that uses them. call is the key of the tool call during which a
// server asks. A Host must be safe for concurrent use and obey ctx, which ends with that call.
type Host interface {
	// Ask puts a server's question to the person for whom the run works, and waits for the answer.
	Ask(ctx context.Context, call string, q Question) (Reply, error)
	// Sample makes a model answer for a server, if that is allowed, and charges it to the run.
	Sample(ctx context.Context, call string, s Sampling) (Sampled, error)
}

// Sampling is a request of a server to a model.
type Sampling struct {
	Server    string
	Action    string // as rules name it
	System    string
	Messages  []SampledMessage
	MaxTokens int
	Stop      []string
}

// SampledMessage is one text message of a Sampling.
type SampledMessage struct {
	Assistant bool
	Text      string
}

// Sampled is what the model answered.
type Sampled struct {
	Text  string
	Model string
	Cut   bool // it reached MaxTokens
}

const (
	// maxSampled is how many model answers a server may get within one call. The model has
	// no tools when it answers a server, so calls cannot nest deeper.
	maxSampled = 8
	// maxSampledText limits the text of one request for an answer.
	maxSampledText = 200_000
	// maxSampledTokens limits the length of an answer, whatever the server asks for.
	maxSampledTokens = 8192
	// maxWrong is how many answers may not fit the question before the server is told that there is none.
	maxWrong = 3
)

// SetHost sets who answers servers from now on; nil: nobody. A thread's runs
// follow one another, so each run sets its own host.
func (h *Hub) SetHost(host Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = host
}

func (h *Hub) currentHost() Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.host
}

// pending is a request in progress, with its deadline.
type pending struct {
	key     string // key of the tool call; "" if there is none
	ctx     context.Context
	limit   time.Duration
	timer   *time.Timer
	sampled int
}

// begin records a request, so that a question of the server can be assigned to it.
func (l *live) begin(p *pending) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, p)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, one := range l.calls {
			if one == p {
				l.calls = append(l.calls[:i:i], l.calls[i+1:]...)
				return
			}
		}
	}
}

var errNoCall = errors.New("requests are only allowed during a tool call")

// during returns the tool call in which a server asks something: the last one that began,
// because the protocol does not say. The call's deadline is paused while the server is
// answered, and the returned context ends with the call.
func (l *live) during(ctx context.Context) (*pending, context.Context, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.calls) - 1; i >= 0; i-- {
		p := l.calls[i]
		if p.key == "" || !p.timer.Stop() { // too late
			continue
		}
		within, cancel := context.WithCancel(p.ctx)
		stop := context.AfterFunc(ctx, cancel)
		return p, within, func() {
			stop()
			cancel()
			p.timer.Reset(p.limit)
		}, nil
	}
	return nil, nil, nil, errNoCall
}

// elicit answers a server's question. Any failure is reported as a
// cancellation: a server must not learn more.
func (l *live) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	cancelled := &sdk.ElicitResult{Action: "cancel"}
	host := l.srv.hub.currentHost()
	if host == nil || req.Params == nil {
		return cancelled, nil
	}
	call, within, end, err := l.during(ctx)
	if err != nil {
		return cancelled, nil
	}
	defer end()
	if req.Params.Mode == "url" {
		return &sdk.ElicitResult{Action: string(l.openPage(within, host, call.key, req.Params))}, nil
	}
	q := Question{Server: l.srv.Name, Message: multiline(req.Params.Message, 4000), Fields: fieldsOf(req.Params.RequestedSchema)}
	for range maxWrong {
		reply, err := host.Ask(within, call.key, q)
		switch {
		case err != nil:
			return cancelled, nil
		case reply.Action != Accept:
			return &sdk.ElicitResult{Action: string(reply.Action)}, nil
		}
		content, err := q.read(reply.Text)
		if err == nil {
			return &sdk.ElicitResult{Action: "accept", Content: content}, nil
		}
		q.Wrong = err.Error()
		q.Given, _ = approval.SplitAnswer(q.Asked(), reply.Text) // what cannot be parsed is filled in anew
	}
	return cancelled, nil
}

// openPage asks a person to open a page. We never open it ourselves and see nothing of what happens there.
// If the server reports meanwhile that the page is done, no answer is needed any more.
func (l *live) openPage(ctx context.Context, host Host, call string, p *sdk.ElicitParams) Action {
	page := pageOf(p.URL)
	if page == "" {
		return Cancel
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	l.pages[p.ElicitationID] = func() { cancel(errPageDone) }
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.pages, p.ElicitationID)
		l.mu.Unlock()
	}()
	reply, err := host.Ask(ctx, call, Question{Server: l.srv.Name, Message: multiline(p.Message, 4000), Page: page})
	switch {
	case errors.Is(context.Cause(ctx), errPageDone):
		return Accept
	case err != nil:
		return Cancel
	}
	return reply.Action
}

var errPageDone = errors.New("the page has done its part")

// pageDone handles a report that a page which a person was asked to open is done.
func (l *live) pageDone(id string) {
	l.mu.Lock()
	done := l.pages[id]
	l.mu.Unlock()
	if done != nil {
		done()
	}
}

// pagesWanted returns the pages that a server requires a person to open
// before a call, as named in the error it answered with.
func pagesWanted(err error) []*sdk.ElicitParams {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != sdk.CodeURLElicitationRequired {
		return nil
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(wire.Data, &data) != nil {
		return nil
	}
	return slices.DeleteFunc(data.Elicitations, func(p *sdk.ElicitParams) bool { return p == nil })
}

// withPages makes a request, and repeats it once a person has opened the pages that the server requires.
func (l *live) withPages(ctx context.Context, request func() error) error {
	for range maxWrong {
		err := request()
		wanted := pagesWanted(err)
		if len(wanted) == 0 {
			return err
		}
		for _, p := range wanted {
			p.Mode = "url"
			got, eerr := l.elicit(ctx, &sdk.ElicitRequest{Params: p})
			if eerr != nil || got.Action != string(Accept) {
				return errors.New("it wants a person to open a page first, and nobody did")
			}
		}
	}
	return errors.New("it wants a person to open a page first, again and again")
}

// sample makes a model answer for the server.
func (l *live) sample(ctx context.Context, req *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	host := l.srv.hub.currentHost()
	if host == nil || req.Params == nil {
		return nil, errors.New("no model can be asked now")
	}
	s := Sampling{Server: l.srv.Name, Action: "mcp__" + l.srv.key + "__@sample", System: req.Params.SystemPrompt, Stop: req.Params.StopSequences,
		MaxTokens: int(min(max(req.Params.MaxTokens, 1), maxSampledTokens))}
	size := len(s.System)
	for _, m := range req.Params.Messages {
		text, ok := m.Content.(*sdk.TextContent)
		if !ok {
			return nil, errors.New("only text can be sent to the model")
		}
		size += len(text.Text)
		s.Messages = append(s.Messages, SampledMessage{Assistant: m.Role == "assistant", Text: strings.ToValidUTF8(text.Text, "")})
	}
	if size > maxSampledText || len(s.Messages) == 0 {
		return nil, errors.New("there is nothing to answer, or too much")
	}
	call, within, end, err := l.during(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	l.mu.Lock()
	call.sampled++
	many := call.sampled > maxSampled
	l.mu.Unlock()
	if many {
		return nil, errors.New("a model was asked too often within one call")
	}
	got, err := host.Sample(within, call.key, s)
	if err != nil {
		return nil, err
	}
	stop := "endTurn"
	if got.Cut {
		stop = "maxTokens"
	}
	return &sdk.CreateMessageResult{Role: "assistant", Model: got.Model, Content: &sdk.TextContent{Text: got.Text}, StopReason: stop}, nil
}
