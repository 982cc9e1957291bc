package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"chorus/internal/model"
)

// Side is whose errors are read: they all carry its names and never its key.
type Side struct {
	Provider, Model, Key string
	// Secrets are further words that no error may repeat: values of headers.
	Secrets []string
}

// leastSecret is how long a word must be to be taken out of a text: a shorter one is
// no key, and taking it out would only garble what is said.
const leastSecret = 6

// secrets are the words that no error may repeat.
func (s Side) secrets() []string {
	all := append(slices.Clip(s.Secrets), s.Key)
	return slices.DeleteFunc(all, func(word string) bool { return len(word) < leastSecret })
}

// maxMessage is how much of a provider's sentence is kept: enough for any that
// says something.
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

// Bad is a request that cannot be made.
func (s Side) Bad(format string, args ...any) *model.Error {
	return s.fail(model.BadRequest, fmt.Sprintf(format, args...))
}

// NoKey is a call that was not even tried.
func (s Side) NoKey(variable string) *model.Error {
	return s.fail(model.Auth, "there is no key; set "+variable)
}

// Network is a connection that failed, or a stream that made no sense. A
// cancelled call is one too, with the cancellation as its cause.
func (s Side) Network(err error) *model.Error {
	message := err.Error()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		message = "the call was cancelled"
	}
	e := s.fail(model.Network, message)
	for _, secret := range s.secrets() {
		if strings.Contains(err.Error(), secret) {
			return e
		}
	}
	e.Err = err
	return e
}

// Garbled is a stream that made no sense.
func (s Side) Garbled(format string, args ...any) *model.Error {
	return s.fail(model.Network, fmt.Sprintf(format, args...))
}

// reply is the body of an error in either format, or of neither.
type reply struct {
	Error json.RawMessage `json:"error"`
	// Some compatible servers put it at the top.
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

// behind is what the provider behind a router said, if it is told.
func (r Report) behind() string {
	var meta struct {
		Raw string `json:"raw"`
	}
	if json.Unmarshal(r.Metadata, &meta) != nil || meta.Raw == "" {
		return ""
	}
	return ": " + meta.Raw
}

// ReadReport reads the error out of a body: an object, or only a sentence.
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

// Status is an answer with an HTTP error.
func (s Side) Status(status int, header http.Header, body []byte) *model.Error {
	r := ReadReport(body)
	if strings.TrimSpace(r.Message) == "" {
		r.Message = http.StatusText(status)
	}
	e := s.fail(kindOfStatus(status, r), r.Message)
	if e.Message == "" {
		e.Message = "without a reason" // a status the standard does not know
	}
	e.Status = status
	e.RetryAfter = retryAfter(header, time.Now())
	return e
}

// Event is an error in the middle of a stream.
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

// kindOfWords knows the failures that share a status with others.
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
		return model.Auth // no wait will help: somebody has to pay
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
	return model.Overloaded // overloaded_error, api_error, server_error, and whatever they invent
}

// longest is the most that is believed of a retry-after.
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
