package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/model"
)

// Append appends v as JSON to dst: compact, and without escaping <, > and &, which
// costs tokens in code and would change bytes that were sent before.
func Append(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes()[:buf.Len()-1], nil // Encode appends a newline
}

// AppendNext is Append for the values of a list: after a comma, unless it is the first.
func AppendNext(dst []byte, v any) ([]byte, error) { return Append(Comma(dst), v) }

// Comma appends a comma to dst, unless dst is empty.
func Comma(dst []byte) []byte {
	if len(dst) > 0 {
		return append(dst, ',')
	}
	return dst
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	out, _ := Append(dst, s) // strings always encode
	return out
}

// AppendStrings appends a list of strings.
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

// AppendFloat appends a number as JSON.
func AppendFloat(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }

// Args returns a call's arguments in the form that every provider accepts back: a JSON object. If the
// model wrote something else, that is kept under "_raw". Text that is not JSON gives the same bytes as
// the same text as a JSON string, which is how the journal stores it.
func Args(raw json.RawMessage) []byte {
	trimmed := bytes.Trim(raw, " \t\r\n") // what JSON calls space, and no more
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

// Schema returns a tool's schema, or that of a tool without parameters.
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

// FunctionTools writes the tools as OpenAI's field "tools", preceded by a comma;
// other servers accept it too. Without tools it writes nothing.
func FunctionTools(h *model.Head) ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	if len(h.Tools) == 0 {
		return nil, nil
	}
	var list []tool
	for _, t := range h.Tools {
		schema, err := Schema(t)
		if err != nil {
			return nil, err
		}
		list = append(list, tool{"function", function{t.Name, t.Description, schema}})
	}
	return Append([]byte(`,"tools":`), list)
}

// Shown reports whether a picture has a media type that both vendors accept.
func Shown(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

// EncodeImage loads an image's bytes and encodes them in base64. If they are
// lost, it returns the line that replaces the image.
func EncodeImage(img chat.Image, blob func(string) ([]byte, error)) (data, lost string, err error) {
	if blob == nil {
		return "", "", fmt.Errorf("image %s: %w", img.Blob, errNoBlobs)
	}
	raw, err := blob(img.Blob)
	switch {
	case errors.Is(err, chat.ErrLost) || err == nil && len(raw) == 0:
		return "", fmt.Sprintf("[image %s (%s): its file is lost, so it cannot be shown any more]", orUnnamed(img.Name), img.MediaType), nil
	case err != nil:
		return "", "", fmt.Errorf("image %s: %w", img.Blob, err)
	}
	return base64.StdEncoding.EncodeToString(raw), "", nil
}

var errNoBlobs = errors.New("there is nothing to load pictures from")

// FitID returns a call's id in the characters and the length that a provider
// accepts, because another provider may have created it.
func FitID(id string, longest int) string {
	if strings.IndexFunc(id, oddInName) >= 0 {
		return "call_" + digest.Of(id)[:32]
	}
	return ShortID(id, longest)
}

// ShortID is FitID for providers that accept all characters.
func ShortID(id string, longest int) string {
	if id != "" && len(id) <= longest {
		return id
	}
	return "call_" + digest.Of(id)[:32]
}

// maxName is the longest tool name that every provider accepts.
const maxName = 64

// ToolName returns the name of a call in the characters and the length that providers accept. A model may
// call a tool that does not exist, by any name, and its call is sent back to it all the same.
func ToolName(name string) string {
	if name != "" && len(name) <= maxName && strings.IndexFunc(name, oddInName) < 0 {
		return name
	}
	clean := strings.Map(func(r rune) rune {
		if oddInName(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	return cmp.Or(clean[:min(len(clean), maxName)], "unnamed")
}

func oddInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// Unseen returns the line that replaces a picture that the model cannot be shown.
func Unseen(img chat.Image) string {
	return fmt.Sprintf("[image %s (%s): this model cannot be shown it]", orUnnamed(img.Name), img.MediaType)
}

// Results writes a person's message for vendors that require results first. MarkAt is where the rest
// begins: what came with the results, and their pictures. result returns what is sent for one result,
// its pictures, and the tool's name; user adds to a list of messages.
func Results(blocks chat.Blocks, result func(chat.ToolResult) (sent any, images chat.Blocks, name string), user func(list []byte, said chat.Blocks) ([]byte, error)) (model.Wire, error) {
	var results, late []byte
	var rest chat.Blocks
	for _, block := range blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		sent, images, name := result(r)
		var err error
		if results, err = AppendNext(results, sent); err != nil {
			return model.Wire{}, err
		}
		if len(images) == 0 {
			continue
		}
		shown := "[shown by " + name + " in answer to call " + r.Call + "]"
		if late, err = user(late, append(chat.Blocks{chat.Text{Text: shown}}, images...)); err != nil {
			return model.Wire{}, err
		}
	}
	if len(results) == 0 {
		said, err := user(nil, rest)
		return model.Wire{Bytes: said}, err
	}
	late, err := user(late, rest)
	if err != nil || len(late) == 0 {
		return model.Wire{Bytes: results}, err
	}
	return model.Wire{Bytes: append(results, late...), MarkAt: len(results)}, nil
}

// ResultText splits a tool's result into its text and the pictures that can be
// shown, for vendors that accept only text as a result.
func ResultText(blocks chat.Blocks, shows func(chat.Image) bool) (string, chat.Blocks) {
	var text []string
	var images chat.Blocks
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			text = append(text, b.Text)
		case chat.File:
			text = append(text, FileLine(b))
		case chat.Image:
			if shows(b) {
				images = append(images, b)
			} else {
				text = append(text, Unseen(b))
			}
		}
	}
	return strings.Join(text, "\n"), images
}

// FileLine returns the line that replaces an attachment.
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
	return cmp.Or(name, "without a name")
}

