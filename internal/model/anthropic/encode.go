package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// encoder writes messages in the vendor's form.
type encoder struct {
	blob  func(string) ([]byte, error)
	blind bool // the model sees no pictures
}

// message writes one message; no bytes at all when it has nothing the vendor
// would take. The mark may stand at the end of its last block that can carry one.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	out := append([]byte(nil), `{"role":"`+string(m.Role)+`","content":[`...)
	empty := true
	markAt := 0
	add := func(block chat.Block) error {
		before := len(out)
		if !empty {
			out = append(out, ',')
		}
		begin := len(out)
		var err error
		if out, err = e.block(out, block); err != nil {
			return err
		}
		if len(out) == begin { // nothing came of it
			out = out[:before]
			return nil
		}
		empty = false
		if _, thinking := block.(chat.Thinking); !thinking {
			markAt = len(out) - 1
		}
		return nil
	}
	blocks := m.Blocks
	if m.Role == model.Assistant {
		blocks = Untailed(blocks)
	}
	// Results come first in their message: the vendor wants it so.
	for _, results := range []bool{true, false} {
		for _, block := range blocks {
			if _, is := block.(chat.ToolResult); is != results {
				continue
			}
			if err := add(block); err != nil {
				return model.Wire{}, err
			}
		}
	}
	if empty {
		return model.Wire{}, nil
	}
	return model.Wire{Bytes: append(out, "]}"...), MarkAt: markAt}, nil
}

// Untailed takes thinking off the end of an answer, where the vendor refuses it: an
// answer that was cut before it said anything.
func Untailed(blocks chat.Blocks) chat.Blocks {
	for n := len(blocks); n > 0; n-- {
		switch b := blocks[n-1].(type) {
		case chat.Thinking:
		case chat.Text:
			if strings.TrimSpace(b.Text) != "" {
				return blocks[:n]
			}
		default:
			return blocks[:n]
		}
	}
	return nil
}

// maxID is the longest name of a call that every host takes.
const maxID = 64

// CallID is a call's name in the letters that the vendor takes; another provider may
// have given it others.
func CallID(id string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	if id != "" && len(id) <= maxID && strings.IndexFunc(id, odd) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

func (e encoder) block(out []byte, block chat.Block) ([]byte, error) {
	switch b := block.(type) {
	case chat.Text:
		return appendText(out, b.Text), nil
	case chat.Image:
		return e.image(out, b)
	case chat.File:
		return appendText(out, wire.FileLine(b)), nil
	case chat.Thinking:
		return appendThinking(out, b), nil
	case chat.ToolUse:
		out = wire.AppendString(append(out, `{"type":"tool_use","id":`...), CallID(b.ID))
		out = wire.AppendString(append(out, `,"name":`...), b.Name)
		out = append(append(out, `,"input":`...), wire.Args(b.Args)...)
		return append(out, '}'), nil
	case chat.ToolResult:
		return e.result(out, b)
	default:
		return nil, fmt.Errorf("anthropic cannot take a %T", block)
	}
}

// appendText leaves out what the vendor refuses: text of nothing but white space.
func appendText(out []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return out
	}
	out = wire.AppendString(append(out, `{"type":"text","text":`...), text)
	return append(out, '}')
}

// appendThinking gives reasoning back as it came. Without a signature it is not
// the vendor's, and is left out.
func appendThinking(out []byte, t chat.Thinking) []byte {
	switch {
	case wire.Foreign(t):
		return out // a model of another vendor thought it
	case t.Redacted != "":
		out = wire.AppendString(append(out, `{"type":"redacted_thinking","data":`...), t.Redacted)
	case t.Signature != "":
		out = wire.AppendString(append(out, `{"type":"thinking","thinking":`...), t.Text)
		out = wire.AppendString(append(out, `,"signature":`...), t.Signature)
	default:
		return out
	}
	return append(out, '}')
}

func (e encoder) image(out []byte, img chat.Image) ([]byte, error) {
	if e.blind || !wire.Shown(img.MediaType) {
		return appendText(out, wire.Unseen(img)), nil
	}
	data, err := wire.Base64(img, e.blob)
	if err != nil {
		return nil, err
	}
	out = append(out, `{"type":"image","source":{"type":"base64","media_type":"`...)
	out = append(append(out, img.MediaType...), `","data":"`...)
	return append(append(out, data...), `"}}`...), nil
}

func (e encoder) result(out []byte, r chat.ToolResult) ([]byte, error) {
	out = wire.AppendString(append(out, `{"type":"tool_result","tool_use_id":`...), CallID(r.Call))
	inner := []byte(nil)
	for _, block := range r.Blocks {
		before := len(inner)
		if before > 0 {
			inner = append(inner, ',')
		}
		begin := len(inner)
		var err error
		switch b := block.(type) {
		case chat.Text:
			inner = appendText(inner, b.Text)
		case chat.Image:
			inner, err = e.image(inner, b)
		case chat.File:
			inner = appendText(inner, wire.FileLine(b))
		default:
			err = fmt.Errorf("a tool result cannot hold a %T", block)
		}
		if err != nil {
			return nil, err
		}
		if len(inner) == begin {
			inner = inner[:before]
		}
	}
	if len(inner) > 0 {
		out = append(append(append(out, `,"content":[`...), inner...), ']')
	}
	if r.Failed {
		out = append(out, `,"is_error":true`...)
	}
	return append(out, '}'), nil
}
