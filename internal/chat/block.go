package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/text"
)

// Block is one piece of a message: Text, Image, Thinking, ToolUse, ToolResult or File.
type Block interface{ block() }

// Text is prose. Some providers sign their text and need the signature
// back with the same text; the others ignore it.
type Text struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// Image is a picture, identified by the hash of its bytes, which are stored as a blob.
type Image struct {
	Blob      string `json:"blob"`
	MediaType string `json:"mediaType"`
	Name      string `json:"name,omitempty"`
	Size      int64  `json:"size,omitempty"`
}

// Thinking is reasoning that the model showed. The signature must be sent back unchanged.
// Redacted holds the encrypted form when the provider sent no text.
type Thinking struct {
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// ToolUse is a call the model wants to make. Args is a JSON object, or whatever the
// model wrote if that is not one. Signature works as in Text.
type ToolUse struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Signature string          `json:"signature,omitempty"`
}

// ToolResult answers the ToolUse with the same id. Blocks are Text and Image only.
type ToolResult struct {
	Call   string `json:"call"`
	Name   string `json:"name,omitempty"`
	Blocks Blocks `json:"blocks"`
	Failed bool   `json:"failed,omitempty"`
}

// File is an attachment that the model does not see as a picture. Its bytes are stored as a
// blob. Path is where tools can open it, if it was copied into a named root.
type File struct {
	Blob      string `json:"blob,omitempty"`
	Name      string `json:"name"`
	MediaType string `json:"mediaType,omitempty"`
	Path      string `json:"path,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Source    string `json:"source,omitempty"`  // the address it was attached under
	Wanted    bool   `json:"wanted,omitempty"`  // not fetched yet; Size is what its sender says
	Trouble   string `json:"trouble,omitempty"` // why it could not be fetched; there is no file at Path
}

func (Text) block()       {}
func (Image) block()      {}
func (Thinking) block()   {}
func (ToolUse) block()    {}
func (ToolResult) block() {}
func (File) block()       {}

// Blocks is the content of a message. Its JSON form is an array of objects that each have
// a "type": text, image, thinking, tool_use, tool_result or file.
type Blocks []Block

// TextBlocks returns content that is a single text block.
func TextBlocks(text string) Blocks { return Blocks{Text{Text: text}} }

// Text concatenates the text blocks.
func (b Blocks) Text() string {
	if len(b) == 1 {
		if t, ok := b[0].(Text); ok {
			return t.Text
		}
	}
	var out strings.Builder
	for _, block := range b {
		if t, ok := block.(Text); ok {
			out.WriteString(t.Text)
		}
	}
	return out.String()
}

// Apart separates the words of a message from its files. The files begin with the first
// block that is not text; each may be followed by text of its own.
func (b Blocks) Apart() (words, files Blocks) {
	for i, block := range b {
		if _, ok := block.(Text); !ok {
			return b[:i:i], b[i:]
		}
	}
	return b, nil
}

// Wanted reports whether a file has yet to be fetched.
func (b Blocks) Wanted() bool {
	return slices.ContainsFunc(b, func(block Block) bool {
		f, ok := block.(File)
		return ok && f.Wanted
	})
}

// Calls returns the tool uses in order.
func (b Blocks) Calls() []ToolUse {
	var calls []ToolUse
	for _, block := range b {
		if c, ok := block.(ToolUse); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// MarshalJSON writes each block with its type first.
func (b Blocks) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('[')
	for i, block := range b {
		if i > 0 {
			buf.WriteByte(',')
		}
		kind, err := blockType(block)
		if err != nil {
			return nil, err
		}
		body, err := text.JSON(repairArgs(block))
		if err != nil {
			return nil, err
		}
		buf.WriteString(`{"type":"` + kind + `"`)
		if len(body) > 2 {
			buf.WriteByte(',')
		}
		buf.Write(body[1:])
	}
	buf.WriteByte(']')
	return buf.Bytes(), nil
}

// repairArgs makes a model's arguments storable. Text that is not JSON becomes a
// JSON string, so the journal never refuses a model's mistake.
func repairArgs(block Block) Block {
	use, ok := block.(ToolUse)
	if !ok {
		return block
	}
	switch {
	case len(bytes.Trim(use.Args, " \t\r\n")) == 0:
		use.Args = json.RawMessage(`{}`)
	case !json.Valid(use.Args):
		quoted, _ := json.Marshal(string(use.Args))
		use.Args = quoted
	}
	return use
}

func blockType(block Block) (string, error) {
	switch block.(type) {
	case Text:
		return "text", nil
	case Image:
		return "image", nil
	case Thinking:
		return "thinking", nil
	case ToolUse:
		return "tool_use", nil
	case ToolResult:
		return "tool_result", nil
	case File:
		return "file", nil
	default:
		return "", fmt.Errorf("chat: no block type for %T", block)
	}
}

// UnmarshalJSON reads what MarshalJSON wrote; an unknown type is an error.
func (b *Blocks) UnmarshalJSON(data []byte) error {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return err
	}
	out := make(Blocks, 0, len(raws))
	for i, raw := range raws {
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		block, err := decodeBlock(head.Type, raw)
		if err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		out = append(out, block)
	}
	*b = out
	return nil
}

func decodeBlock(kind string, raw []byte) (Block, error) {
	switch kind {
	case "text":
		return into[Text](raw)
	case "image":
		return into[Image](raw)
	case "thinking":
		return into[Thinking](raw)
	case "tool_use":
		return into[ToolUse](raw)
	case "tool_result":
		return into[ToolResult](raw)
	case "file":
		return into[File](raw)
	default:
		return nil, fmt.Errorf("unknown block type %q", kind)
	}
}

func into[T any](raw []byte) (T, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}
