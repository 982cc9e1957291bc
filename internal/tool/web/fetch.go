package web

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"chorus/internal/netguard"
	"chorus/internal/tool"
)

//go:embed web_fetch.md
var fetchProse string

// Characters of one answer. They fit into one result even if some take three bytes.
const (
	usualChars = 20_000
	mostChars  = 45_000
)

type fetchIn struct {
	URL    string `json:"url" jsonschema:"the page's address"`
	Offset int    `json:"offset,omitempty" jsonschema:"the character to read on from in a long page"`
	Limit  int    `json:"limit,omitempty" jsonschema:"characters to show, default 20000, at most 45000"`
	Full   bool   `json:"full,omitempty" jsonschema:"everything with menus and links, not the main text alone"`
}

func (c *Client) fetchTool() tool.Tool {
	return tool.New(tool.Func[fetchIn]{
		Name: FetchName, Description: fetchProse, Risk: tool.Medium, ReadOnly: true,
		Aliases: []tool.Alias{tool.Also("fetch"), tool.Also("fetch_url"), tool.Also("webfetch")},
		Access: func(in fetchIn) []tool.Access {
			u, err := parse(in.URL)
			if err != nil {
				return nil
			}
			return []tool.Access{{Tool: FetchName, Detail: u.String()}}
		},
		Label: func(in fetchIn) string { return "fetch " + strings.TrimSpace(in.URL) },
		Run: func(ctx context.Context, in fetchIn) (tool.Result, error) {
			u, err := parse(in.URL)
			if err != nil {
				return tool.FailOrEnd(ctx, err)
			}
			if c.leaks(u.String()) {
				return tool.Fail("The URL has a secret of this machine in it, which must not be sent to a website. Leave it out."), nil
			}
			p, err := c.page(ctx, u, in.Full)
			if err != nil {
				return tool.FailOrEnd(ctx, err)
			}
			return p.show(in.Offset, in.Limit), nil
		},
	})
}

// page returns a page from the cache or from the web.
func (c *Client) page(ctx context.Context, u *url.URL, full bool) (*page, error) {
	hides := tool.CallFrom(ctx).Hides
	if p := c.cache.get(u.String(), full); p != nil && (hides == nil || !slices.ContainsFunc(p.visited, hides)) {
		return p, nil
	}
	timed, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	resp, visited, err := c.follow(timed, u, hides)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	final := resp.Request.URL
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, unreachable(final, err)
	}
	cut := len(data) > maxBody
	p, err := read(final, resp.Header.Get("Content-Type"), data[:min(len(data), maxBody)], full)
	if err != nil {
		return nil, err
	}
	p.visited, p.cut, p.status = visited, cut, resp.StatusCode
	if p.status < 400 {
		c.cache.put(u.String(), full, p)
	}
	return p, nil
}

// follow makes the request and follows its redirects. visited are the addresses after the first.
func (c *Client) follow(ctx context.Context, u *url.URL, hides func(string) bool) (_ *http.Response, visited []string, err error) {
	for range maxRedirects + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, nil, tool.Mistake(fmt.Sprintf("%s cannot be requested: %v", u, err))
		}
		req.Header.Set("User-Agent", agentName)
		req.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5")
		req.Header.Set("Accept-Language", "en, *;q=0.5")
		resp, err := c.pages.Do(req)
		if err != nil {
			return nil, nil, unreachable(u, err)
		}
		location := resp.Header.Get("Location")
		if !redirects(resp.StatusCode) || location == "" {
			return resp, visited, nil
		}
		_ = resp.Body.Close()
		from := u
		to, err := u.Parse(location)
		if err == nil {
			u, err = canonical(to)
		}
		if err != nil {
			return nil, nil, tool.Mistake(fmt.Sprintf("%s redirects to %q, which web_fetch does not read.", from, location))
		}
		if hides != nil && hides(u.String()) {
			return nil, nil, tool.Mistake(fmt.Sprintf("%s redirects to %s, which was not requested. Call web_fetch with that URL if you want to read it.", from, u))
		}
		visited = append(visited, u.String())
	}
	return nil, nil, tool.Mistake(fmt.Sprintf("More than %d redirects, the last to %s.", maxRedirects, u))
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// unreachable says why there is no answer, and what can be done.
func unreachable(u *url.URL, err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // it does not repeat the address
	}
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, netguard.ErrRefused):
		return tool.Mistake(fmt.Sprintf("%s is not fetched: %v. The operator can name the host with its port in egress.hosts.", u.Host, err))
	case errors.As(err, &name) && name.IsNotFound:
		return tool.Mistake(fmt.Sprintf("There is no host %s.", u.Hostname()))
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return tool.Mistake(fmt.Sprintf("%s did not answer within %v.", u.Host, fetchTime))
	}
	return tool.Mistake(fmt.Sprintf("%s could not be fetched: %v", u, err))
}

// read converts what was fetched to text, or says why it cannot.
func read(u *url.URL, contentType string, data []byte, full bool) (*page, error) {
	contentType = cmp.Or(contentType, http.DetectContentType(data))
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = strings.ToLower(strings.TrimSpace(strings.SplitN(contentType, ";", 2)[0]))
	}
	if bytes.HasPrefix(data, []byte("%PDF-")) {
		media = "application/pdf"
	}
	p := &page{url: u.String()}
	switch {
	case media == "text/html" || media == "application/xhtml+xml":
		return p, p.readHTML(u, decode(data, contentType), full)
	case strings.HasPrefix(media, "text/"), isText[media], strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "+yaml"):
		p.text = decode(data, contentType)
		return p, nil
	case media == "application/pdf":
		return nil, tool.Mistake(fmt.Sprintf("%s is a PDF, which web_fetch does not read. Look for the same text as a web page, or download the file with a command and turn it into text there (pdftotext).", u))
	case strings.HasPrefix(media, "image/"), strings.HasPrefix(media, "audio/"), strings.HasPrefix(media, "video/"):
		return nil, tool.Mistake(fmt.Sprintf("%s is %s, not text; web_fetch reads pages, text and JSON.", u, media))
	}
	if media == "application/octet-stream" && utf8.Valid(data) && !bytes.ContainsRune(data, 0) { // many servers declare text files so
		p.text = string(data)
		return p, nil
	}
	return nil, tool.Mistake(fmt.Sprintf("%s is %s, which web_fetch does not read; it reads pages, text and JSON. Download it with a command if you need it.", u, media))
}

var isText = map[string]bool{
	"application/json": true, "application/x-ndjson": true, "application/xml": true, "application/yaml": true, "application/x-yaml": true, "application/toml": true,
	"application/javascript": true, "application/x-javascript": true, "application/typescript": true, "application/x-sh": true, "application/sql": true, "application/markdown": true,
}

// decode converts text to UTF-8, by the header, the page's own declaration, or the bytes.
func decode(data []byte, contentType string) string {
	if utf8.Valid(data) && !strings.Contains(strings.ToLower(contentType), "charset=") {
		return strings.TrimPrefix(string(data), "\uFEFF")
	}
	encoding, _, _ := charset.DetermineEncoding(data, contentType)
	out, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		out = data
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(out), "\uFFFD"), "\uFEFF")
}
