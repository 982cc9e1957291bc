package cast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// quoted appends s as a JSON string, without the escaping of < and >.
func quoted(dst []byte, s string) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return buf.Bytes()[:buf.Len()-1]
}

// argsOf are a call's arguments as one JSON object; what is none is kept under "_raw",
// as providers do with real calls.
func argsOf(raw json.RawMessage) []byte {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0:
		return []byte("{}")
	case !json.Valid(trimmed):
		return append(quoted([]byte(`{"_raw":`), string(raw)), '}')
	case trimmed[0] == '{':
		return trimmed
	default:
		return append(append([]byte(`{"_raw":`), trimmed...), '}')
	}
}

// schemaOf is a tool's schema, or the one of a tool without parameters.
func schemaOf(t model.ToolSpec) ([]byte, error) {
	trimmed := bytes.TrimSpace(t.Schema)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return []byte(`{"type":"object","properties":{}}`), nil
	}
	if trimmed[0] != '{' || !json.Valid(trimmed) {
		return nil, fmt.Errorf("the schema of tool %s is not a JSON object", t.Name)
	}
	return trimmed, nil
}

// visible are the pictures that all providers take.
func visible(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

// unseen is the line that stands for a picture the model cannot be shown.
func unseen(img chat.Image) string {
	return fmt.Sprintf("[image %s (%s): this model cannot be shown it]", orUnnamed(img.Name), img.MediaType)
}

// fileLine is the line that stands for an attachment.
func fileLine(f chat.File) string {
	about := []string{}
	if f.MediaType != "" {
		about = append(about, f.MediaType)
	}
	if f.Size > 0 {
		about = append(about, fmt.Sprintf("%d bytes", f.Size))
	}
	line := "[file " + orUnnamed(f.Name)
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	if f.Path != "" {
		return line + ": " + f.Path + "]"
	}
	return line + ": not laid into the workspace]"
}

func orUnnamed(name string) string {
	if name == "" {
		return "without a name"
	}
	return name
}
