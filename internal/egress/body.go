package egress

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxBody is how much of a request's body is buffered to look for placeholders.
const maxBody = 1 << 20

// errBodyTooLong is the error for a placeholder in a body that is too long to rewrite.
var errBodyTooLong = errors.New("a body of more than 1 MB cannot carry a secret; send it in a header, or a smaller body")

// notation says how placeholders and values are written in a kind of text.
type notation struct {
	mark   *regexp.Regexp
	encode func(string) string
}

// notationOf returns the notation of a body, or false if it is not searched.
func notationOf(h http.Header) (notation, bool) {
	if c := h.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return notation{}, false
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return notation{}, false
	}
	switch {
	case kind == "application/x-www-form-urlencoded":
		return notation{urlPlaceholder(), url.QueryEscape}, true
	case kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "application/x-ndjson":
		return notation{plainPlaceholder(), asJSON}, true
	case strings.HasPrefix(kind, "text/"), kind == "multipart/form-data", kind == "application/xml", kind == "application/graphql",
		kind == "application/yaml", kind == "application/x-yaml", strings.HasSuffix(kind, "+xml"):
		return notation{plainPlaceholder(), asIs}, true
	}
	return notation{}, false
}

// body replaces placeholders in a request's body if its type is text. It returns the body to send and its
// length; -1: unknown, to be sent in chunks. whole reports that the given body was read to its end.
func (s *substituter) body(h http.Header, body io.Reader, length int64) (out io.Reader, n int64, whole bool, err error) {
	if body == nil || body == http.NoBody || length == 0 {
		return http.NoBody, 0, true, nil
	}
	as, ok := notationOf(h)
	if !ok {
		return body, length, false, nil
	}
	held, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil {
		return nil, 0, false, err
	}
	if len(held) > maxBody {
		if as.mark.Match(held) {
			return nil, 0, false, errBodyTooLong
		}
		rest := io.MultiReader(bytes.NewReader(held), body)
		return &placeholderDetector{src: rest, mark: as.mark}, length, false, nil
	}
	text, err := s.text(string(held), as.mark, as.encode)
	if err != nil {
		return nil, 0, true, err
	}
	return strings.NewReader(text), int64(len(text)), true, nil
}

// placeholderDetector passes bytes on and fails at the first placeholder.
type placeholderDetector struct {
	src    io.Reader
	mark   *regexp.Regexp
	window []byte // the end of what was read, in which a placeholder may have started
}

func (t *placeholderDetector) Read(p []byte) (int, error) {
	n, err := t.src.Read(p)
	t.window = append(t.window, p[:n]...)
	if bytes.Contains(t.window, []byte("secret")) && t.mark.Match(t.window) {
		return 0, errBodyTooLong
	}
	if over := len(t.window) - maxPlaceholder; over > 0 {
		t.window = append(t.window[:0], t.window[over:]...)
	}
	return n, err
}
