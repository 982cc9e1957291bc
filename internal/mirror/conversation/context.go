package conversation

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model/catalog"
)

// contextLine is one line of context.jsonl and its place in the prompt.
type contextLine struct {
	place int64
	raw   []byte
}

// The message formats of context.jsonl. "seq" is our addition and comes last.

type userMessage struct {
	Role      string `json:"role"`
	Content   any    `json:"content"` // text, or []any if there are pictures
	Timestamp int64  `json:"timestamp"`
	Seq       int64  `json:"seq,omitempty"`
}

type assistantMessage struct {
	Role         string `json:"role"`
	Content      []any  `json:"content"`
	API          string `json:"api"`
	Provider     string `json:"provider"`
	Model        string `json:"model"`
	Usage        usage  `json:"usage"`
	StopReason   string `json:"stopReason"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	Timestamp    int64  `json:"timestamp"`
	Seq          int64  `json:"seq,omitempty"`
}

type toolResult struct {
	Role       string `json:"role"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	Content    []any  `json:"content"`
	IsError    bool   `json:"isError"`
	Timestamp  int64  `json:"timestamp"`
	Seq        int64  `json:"seq,omitempty"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type imagePart struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
}

type thinkingPart struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"thinkingSignature,omitempty"`
	Redacted  bool   `json:"redacted,omitempty"` // there is only the signature
}

type callPart struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type usage struct {
	Input       int  `json:"input"`
	Output      int  `json:"output"`
	CacheRead   int  `json:"cacheRead"`
	CacheWrite  int  `json:"cacheWrite"`
	TotalTokens int  `json:"totalTokens"`
	Cost        cost `json:"cost"` // only the ledger knows it
}

type cost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

// window follows the prompt: a prompt gets its place when a run takes it, and
// what was only heard when the first request sees it.
func (b *batch) window(ev chat.Event) error {
	switch body := ev.Body.(type) {
	case chat.Received:
		if body.Silent {
			return nil // not part of the conversation
		}
		if body.Prompt {
			b.st.Waiting = append(b.st.Waiting, b.t.hold(ev, body.Blocks, ""))
		} else {
			b.st.Heard = append(b.st.Heard, b.t.hold(ev, body.Blocks, body.From.Name))
		}
	case chat.Steered:
		b.st.Waiting = append(b.st.Waiting, b.t.hold(ev, body.Blocks, ""))
	case chat.Imported:
		for _, message := range b.t.imported(body, ev.At) {
			b.st.Heard = append(b.st.Heard, held{Seq: ev.Seq, Message: message})
		}
	case chat.Edited:
		b.t.change(b.st.Waiting, body, ev.At)
		b.t.change(b.st.Heard, body, ev.At)
	case chat.Deleted:
		b.st.Waiting, b.st.Heard = forget(b.st.Waiting, body.Seq), forget(b.st.Heard, body.Seq)
	case chat.Refused:
		b.st.Waiting = forget(b.st.Waiting, body.Seq)
	case chat.RunStarted:
		b.st.Model = body.Model
	case chat.Took:
		for _, seq := range body.Seqs {
			b.place(&b.st.Waiting, ev.Seq, func(h held) bool { return h.Seq == seq })
		}
	case chat.Asked:
		b.st.Model = body.Model
		b.place(&b.st.Heard, ev.Seq, func(h held) bool { return h.Seq <= body.Sees })
	case chat.Noted:
		b.add(ev.Seq, userMessage{"user", body.Text, millis(ev.At), ev.Seq})
	case chat.Said:
		b.said(ev, body)
	case chat.ToolRan:
		b.add(ev.Seq, toolResult{"toolResult", body.Call, body.Name, b.t.parts(body.Blocks),
			body.Failed || (body.Outcome != chat.Ran && body.Outcome != ""), millis(ev.At), ev.Seq})
	case chat.Compacted:
		summary := contextLine{body.UpTo, encode(userMessage{"user", summaryText(body), millis(ev.At), body.UpTo})}
		return b.cut(func(l contextLine) bool { return l.place <= body.UpTo }, summary)
	case chat.Cleared:
		return b.cut(func(l contextLine) bool { return l.place <= body.UpTo })
	case chat.Rolled:
		return b.cut(func(l contextLine) bool { return l.place < body.KeepFrom })
	}
	return nil
}

