package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// AppendString writes s as a JSON string, without HTML escaping.
func AppendString(dst []byte, s string) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return buf.Bytes()[:buf.Len()-1]
}

// AppendStrings writes a list of strings.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

// AppendFloat writes a number as JSON.
func AppendFloat(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }

// Args are a call's arguments as every provider takes them back: a JSON object.
// What the model wrote instead of one is kept under "_raw". Text that is not JSON
// and the same text as a JSON string, which is how the journal keeps it, give the
// same bytes.
func Args(raw json.RawMessage) []byte {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0:
		return []byte("{}")
	case !json.Valid(trimmed):
		return append(AppendString([]byte(`{"_raw":`), string(raw)), '}')
	case trimmed[0] == '{':
		return trimmed
	default:
		return append(append([]byte(`{"_raw":`), trimmed...), '}')
	}
}

// Schema is a tool's schema, or the one of a tool without parameters.
func Schema(t model.ToolSpec) ([]byte, error) {
	trimmed := bytes.TrimSpace(t.Schema)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return []byte(`{"type":"object","properties":{}}`), nil
	}
	if trimmed[0] != '{' || !json.Valid(trimmed) {
		return nil, fmt.Errorf("the schema of tool %s is not a JSON object", t.Name)
	}
	return trimmed, nil
}

// Shown are the pictures that both vendors take.
func Shown(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

// Base64 loads an image's bytes and encodes them.
func Base64(img chat.Image, blob func(string) ([]byte, error)) (string, error) {
	if blob == nil {
		return "", fmt.Errorf("image %s: %w", img.Blob, errNoBlobs)
	}
	data, err := blob(img.Blob)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", img.Blob, err)
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

var errNoBlobs = errors.New("there is nothing to load pictures from")

// Unseen is the line that stands for a picture the model cannot be shown.
func Unseen(img chat.Image) string {
	return fmt.Sprintf("[image %s (%s): this model cannot be shown it]", orUnnamed(img.Name), img.MediaType)
}

// FileLine is the line that stands for an attachment.
func FileLine(f chat.File) string {
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
	switch {
	case f.Trouble != "":
		return line + ": not there: " + f.Trouble + "]"
	case f.Wanted:
		return line + ": still being fetched, will be at " + f.Path + "]"
	case f.Path != "":
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

// imageTokens is what a picture costs about, whatever its bytes: both vendors
// count tiles of a picture that is scaled down first.
const imageTokens = 1600

// Estimate is a rough count of the tokens in a body of n bytes: pictures count by
// piece, not by their base64.
func Estimate(n int, messages []*model.Message) int {
	images := 0
	count := func(blocks chat.Blocks) {
		for _, b := range blocks {
			if img, ok := b.(chat.Image); ok && Shown(img.MediaType) {
				images++
				n -= int(img.Size+2) / 3 * 4
			}
		}
	}
	for _, m := range messages {
		count(m.Blocks)
		for _, b := range m.Blocks {
			if r, ok := b.(chat.ToolResult); ok {
				count(r.Blocks)
			}
		}
	}
	return model.Tokens(max(n, 0)) + images*imageTokens
}

// Foreign reports reasoning whose seal names the vendor it is for, such as "openai:…".
// Anthropic's own seals are base64 and name nobody.
func Foreign(t chat.Thinking) bool { return strings.Contains(t.Signature+t.Redacted, ":") }