// imageTokens is the approximate cost of a picture, whatever its size:
// both vendors scale it down first and count tiles.
const imageTokens = 1600

// Estimate estimates the number of tokens in a body of n bytes.
// Pictures count individually, not by their base64.
func Estimate(n int, messages []*model.Message) int {
	images := 0
	for _, m := range messages {
		for _, img := range m.Pictures() {
			if Shown(img.MediaType) {
				images++
				n -= int(img.Size+2) / 3 * 4
			}
		}
	}
	return model.Tokens(max(n, 0)) + images*imageTokens
}

// Placed is an encoded message and its index in the request.
type Placed struct {
	*model.Wire
	Index int
}

// As encodes each message in one form; see EncodeAll.
func As(form string, encode func(*model.Message) (model.Wire, error)) func(int, *model.Message) (*model.Wire, error) {
	return func(_ int, m *model.Message) (*model.Wire, error) { return m.Encoded(form, encode) }
}

// EncodeAll returns the messages that are not empty, and the size of all of them with commas between.
func EncodeAll(messages []*model.Message, encoded func(i int, m *model.Message) (*model.Wire, error)) ([]Placed, int, error) {
	placed := make([]Placed, 0, len(messages))
	size := 0
	for i, m := range messages {
		w, err := encoded(i, m)
		if err != nil {
			return nil, 0, err
		}
		if len(w.Bytes) > 0 {
			placed = append(placed, Placed{w, i})
			size += len(w.Bytes) + 1
		}
	}
	if len(placed) == 0 {
		return nil, 0, errors.New("there is nothing to send: every message is empty")
	}
	return placed, size, nil
}

// ForOtherVendor reports whether reasoning is sealed for a named vendor, such as
// "openai:…". Anthropic's own seals are base64 and name nobody.
func ForOtherVendor(t chat.Thinking) bool { return strings.Contains(t.Signature+t.Redacted, ":") }

// PrefillTail returns the white space that had to be removed from a prefill's
// end: the answer may begin with it, and would repeat it.
func PrefillTail(prefill string) string {
	bare := strings.TrimRight(prefill, " \t\r\n")
	if bare == "" {
		return ""
	}
	return prefill[len(bare):]
}
