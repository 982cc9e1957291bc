package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/room/attach"
)

// The limits of what is taken from a message.
const (
	maxFile      = 25 << 20
	maxFiles     = 10 // Discord's own
	fetchTime    = 20 * time.Second
	leastTime    = 2 * time.Second // for one file, when its store has hung before
	fetchTries   = 3
	fetchedAgain = time.Hour // a link that is older is asked for anew
)

// announced are the files of a message before anything of them is here: their names as
// their sender gave them, and where they will lie.
func announced(m discord.Message) chat.Blocks {
	var out chat.Blocks
	taken := map[string]bool{}
	for _, a := range m.Attachments[:min(len(m.Attachments), maxFiles)] {
		at := attach.Path(m.CreatedAt, a.Filename, func(p string) bool { return taken[p] })
		taken[at] = true
		out = append(out, chat.File{Name: attach.Name(a.Filename), Path: at, Size: int64(a.Size), Source: a.URL, Wanted: true})
	}
	return out
}

// errStale: the store does not know the link (any more); a new one may work.
var errStale = errors.New("the link does not lead to it any more")

// download loads a file from the platform's own store. What the message says of its size and
// type is not believed.
func (b *Bot) download(ctx context.Context, at string) ([]byte, error) {
	if !b.trusts(at) {
		return nil, connector.Refusal("it does not lie with Discord")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, connector.Refusal("its link is no address")
	}
	rs, err := b.files.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	switch code := rs.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotFound || code == http.StatusForbidden || code == http.StatusGone || code == http.StatusUnauthorized:
		return nil, errStale
	case code >= 500 || code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("the store answered %d", code)
	default:
		return nil, connector.Refusal(fmt.Sprintf("Discord answered %d", code))
	}
	if rs.ContentLength > maxFile {
		return nil, tooLarge()
	}
	data, err := io.ReadAll(io.LimitReader(rs.Body, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, tooLarge()
	}
	return data, nil
}

func tooLarge() error {
	return connector.Refusal("it is larger than the " + attach.Size(maxFile) + " that are taken")
}

// stores are where Discord keeps what people attach.
var stores = []string{"cdn.discordapp.com", "media.discordapp.net"}

// trusts reports whether a file lies with Discord, or with whatever stands in for it.
func (b *Bot) trusts(at string) bool { return trusted(b.API, at) }

func trusted(root, at string) bool {
	u, err := url.Parse(at)
	if err != nil {
		return false
	}
	if slices.Contains(stores, u.Hostname()) {
		return u.Scheme == "https" && u.Port() == ""
	}
	api, err := url.Parse(root)
	return err == nil && root != DefaultAPI && u.Host == api.Host && u.Scheme == api.Scheme
}
