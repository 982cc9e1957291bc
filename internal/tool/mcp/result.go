package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/chat"
	"chorus/internal/tool"
)

const (
	largestImage = 5 << 20 // the most that providers accept
	maxImages    = 8       // in one result
)

// answer collects what a server returned.
type answer struct {
	text   []string
	images chat.Blocks
	blobs  []chat.Blob
	failed bool
}

func (a *answer) say(format string, args ...any) {
	a.text = append(a.text, fmt.Sprintf(format, args...))
}

// call adds the result of a tool.
func (a *answer) call(res *sdk.CallToolResult) {
	said := false
	for _, block := range res.Content {
		switch c := block.(type) {
		case *sdk.TextContent:
			a.text = append(a.text, c.Text)
			said = said || strings.TrimSpace(c.Text) != ""
		case *sdk.ImageContent:
			a.image(c.Data, c.MIMEType, "")
			said = true
		case *sdk.AudioContent:
			a.say("[a sound: %s, %d bytes; it cannot be played here]", printable(c.MIMEType, 60), len(c.Data))
			said = true
		case *sdk.EmbeddedResource:
			a.resource(c.Resource)
			said = true
		case *sdk.ResourceLink:
			a.link(c)
			said = true
		default:
			a.say("[content of a type that cannot be shown]")
		}
	}
	if !said && res.StructuredContent != nil {
		if data, err := json.MarshalIndent(res.StructuredContent, "", "  "); err == nil {
			a.text = append(a.text, string(data))
		}
	}
	if res.NeedsInput() {
		a.say("[the server asks for more input from a person, which is not possible here]")
		a.failed = true
	}
	a.failed = a.failed || res.IsError
}

func (a *answer) link(c *sdk.ResourceLink) {
	text := printable(c.URI, 500)
	if name := printable(c.Name, 100); name != "" {
		text += " (" + name + ")"
	}
	if words := printable(c.Description, 300); words != "" {
		text += ": " + words
	}
	a.say("[resource %s; read it with mcp_read]", text)
}

// resource adds the contents of a resource.
func (a *answer) resource(c *sdk.ResourceContents) {
	switch {
	case c == nil:
		a.say("[an empty resource]")
	case len(c.Blob) > 0:
		a.image(c.Blob, c.MIMEType, c.URI)
	default:
		a.say("[resource %s]\n%s", printable(c.URI, 500), c.Text)
	}
}

// image adds bytes that a model can see, and only names others. The
// content decides the type, not the server's claim.
func (a *answer) image(data []byte, said, name string) {
	what := printable(said, 60)
	if name = printable(name, 300); name != "" {
		what = name + ", " + what
	}
	media := chat.ImageType(data)
	switch {
	case media == "" && name != "" && isText(data):
		a.say("[resource %s]\n%s", name, data)
	case media == "":
		a.say("[%s: %d bytes that are neither text nor a picture]", what, len(data))
	case len(data) > largestImage:
		a.say("[%s: a picture of %d bytes, too large to look at; at most %d]", what, len(data), largestImage)
	case len(a.images) == maxImages:
		a.say("[%s: one more picture, left out; at most %d are shown]", what, maxImages)
	default:
		blob := chat.NewBlob(data)
		a.images = append(a.images, chat.Image{Blob: blob.Hash, MediaType: media, Name: name, Size: int64(len(data))})
		a.blobs = append(a.blobs, blob)
	}
}

// isText reports whether bytes are text, whatever the server calls them: UTF-8
// without control characters that text does not have.
func isText(data []byte) bool {
	if len(data) == 0 || !utf8.Valid(data) {
		return false
	}
	return !slices.ContainsFunc(data, func(b byte) bool {
		return b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\x1b'
	})
}

// result returns the answer for the model: the text, cut to the limits of one result, then the pictures.
func (a *answer) result(ctx context.Context, source string, keep tool.Keep) tool.Result {
	text := strings.TrimRight(strings.Join(a.text, "\n"), "\n")
	switch {
	case strings.TrimSpace(text) != "":
	case a.failed && len(a.images) == 0:
		text, source = "The tool failed without saying why.", ""
	case a.failed:
		text = "The tool failed without saying why."
	case len(a.images) == 0:
		text, source = "(no output)", ""
	default:
		text = fmt.Sprintf("(%d pictures)", len(a.images))
	}
	return tool.Result{
		Blocks: append(chat.Blocks{chat.Text{Text: tool.Clip(ctx, text, tool.Head, keep)}}, a.images...),
		Failed: a.failed, Blobs: a.blobs, UntrustedFrom: source,
	}
}
