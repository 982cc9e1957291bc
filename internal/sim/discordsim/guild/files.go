package guild

import (
	"bytes"
	"image"
	_ "image/gif"  // so that pictures have a size, as Discord gives them one
	_ "image/jpeg" // the same
	_ "image/png"  // the same
	"mime"
	"net/http"
	"path"
	"strings"

	"chorus/internal/sim/discordsim/apierror"
)

// keep stores the files of a body and returns all attachments of the message.
func (g *Guild) keep(c *Channel, b *messageBody, have []Attachment) ([]Attachment, error) {
	out := append([]Attachment{}, have...)
	for _, f := range b.files {
		if len(f.Data) > AttachmentLimit {
			return nil, apierror.Refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
		}
	}
	for _, f := range b.files {
		a := Attachment{ID: g.NewID(), Filename: fileName(f.Name), Size: len(f.Data), ContentType: f.Kind}
		for _, said := range b.Attachments {
			if strings.Trim(string(said.ID), `"`) == f.Number {
				a.Description = said.Description
				if said.Filename != "" {
					a.Filename = fileName(said.Filename)
				}
			}
		}
		if a.ContentType == "" || a.ContentType == "application/octet-stream" {
			a.ContentType = mime.TypeByExtension(path.Ext(a.Filename))
		}
		if size, _, err := image.DecodeConfig(bytes.NewReader(f.Data)); err == nil {
			a.Width, a.Height = &size.Width, &size.Height
		}
		a.URL = g.url + "/attachments/" + c.ID.String() + "/" + a.ID.String() + "/" + a.Filename
		a.ProxyURL = a.URL
		g.files[a.ID] = f.Data
		if b.lie != nil {
			b.lie(&a)
		}
		out = append(out, a)
	}
	if len(out) > 10 {
		return nil, apierror.Wrong("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
	return out, nil
}

// fileName keeps the characters of a name that Discord keeps: letters, digits, dots, dashes, underscores.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		case r == ' ':
			return '_'
		}
		return -1
	}, path.Base(name))
	if strings.Trim(name, ".") == "" {
		return "file"
	}
	return name
}

// Upload stores a file for a command.
func (g *Guild) Upload(c *Channel, name string, data []byte) (ID, error) {
	list, err := g.keep(c, &messageBody{files: []Upload{{Name: name, Data: data}}}, nil)
	if err != nil {
		return 0, err
	}
	g.uploads[list[0].ID] = list[0]
	return list[0].ID, nil
}

// File returns the contents of an attachment.
func (g *Guild) File(id ID) ([]byte, bool) {
	data, ok := g.files[id]
	return data, ok
}
