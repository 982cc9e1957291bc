package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"chorus/internal/tool"
)

// Get requests an address and returns the response unchanged. It reaches what web_fetch
// reaches, and every redirect is judged like the address itself.
func (c *Client) Get(ctx context.Context, address string, limit time.Duration, most int64) (status int, body string, err error) {
	u, err := parse(address)
	if err != nil {
		return 0, "", err
	}
	if c.leaks(u.String()) {
		return 0, "", tool.Mistake("the address has a secret of this machine in it, which must not be sent to a website; leave it out")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	late := tool.Mistake(fmt.Sprintf("%s did not answer within %v.", u.Host, limit))
	resp, _, err := c.follow(ctx, u, tool.CallFrom(ctx).Hides)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return 0, "", late
	}
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return 0, "", late
	}
	if err != nil {
		return 0, "", unreachable(resp.Request.URL, err)
	}
	return resp.StatusCode, strings.ToValidUTF8(string(data), "\uFFFD"), nil
}
