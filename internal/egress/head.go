package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxFields limits the header lines of one request.
const maxFields = 200

var (
	errHeadTooLarge = errors.New("the header is too large")
	errHead         = errors.New("the request is malformed")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errHead, fmt.Sprintf(format, args...))
}

// readRequest reads the head of a request. It is stricter than net/http, which repairs what two servers may
// read differently: here such a request is refused. The reader's buffer size limits the head.
func readRequest(br *bufio.Reader, began func()) (*http.Request, string, error) {
	head, err := peekHead(br, began)
	if err != nil {
		return nil, "", err
	}
	host, err := checkHead(head)
	if err != nil {
		return nil, "", err
	}
	req, err := http.ReadRequest(br)
	if err != nil {
		return nil, "", malformed("it does not parse") // the error may quote a header
	}
	return req, host, nil
}

// peekHead waits until the whole head is in the buffer. began is called at its first byte.
func peekHead(br *bufio.Reader, began func()) ([]byte, error) {
	if _, err := br.Peek(1); err != nil {
		return nil, err
	}
	began()
	from := 0
	for {
		have, _ := br.Peek(br.Buffered())
		if i := bytes.Index(have[from:], []byte("\r\n\r\n")); i >= 0 {
			return have[:from+i+4], nil
		}
		from = max(0, len(have)-3)
		if len(have) == br.Size() {
			return nil, errHeadTooLarge
		}
		if _, err := br.Peek(len(have) + 1); err != nil {
			return nil, err
		}
	}
}

// checkHead refuses everything that lets two servers disagree on where a
// message ends or whom it is for, and returns the Host header.
func checkHead(head []byte) (string, error) {
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	if strings.Count(lines[0], " ") != 2 || !noControlChars(lines[0]) ||
		!strings.HasSuffix(lines[0], " HTTP/1.1") && !strings.HasSuffix(lines[0], " HTTP/1.0") {
		return "", malformed("its first line is not method, target and HTTP/1.1")
	}
	if len(lines) > maxFields {
		return "", malformed("it has more than %d header lines", maxFields)
	}
	var length, coding, hosts int
	var host string
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch {
		case !ok || !isToken(name):
			return "", malformed("a header line has no proper name")
		case !noControlChars(value):
			return "", malformed("the header %s holds control characters", name)
		}
		switch strings.ToLower(name) {
		case "content-length":
			if length++; value == "" || strings.Trim(value, "0123456789") != "" {
				return "", malformed("its Content-Length is not a number")
			}
		case "transfer-encoding":
			if coding++; !strings.EqualFold(value, "chunked") {
				return "", malformed("its Transfer-Encoding is not chunked")
			}
		case "host":
			hosts, host = hosts+1, value
		}
	}
	switch {
	case length+coding > 1:
		return "", malformed("its length is given more than once")
	case hosts > 1:
		return "", malformed("it names more than one Host")
	case coding > 0 && strings.HasSuffix(lines[0], "/1.0"):
		return "", malformed("HTTP/1.0 knows no Transfer-Encoding")
	}
	return host, nil
}

// isToken reports whether s is a token as in RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// noControlChars reports whether text has no control characters other than tabs.
func noControlChars(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