func forget(list []held, seq int64) []held {
	return slices.DeleteFunc(list, func(h held) bool { return h.Seq == seq })
}

func (b *batch) add(place int64, message any) {
	b.context = append(b.context, contextLine{place, encode(message)})
}

// place moves held messages into the window.
func (b *batch) place(list *[]held, place int64, which func(held) bool) {
	var kept []held
	for _, h := range *list {
		if !which(h) {
			kept = append(kept, h)
			continue
		}
		b.context = append(b.context, contextLine{place, withSeq(h.Message, place)})
	}
	*list = kept
}

// withSeq appends the place as the last key of an object.
func withSeq(message json.RawMessage, place int64) []byte {
	return fmt.Appendf(slices.Clone(message[:len(message)-1]), `,"seq":%d}`, place)
}

// cut rewrites the window without some lines, and with the lines in front that replace them.
func (b *batch) cut(goes func(contextLine) bool, front ...contextLine) error {
	if !b.rewrite {
		old, err := readContext(b.t.path(ContextName))
		if err != nil {
			return err
		}
		b.context, b.rewrite = append(old, b.context...), true
	}
	b.context = append(front, slices.DeleteFunc(b.context, goes)...)
	return nil
}

func summaryText(c chat.Compacted) string {
	text := "<compaction-summary>\n" + strings.TrimSpace(c.Summary)
	for _, list := range []struct {
		tag   string
		files []string
	}{{"read-files", c.Read}, {"modified-files", c.Modified}} {
		if len(list.files) > 0 && !strings.Contains(c.Summary, "<"+list.tag+">") {
			text += "\n\n<" + list.tag + ">\n" + strings.Join(list.files, "\n") + "\n</" + list.tag + ">"
		}
	}
	return text + "\n</compaction-summary>"
}

// said adds an answer. A failed attempt is not part of the window.
func (b *batch) said(ev chat.Event, s chat.Said) {
	content := b.t.parts(s.Blocks)
	if s.Error != nil || len(content) == 0 {
		return
	}
	provider, model, ok := strings.Cut(b.st.Model, "/")
	if !ok {
		provider, model = "", b.st.Model
	}
	message := assistantMessage{
		Role: "assistant", Content: content, API: catalog.APIName(provider), Provider: provider, Model: model,
		Usage:      usage{s.Usage.Input, s.Usage.Output, s.Usage.CacheRead, s.Usage.CacheWrite, s.Usage.Total(), cost{}},
		StopReason: stopReason(s), Timestamp: millis(ev.At), Seq: ev.Seq,
	}
	if s.Stop == chat.StopRefused {
		message.ErrorMessage = "the model refused to answer"
	}
	b.add(ev.Seq, message)
}

func stopReason(s chat.Said) string {
	switch s.Stop {
	case chat.StopTools:
		return "toolUse"
	case chat.StopLength:
		return "length"
	case chat.StopAborted:
		return "aborted"
	case chat.StopRefused, chat.StopError:
		return "error"
	default:
		if s.Partial {
			return "aborted"
		}
		return "stop"
	}
}

func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// hold returns a message that has no place yet.
func (t *Writer) hold(ev chat.Event, blocks chat.Blocks, name string) held {
	h := held{Seq: ev.Seq, Message: t.userContent(blocks, name, ev.At), Name: name}
	if _, files := blocks.Apart(); len(files) > 0 {
		h.Blocks = blocks
	}
	return h
}

