package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// read converts what an editor sent to one text; pictures and other bytes become files.
func (s *session) read(ctx context.Context, blocks []sdk.ContentBlock) (string, error) {
	var words []string
	for i, b := range blocks {
		switch {
		case b.Text != nil:
			words = append(words, b.Text.Text)
		case b.Image != nil:
			name := fmt.Sprintf("picture-%d%s", i+1, extension(b.Image.MimeType))
			if b.Image.Uri != nil {
				name = cmp.Or(path.Base(*b.Image.Uri), name)
			}
			if err := s.attach(ctx, name, b.Image.Data); err != nil {
				return "", err
			}
		case b.ResourceLink != nil:
			words = append(words, s.mention(b.ResourceLink.Uri, b.ResourceLink.Name))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			words = append(words, s.mention(r.Uri, r.Uri)+":\n"+fence(r.Text)+"\n")
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			r := b.Resource.Resource.BlobResourceContents
			if err := s.attach(ctx, path.Base(r.Uri), r.Blob); err != nil {
				return "", err
			}
		case b.Audio != nil:
			return "", errors.New("audio is not supported; send text")
		}
	}
	said := strings.TrimSpace(strings.Join(words, ""))
	if said == "" {
		return "", errors.New("the prompt has no text")
	}
	return said, nil
}

func (s *session) attach(ctx context.Context, name, data string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("%s is not base64: %w", name, err)
	}
	return s.inner.Attach(ctx, name, bytes.NewReader(raw))
}

// extension is the file extension for a type.
func extension(media string) string {
	switch media {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	}
	if list, err := mime.ExtensionsByType(media); err == nil && len(list) > 0 {
		return list[0]
	}
	return ""
}

// mention is how the agent's tools name the target of a link.
func (s *session) mention(uri, name string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" && u.Scheme != "" {
		return cmp.Or(uri, name)
	}
	at := u.Path
	if inside, err := filepath.Rel(s.translate.dir, at); err == nil && filepath.IsLocal(inside) {
		at = filepath.ToSlash(inside)
	}
	if u.Fragment != "" { // a selection: L10:20
		at += " (" + u.Fragment + ")"
	}
	return at
}
