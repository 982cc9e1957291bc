package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/chat"
)

// The limits of what is taken from a message.
const (
	maxPictures = 8
	maxPicture  = 20 << 20
	fetchTime   = 20 * time.Second
)

// attachments are the files of a message: pictures as pictures, others by their names. A
// file that cannot be had never keeps the words back.
func (b *Bot) attachments(ctx context.Context, m discord.Message, l Listener) chat.Blocks {
	var out chat.Blocks
	pictures := 0
	for _, a := range m.Attachments {
		note := fmt.Sprintf("[attached: %s, %s]", a.Filename, size(a.Size))
		if !l.Images || !picture(a) || pictures >= maxPictures {
			out = append(out, chat.Text{Text: note})
			continue
		}
		img, err := b.fetchPicture(ctx, a)
		if err != nil {
			b.Log.Warn("an attachment could not be taken", "event", "attachment_failed", "name", a.Filename, "error", err)
			out = append(out, chat.Text{Text: strings.TrimSuffix(note, "]") + ", could not be read]"})
			continue
		}
		pictures++
		out = append(out, img)
	}
	return out
}

func picture(a discord.Attachment) bool {
	return a.ContentType != nil && strings.HasPrefix(*a.ContentType, "image/")
}

func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// fetchPicture loads a picture from the platform's own store; what it says of its size
// and type is not believed.
func (b *Bot) fetchPicture(ctx context.Context, a discord.Attachment) (chat.Image, error) {
	if a.Size > maxPicture {
		return chat.Image{}, fmt.Errorf("%s is larger than %s", a.Filename, size(maxPicture))
	}
	if !b.trusts(a.URL) {
		return chat.Image{}, fmt.Errorf("%s does not lie with Discord", a.Filename)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return chat.Image{}, err
	}
	rs, err := b.HTTP.Do(req)
	if err != nil {
		return chat.Image{}, err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return chat.Image{}, errors.New(rs.Status)
	}
	data, err := io.ReadAll(io.LimitReader(rs.Body, maxPicture+1))
	if err != nil {
		return chat.Image{}, err
	}
	if len(data) > maxPicture {
		return chat.Image{}, fmt.Errorf("%s is larger than %s", a.Filename, size(maxPicture))
	}
	return b.House.Picture(ctx, a.Filename, data)
}

// stores are where Discord keeps what people attach.
var stores = []string{"cdn.discordapp.com", "media.discordapp.net"}

// trusts reports whether a file lies with Discord, or with whatever stands in for it.
func (b *Bot) trusts(at string) bool {
	u, err := url.Parse(at)
	if err != nil {
		return false
	}
	api, err := url.Parse(b.API)
	return slices.Contains(stores, u.Hostname()) && u.Scheme == "https" || err == nil && u.Host == api.Host && u.Scheme == api.Scheme
}
