package discord

import (
	"net/url"
	"path"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/room"
	"chorus/internal/room/split"
)

// beside is the text of a message outside its content: a program's embeds and
// components, a poll, and what it forwards.
func beside(m discord.Message) string {
	parts := []string{embeds(m)}
	if m.Author.Bot || m.WebhookID != nil {
		parts = append(parts, strings.Join(displayed(m.Components), "\n"))
	}
	parts = append(parts, poll(m.Poll))
	for _, s := range m.MessageSnapshots {
		forwarded := discord.Message{Author: discord.User{Bot: true}, Embeds: s.Message.Embeds}
		text := strings.TrimSpace(strings.Join(append([]string{s.Message.Content, embeds(forwarded)}, displayed(s.Message.Components)...), "\n"))
		if text != "" {
			parts = append(parts, "[forwarded message]\n"+text)
		}
	}
	var said []string
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			said = append(said, part)
		}
	}
	return split.Clip(strings.Join(said, "\n\n"), maxEmbed)
}

// poll formats a poll's question with its answers.
func poll(p *discord.Poll) string {
	if p == nil {
		return ""
	}
	text := func(m discord.PollMedia) string {
		if m.Text == nil {
			return ""
		}
		return *m.Text
	}
	lines := []string{"[poll] " + text(p.Question)}
	for _, a := range p.Answers {
		lines = append(lines, "- "+text(a.PollMedia))
	}
	return strings.Join(lines, "\n")
}

// displayed returns the texts in version 2 components, in order.
func displayed[C any](list []C) (out []string) {
	for _, one := range list {
		switch c := any(one).(type) {
		case discord.TextDisplayComponent:
			out = append(out, c.Content)
		case discord.ContainerComponent:
			out = append(out, displayed(c.Components)...)
		case discord.SectionComponent:
			out = append(out, displayed(c.Components)...)
		case discord.MediaGalleryComponent:
			for _, item := range c.Items {
				if item.Description != "" {
					out = append(out, "[picture: "+item.Description+"]")
				}
			}
		}
	}
	return out
}

// maxLinked limits how many unattached pictures are fetched per message.
const maxLinked = 4

// linked returns the pictures that a message shows but does not attach, and the files of
// forwarded messages. It only fetches Discord's copies: another server would learn who
// looks, and could be one that only this machine can reach.
func (c *Client) linked(m discord.Message) (out []room.File) {
	add := func(at string, width int) {
		u, err := url.Parse(at)
		if err != nil || width == 0 || !trusted(c.API, at) || len(out) >= maxLinked {
			return
		}
		name := path.Base(u.Path)
		if !strings.Contains(name, ".") {
			name += ".png"
		}
		out = append(out, room.File{Name: name, URL: at})
	}
	for _, e := range m.Embeds {
		for _, image := range []*discord.EmbedResource{e.Image, e.Thumbnail} {
			if image != nil && (image == e.Image || e.Type == discord.EmbedTypeImage) {
				add(image.ProxyURL, image.Width)
			}
		}
	}
	for _, item := range gallery(m.Components) {
		add(item.ProxyURL, item.Width)
	}
	for _, s := range m.MessageSnapshots {
		for _, a := range s.Message.Attachments {
			out = append(out, room.File{Name: a.Filename, Size: int64(a.Size), URL: a.URL})
		}
	}
	return out
}

// gallery returns the pictures in components.
func gallery[C any](list []C) (out []discord.UnfurledMediaItem) {
	for _, one := range list {
		switch c := any(one).(type) {
		case discord.ContainerComponent:
			out = append(out, gallery(c.Components)...)
		case discord.MediaGalleryComponent:
			for _, item := range c.Items {
				out = append(out, item.Media)
			}
		}
	}
	return out
}
