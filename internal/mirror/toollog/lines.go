package toollog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/images"
	"chorus/internal/mirror/jsonl"
)

// Lines returns the entries as messages for chat.Imported, and the pictures in them as blobs that
// must be stored too. The agent's completion with its calls comes first, then one message with the
// results. Calls of one completion stay together. Every call has a unique id and exactly one
// result.
func (c Channel) Lines() ([]chat.Line, []chat.Blob) {
	var lines []chat.Line
	var blobs []chat.Blob
	who := chat.Participant{ID: c.Agent, Name: c.Agent, Kind: chat.Agent}
	used := map[string]bool{}
	for i := 0; i < len(c.Entries); {
		first := c.Entries[i]
		asked, answers := chat.Blocks{}, chat.Blocks{}
		if strings.TrimSpace(first.Call.Text) != "" {
			asked = append(asked, chat.Text{Text: first.Call.Text})
		}
		at := first.At
		for n := i; i < len(c.Entries) && (i == n || together(first, c.Entries[i])); i++ {
			e := c.Entries[i]
			id := jsonl.UniqueID(e.Call.ID, used)
			asked = append(asked, chat.ToolUse{ID: id, Name: e.Call.Name, Args: object(e.Call.Input)})
			blocks, more := e.Result.blocks()
			answers = append(answers, chat.ToolResult{Call: id, Name: e.Call.Name, Blocks: blocks, Failed: e.Result.Error != ""})
			blobs, at = append(blobs, more...), e.At
		}
		lines = append(lines, chat.Line{Role: "assistant", From: who, At: first.At, Blocks: asked},
			chat.Line{Role: "tool", From: who, At: at, Blocks: answers})
	}
	return lines, blobs
}

// together reports whether two calls were made in one completion.
func together(a, b Entry) bool {
	return a.Call.Text != "" && a.Call.Text == b.Call.Text && a.Call.MessageID == b.Call.MessageID && a.Run == b.Run
}

// object returns the input as an object, the only form that a model's tools accept.
func object(input json.RawMessage) json.RawMessage {
	input = bytes.TrimSpace(input)
	if len(input) > 0 && input[0] == '{' && json.Valid(input) {
		return input
	}
	wrapped, err := encode(map[string]json.RawMessage{"input": input})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return bytes.TrimSpace(wrapped)
}

func (r Result) blocks() (chat.Blocks, []chat.Blob) {
	blocks := chat.TextBlocks(r.Answer())
	var blobs []chat.Blob
	for _, img := range r.Images {
		image := chat.Image{Blob: img.Blob, MediaType: img.MimeType, Name: img.Name}
		if img.Data != "" {
			data, err := bytesOf(img.Data)
			if image.MediaType = images.Sniff(data); err != nil || image.MediaType == "" { // the declared type is often wrong
				blocks = append(blocks, chat.Text{Text: "[a picture that could not be read]"})
				continue
			}
			blob := chat.NewBlob(data)
			blobs = append(blobs, blob)
			image.Blob, image.Size = blob.Hash, int64(len(data))
		}
		blocks = append(blocks, image)
	}
	return blocks, blobs
}

// bytesOf decodes base64, also after the head of a data URL.
func bytesOf(text string) ([]byte, error) {
	if head, rest, ok := strings.Cut(text, ","); ok && strings.HasPrefix(head, "data:") {
		text = rest
	}
	return base64.StdEncoding.DecodeString(text)
}
