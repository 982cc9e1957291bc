package attempt

import (
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// Sender turns the requests of one run into bodies. It remembers the last request, so that
// it need not check the same messages again, and reuses its buffer.
type Sender struct {
	sent    []*model.Message // what the last request showed
	changed int              // the first message of the request before that differs in it; -1 if none
	digests model.Digests
	room    []byte // the last body's buffer, which the next one overwrites
}

// Check fits a request to the model and returns its digest. An error is a bug of ours.
func (s *Sender) Check(h model.Handle, req model.Request) (model.Request, string, error) {
	req.Model = h.Name
	if most := h.Entry.MaxOutput; most > 0 && req.Settings.MaxTokens > most {
		req.Settings.MaxTokens = most // the settings may be for another model of the chain
	}
	s.changed = firstChange(s.sent, req.Messages)
	known := len(s.sent)
	if s.changed >= 0 {
		known = 0
	}
	s.sent = req.Messages
	if err := transcript.CheckPairsFrom(req.Messages, known); err != nil {
		return req, "", fmt.Errorf("render request: %w", err)
	}
	digest, err := s.digests.Next(req, known)
	return req, digest, err
}

// Prepare makes the body. An error says why the model cannot be sent this request.
func (s *Sender) Prepare(h model.Handle, req model.Request) (model.Prepared, error) {
	req.Scratch, s.room = s.room, nil
	return h.Model.Prepare(req)
}

// Done returns the buffer of a body. Call it only after the whole answer was
// read, since a provider may still read the body until then.
func (s *Sender) Done(p model.Prepared) { s.room = p.Body }

// firstChange returns the index of the first message that differs from the
// last request, or -1 if all of them are still there.
func firstChange(before, now []*model.Message) int {
	for i, m := range before {
		if i >= len(now) || now[i] != m {
			return i
		}
	}
	return -1
}

// CacheMiss describes an answer for which the provider's cache held less than it should.
type CacheMiss struct {
	Run      string
	Step     int
	Model    string
	Expected int    // tokens
	Read     int    // tokens
	Fragment int    // the first message that differs from the last request; -1 if none
	Text     string // the beginning of that message
}

// leastCached is the size below which providers do not cache.
const leastCached = 2048

// CacheMiss checks whether the provider's cache held much less of the last request than it should have.
func (s *Sender) CacheMiss(h model.Handle, asked chat.Asked, said chat.Said) (CacheMiss, bool) {
	got := said.Usage.CacheRead
	if asked.Cached < leastCached || got >= asked.Cached*8/10 || h.Entry.Price.CacheRead == 0 {
		return CacheMiss{}, false
	}
	miss := CacheMiss{Step: asked.Step, Model: asked.Model, Expected: asked.Cached, Read: got, Fragment: -1}
	if s.changed >= 0 && s.changed < len(s.sent) {
		if text, err := s.sent[s.changed].Fragment(); err == nil {
			miss.Fragment, miss.Text = s.changed, string(text[:min(len(text), 200)])
		}
	}
	return miss, true
}
