package conversation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// LogEntry is one line of log.jsonl.
type LogEntry struct {
	Date        string          `json:"date"` // ISO 8601
	MessageID   string          `json:"messageId"`
	UserID      string          `json:"userId"`
	UserName    string          `json:"userName"`
	Text        string          `json:"text"`
	IsBot       bool            `json:"isBot"`
	Attachments []LogAttachment `json:"attachments,omitempty"`
}

// LogAttachment says where an attachment came from and where it is stored.
type LogAttachment struct {
	Original string `json:"original"`
	Local    string `json:"local"`
}

// entry logs what people said and the final answers, never the work in between.
func (b *batch) entry(ev chat.Event) {
	switch body := ev.Body.(type) {
	case chat.Received:
		b.logSpeech(ev, body.From, body.Blocks)
	case chat.Steered:
		b.logSpeech(ev, body.From, body.Blocks)
	case chat.RunStarted:
		b.st.Reply, b.st.Cut = "", false
	case chat.Said:
		b.follow(body)
	case chat.RunEnded:
		answer := cmp.Or(body.Text, b.st.Reply)
		b.st.Reply, b.st.Cut = "", false
		if strings.TrimSpace(answer) == "" || chat.IsSilent(answer) { // nobody sees a silent answer
			return
		}
		b.logEntry(ev, LogEntry{UserID: "bot", UserName: cmp.Or(ev.Thread.Agent(), "bot"), Text: answer, IsBot: true})
	}
}

// follow keeps the newest answer: the text of the last message without tool calls,
// preceded by the earlier parts if it was cut at the length limit.
func (b *batch) follow(said chat.Said) {
	switch {
	case said.Error != nil:
	case len(said.Blocks.Calls()) > 0:
		b.st.Reply, b.st.Cut = "", false
	default:
		if !b.st.Cut {
			b.st.Reply = ""
		}
		b.st.Reply += said.Blocks.Text()
		b.st.Cut = said.Stop == chat.StopLength
	}
}

func (b *batch) logSpeech(ev chat.Event, from chat.Participant, blocks chat.Blocks) {
	entry := LogEntry{UserID: from.ID, UserName: from.Name, Text: blocks.Text(), IsBot: from.Kind == chat.Bot || from.Kind == chat.Agent}
	entry.UserName = cmp.Or(entry.UserName, from.ID)
	for _, block := range blocks {
		switch f := block.(type) {
		case chat.Image:
			entry.Attachments = append(entry.Attachments, LogAttachment{f.Name, "blob:" + f.Blob})
		case chat.File:
			local := cmp.Or(f.Path, "blob:"+f.Blob)
			entry.Attachments = append(entry.Attachments, LogAttachment{cmp.Or(f.Source, f.Name), local})
		}
	}
	b.logEntry(ev, entry)
}

// again is how long the same message id counts as the same message, as in Guppy.
const again = time.Minute

func (b *batch) logEntry(ev chat.Event, entry LogEntry) {
	entry.Date = ev.At.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	entry.MessageID = ev.PlatformID
	entry.MessageID = cmp.Or(entry.MessageID, fmt.Sprintf("evt-%d", ev.Seq))
	if b.t.seen[entry.MessageID] || b.t.repeated(entry.MessageID, ev.At) {
		return
	}
	b.log = append(append(b.log, encode(entry)...), '\n')
}

func (t *Writer) repeated(id string, at time.Time) bool {
	before, ok := t.recent[id]
	if ok && at.Sub(before) < again && !at.Equal(before) { // the same time is a repeated Apply
		return true
	}
	if len(t.recent) > 256 {
		for other, when := range t.recent {
			if at.Sub(when) >= again {
				delete(t.recent, other)
			}
		}
	}
	t.recent[id] = at
	return false
}

// encode encodes our own structs, whose arguments are known to be valid JSON.
func encode(v any) []byte {
	data, err := text.JSON(v)
	if err != nil {
		return []byte("{}")
	}
	return data
}
