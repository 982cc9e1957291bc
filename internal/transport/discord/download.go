package discord

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"chorus/internal/platform"
)

// downloader fetches files and does not follow links away from Discord.
func downloader(o Options) *http.Client {
	client := *o.HTTP
	client.Timeout = 0 // each call has its own timeout
	client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if !trusted(o.API, req.URL.String()) {
			return platform.Refusal("its link leads away from Discord")
		}
		return nil
	}
	return &client
}

// Download implements platform.Downloads. It does not trust the message's information about a file's size and
// type.
func (c *Client) Download(ctx context.Context, at string, limit int64) ([]byte, error) {
	if !trusted(c.API, at) {
		return nil, platform.Refusal("it is not stored on Discord")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, platform.Refusal("its link is not an address")
	}
	rs, err := c.files.Do(req)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	switch code := rs.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotFound || code == http.StatusForbidden || code == http.StatusGone || code == http.StatusUnauthorized:
		return nil, platform.ErrStale
	case code >= 500 || code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("the store answered %d", code)
	default:
		return nil, platform.Refusal(fmt.Sprintf("Discord answered %d", code))
	}
	if rs.ContentLength > limit {
		return nil, platform.ErrTooLarge
	}
	data, err := io.ReadAll(io.LimitReader(rs.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, platform.ErrTooLarge
	}
	return data, nil
}

// stores are Discord's servers for attachments and for its copies of linked pictures.
var stores = []string{"cdn.discordapp.com", "media.discordapp.net", "images-ext-1.discordapp.net", "images-ext-2.discordapp.net"}

// trusted reports whether a file is stored on Discord, or on its replacement.
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