// change updates the words or the files of a message that has no place yet.
func (t *Writer) change(list []held, body chat.Edited, at time.Time) {
	for i, h := range list {
		if h.Seq == body.Seq {
			blocks := body.Over(h.Blocks)
			list[i].Message = t.userContent(blocks, h.Name, at)
			list[i].Blocks = blocks
		}
	}
}

// userContent returns a user message without its place. A name in
// front distinguishes people who were only heard.
func (t *Writer) userContent(blocks chat.Blocks, name string, at time.Time) json.RawMessage {
	text := blocks.Text()
	if name != "" {
		text = "[" + name + "]: " + text
	}
	var images []any
	var files []string
	for _, block := range blocks {
		switch f := block.(type) {
		case chat.Image:
			images = append(images, t.image(f))
		case chat.File:
			files = append(files, strings.TrimSpace(f.Path+" "+pathless(f)))
		}
	}
	if len(files) > 0 {
		text += "\n\n<attachments>\n" + strings.Join(files, "\n") + "\n</attachments>"
	}
	var content any = text
	if len(images) > 0 {
		content = append([]any{textPart{"text", text}}, images...)
	}
	return encode(userMessage{Role: "user", Content: content, Timestamp: millis(at)})
}

func pathless(f chat.File) string {
	if f.Path == "" {
		return f.Name
	}
	return ""
}

// parts returns the content of an answer or a result.
func (t *Writer) parts(blocks chat.Blocks) []any {
	parts := []any{}
	for _, block := range blocks {
		switch p := block.(type) {
		case chat.Text:
			parts = append(parts, textPart{"text", p.Text})
		case chat.Thinking:
			parts = append(parts, thinkingPart{"thinking", p.Text, cmp.Or(p.Redacted, p.Signature), p.Redacted != ""})
		case chat.Image:
			parts = append(parts, t.image(p))
		case chat.ToolUse:
			args := p.Args
			if !json.Valid(args) {
				args = encode(string(args))
			}
			parts = append(parts, callPart{"toolCall", p.ID, p.Name, args})
		case chat.File:
			parts = append(parts, textPart{"text", "[file " + p.Name + "]"})
		}
	}
	return parts
}

func (t *Writer) image(p chat.Image) any {
	if t.Blobs != nil {
		if data, err := t.Blobs(p.Blob); err == nil {
			return imagePart{"image", base64.StdEncoding.EncodeToString(data), p.MediaType}
		}
	}
	return textPart{"text", strings.TrimSpace("[image "+p.Name) + "]"}
}

// imported returns imported messages or, if their bytes are not available, a note about them.
func (t *Writer) imported(b chat.Imported, at time.Time) []json.RawMessage {
	var lines []chat.Line
	err := errNoBlobs
	if t.Blobs != nil {
		var data []byte
		if data, err = t.Blobs(b.Blob); err == nil {
			err = json.Unmarshal(data, &lines)
		}
	}
	if err != nil {
		word := fmt.Sprintf("[%d messages imported from %s]", b.Count, b.Source)
		return []json.RawMessage{t.userContent(chat.TextBlocks(word), "", at)}
	}
	var out []json.RawMessage
	for _, l := range lines {
		out = append(out, t.importedLine(l)...)
	}
	return out
}

func (t *Writer) importedLine(l chat.Line) []json.RawMessage {
	switch l.Role {
	case "assistant":
		return []json.RawMessage{encode(assistantMessage{Role: "assistant", Content: t.parts(l.Blocks), StopReason: "stop", Timestamp: millis(l.At)})}
	case "tool":
		var out []json.RawMessage
		for _, block := range l.Blocks {
			if r, ok := block.(chat.ToolResult); ok {
				out = append(out, encode(toolResult{"toolResult", r.Call, r.Name, t.parts(r.Blocks), r.Failed, millis(l.At), 0}))
			}
		}
		return out
	default:
		return []json.RawMessage{t.userContent(l.Blocks, l.From.Name, l.At)}
	}
}

var errNoBlobs = errors.New("no blobs at hand")
