package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"chorus/internal/model"
)

// Side identifies whose errors are read. They all carry its names and never its key.
type Side struct {
	Provider, Model, Key string
	// Secrets are further words that no error may repeat: values of headers.
	Secrets []string
}

// leastSecret is how long a word must be to be redacted: a shorter one is no
// key, and redacting it would only garble the text.
const leastSecret = 6

// secrets returns the words that no error may repeat.
func (s Side) secrets() []string {
	all := append(slices.Clip(s.Secrets), s.Key)
	return slices.DeleteFunc(all, func(word string) bool { return len(word) < leastSecret })
}

// maxMessage is how much of a provider's message is kept: enough for any useful one.
const maxMessage = 600

// clean makes text fit for an error.
func (s Side) clean(text string) string {
	for _, secret := range s.secrets() {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	if len(text) > maxMessage {
		cut := maxMessage
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

func (s Side) fail(kind model.ErrorKind, message string) *model.Error {
	return &model.Error{Kind: kind, Provider: s.Provider, Model: s.Model, Message: s.clean(message)}
}

// Bad returns the error for a request that cannot be made.
func (s Side) Bad(format string, args ...any) *model.Error {
	return s.fail(model.BadRequest, fmt.Sprintf(format, args...))
}

// NoKey returns the error for a call that was not even tried.
func (s Side) NoKey(variable string) *model.Error {
	return s.fail(model.Auth, "there is no key; set "+variable)
}

// Network returns the error for a connection that failed, or a stream that made no sense. It
// also covers a cancelled call, with the cancellation as its cause.
func (s Side) Network(err error) *model.Error {
	message := plain(err)
	e := s.fail(model.Network, message)
	for _, secret := range s.secrets() {
		if strings.Contains(err.Error(), secret) {
			return e
		}
	}
	e.Err = err
	return e
}

// plain says why there was no answer, without the words of Go's libraries where the cause is an ordinary one.
func plain(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "the call was cancelled"
	}
	host := "the provider"
	if asked, ok := errors.AsType[*url.Error](err); ok {
		if address, err := url.Parse(asked.URL); err == nil && address.Host != "" {
			host = address.Host
		}
		err = asked.Err
	}
	name, isName := errors.AsType[*net.DNSError](err)
	switch {
	case isName && name.IsNotFound:
		return "the name " + name.Name + " is not known here; is this machine online?"
	case isName:
		return "the name " + name.Name + " could not be looked up; is this machine online?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refuses connections; is it running?"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return host + " cannot be reached from here"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return host + " closed the connection"
	}
	return err.Error()
}

// Garbled returns the error for a stream that made no sense.
func (s Side) Garbled(format string, args ...any) *model.Error {
	return s.fail(model.Network, fmt.Sprintf(format, args...))
}

// reply is the body of an error in either format, or in neither.
type reply struct {
	Error json.RawMessage `json:"error"`
	// Some compatible servers put it at the top level.
	Message string `json:"message"`
	Detail  any    `json:"detail"`
}

// Report is what a provider says went wrong. Code may be a string or a number.
type Report struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Code    any    `json:"code"`
	// Metadata is OpenRouter's: what the provider behind it said.
	Metadata json.RawMessage `json:"metadata"`
}

// behind returns what the provider behind a router said, if known.
func (r Report) behind() string {
	var meta struct {
		Raw string `json:"raw"`
	}
	if json.Unmarshal(r.Metadata, &meta) != nil || meta.Raw == "" {
		return ""
	}
	return ": " + meta.Raw
}

// ReadReport reads the error from a body: an object, or only a sentence.
func ReadReport(body []byte) Report {
	var r reply
	if json.Unmarshal(body, &r) != nil {
		return Report{Message: string(body)}
	}
	var report Report
	switch {
	case len(r.Error) > 0 && json.Unmarshal(r.Error, &report) == nil && (report.Message != "" || report.Type != ""):
		report.Message += report.behind()
		return report
	case len(r.Error) > 0 && json.Unmarshal(r.Error, &report.Message) == nil && report.Message != "":
		return report
	case r.Message != "":
		return Report{Message: r.Message}
	case r.Detail != nil:
		return Report{Message: fmt.Sprint(r.Detail)}
	default:
		return Report{Message: string(body)}
	}
}

func (r Report) code() string {
	s, _ := r.Code.(string)
	return s
}

// Status returns the error for an HTTP error status.
func (s Side) Status(status int, header http.Header, body []byte) *model.Error {
	r := ReadReport(body)
	if strings.TrimSpace(r.Message) == "" {
		r.Message = http.StatusText(status)
	}
	e := s.fail(kindOfStatus(status, r), r.Message)
	if e.Message == "" {
		e.Message = "without a reason" // a status that the standard does not know
	}
	e.Status = status
	e.RetryAfter = retryAfter(header, time.Now())
	return e
}

// Event returns the error for one in the middle of a stream.
func (s Side) Event(r Report) *model.Error {
	r.Message = cmp.Or(r.Message, r.Type)
	return s.fail(kindOfEvent(r), r.Message)
}

func kindOfStatus(status int, r Report) model.ErrorKind {
	if kind := kindOfWords(r); kind != "" && status < 500 {
		return kind
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return model.Auth
	case status == http.StatusTooManyRequests:
		return model.RateLimited
	case status == http.StatusRequestEntityTooLarge:
		return model.TooLong
	case status == http.StatusRequestTimeout:
		return model.Network
	case status >= 500:
		return model.Overloaded // 529 is Anthropic's own
	default:
		return model.BadRequest
	}
}

// kindOfWords recognises failures that share a status with others.
func kindOfWords(r Report) model.ErrorKind {
	text := strings.ToLower(r.Message)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	switch {
	case r.code() == "context_length_exceeded", r.code() == "string_above_max_length",
		has("prompt is too long", "maximum context length", "exceed context limit", "context window", "context length exceeded", "input is too long"):
		return model.TooLong
	case r.code() == "insufficient_quota", has("credit balance is too low", "exceeded your current quota"):
		return model.Auth // waiting does not help: somebody has to pay
	case r.code() == "content_filter", r.code() == "content_policy_violation", has("content filtering policy", "content management policy"):
		return model.Refused
	default:
		return ""
	}
}

func kindOfEvent(r Report) model.ErrorKind {
	if kind := kindOfWords(r); kind != "" {
		return kind
	}
	switch r.Type {
	case "authentication_error", "permission_error", "billing_error":
		return model.Auth
	case "rate_limit_error", "rate_limit_exceeded", "requests", "tokens":
		return model.RateLimited
	case "request_too_large":
		return model.TooLong
	case "invalid_request_error", "not_found_error":
		return model.BadRequest
	}
	switch r.code() {
	case "rate_limit_exceeded":
		return model.RateLimited
	case "invalid_api_key":
		return model.Auth
	}
	return model.Overloaded // overloaded_error, api_error, server_error, and future types
}

// longest is the longest retry-after that is respected.
const longest = 24 * time.Hour

// retryAfter reads how long to wait: milliseconds, seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	number := func(name string, unit time.Duration) (time.Duration, bool) {
		n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
		if err != nil || n != n || n < 0 {
			return 0, false
		}
		if n > float64(longest)/float64(unit) {
			return longest, true
		}
		return time.Duration(n * float64(unit)), true
	}
	if d, ok := number("Retry-After-Ms", time.Millisecond); ok {
		return d
	}
	if d, ok := number("Retry-After", time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}
