package web

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"chorus/internal/tool"
)

// parse parses an address as a model writes it. It returns the one spelling that is matched
// with rules and requested: lower case scheme and host without a trailing dot or the default
// port, no dot segments, no fragment. The error is for the model.
func parse(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return nil, tool.Mistake("Give the URL of a page.")
	}
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, tool.Mistake(fmt.Sprintf("%q is not a URL: write it as https://host/path.", raw))
	}
	return canonical(u)
}

// canonical returns that spelling. It refuses an address whose canonical spelling parses as yet
// another address, because what was judged would not be what is requested.
func canonical(u *url.URL) (*url.URL, error) {
	once, err := spelled(u)
	if err != nil {
		return nil, err
	}
	if again, err := url.Parse(once.String()); err == nil {
		if twice, err := spelled(again); err == nil && twice.String() == once.String() {
			return once, nil
		}
	}
	return nil, tool.Mistake(fmt.Sprintf("%q has an unusual spelling; write it as https://host/path.", u))
}

func spelled(u *url.URL) (*url.URL, error) {
	path, err := url.Parse(unescape(u.EscapedPath()))
	if err != nil || path.Scheme != "" || path.Host != "" {
		path = &url.URL{Path: u.Path, RawPath: u.RawPath}
	}
	out := *u.ResolveReference(&url.URL{Path: path.Path, RawPath: path.RawPath, RawQuery: unescape(u.RawQuery)}) // removes dot segments
	out.Scheme = strings.ToLower(out.Scheme)
	switch {
	case out.Scheme != "http" && out.Scheme != "https":
		return nil, tool.Mistake(fmt.Sprintf("web_fetch reads http and https only, not %s. Use another tool for files.", out.Scheme))
	case u.User != nil:
		return nil, tool.Mistake("The URL has a user name or password in it; leave them out.")
	case u.Opaque != "":
		return nil, tool.Mistake(fmt.Sprintf("%q is not a URL: write it as https://host/path.", u))
	}
	host, err := hostOf(u)
	if err != nil {
		return nil, err
	}
	out.Host, out.Fragment, out.RawFragment, out.ForceQuery = host, "", "", false
	out.Path = cmp.Or(out.Path, "/")
	return &out, nil
}

// unescape decodes escapes of letters, digits and other characters that need none: %61 becomes a.
func unescape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				if c := byte(n); c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
					b.WriteByte(c)
				} else {
					b.WriteString(strings.ToUpper(text[i : i+3]))
				}
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func hostOf(u *url.URL) (string, error) {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if !strings.Contains(host, ":") { // an IPv6 address stays as it is
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil || ascii == "" {
			return "", tool.Mistake(fmt.Sprintf("%q is not a host name.", u.Hostname()))
		}
		host = ascii
	} else {
		host = "[" + host + "]"
	}
	port := u.Port()
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return host, nil
	}
	return host + ":" + port, nil
}
