package format

import (
	"cmp"
	"encoding/json"
	"io"
)

// textChunk is one event of the old Completions.
type textChunk struct {
	ID      string `json:"id"`
	Choices []struct {
		Index        int  `json:"index"`
		Text         text `json:"text"`
		FinishReason text `json:"finish_reason"`
		StopReason   text `json:"stop_reason"` // vLLM: the sequence that stopped it
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// Completions reads an answer of the old Completions, which is only text. It is
// complete at [DONE], or when the stream ends after a finish reason.
func (s Stream) Completions(body io.Reader) {
	a := s.answer()
	a.strip = "" // nothing is removed from a prompt's end
	readChunks(&a, body, func(c textChunk) json.RawMessage { return c.Error }, a.takeText)
}

func (a *answer) takeText(c textChunk) bool {
	a.id = cmp.Or(a.id, c.ID)
	if c.Usage != nil {
		a.usage = c.Usage.ours()
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		if !a.say(nil, string(ch.Text)) {
			return false
		}
		if ch.FinishReason != "" {
			a.finish = string(ch.FinishReason)
			a.stopSeq = ch.StopReason != ""
		}
	}
	return true
}
