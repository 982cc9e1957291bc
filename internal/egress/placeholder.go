package egress

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"chorus/internal/pattern"
)

// minValue is the shortest value that is inserted. A shorter one is no secret, and
// could not be removed from responses without garbling them.
const minValue = 4

// The two notations of a placeholder: plain, and as it may be escaped in a URL or a form.
var (
	plainPlaceholder = pattern.Lazy(`\{\{secret:([A-Za-z0-9_.-]{1,64})\}\}`)
	urlPlaceholder   = pattern.Lazy(`(?:\{|%7[Bb]){2}secret(?::|%3[Aa])([A-Za-z0-9_.-]{1,64})(?:\}|%7[Dd]){2}`)
)

const maxPlaceholder = 96 // longer than any placeholder in either notation

func placeholder(name string) string { return "{{secret:" + name + "}}" }

func validName(name string) bool {
	return plainPlaceholder().FindString(placeholder(name)) == placeholder(name)
}

// substituter replaces the placeholders of one request with values. Every value comes
// from the method value, which knows where the request goes.
type substituter struct {
	rules  *ruleset
	to     target
	values map[string]string // the values read so far
}

func newSubstituter(rules *ruleset, to target) *substituter {
	return &substituter{rules: rules, to: to, values: map[string]string{}}
}

// errValue is a mistake in the configuration; its text never contains the value.
var errValue = errors.New("secret value")

func (s *substituter) value(name string) (string, error) {
	for _, rule := range s.rules.secrets {
		if rule.Name != name {
			continue
		}
		if !rule.mayCarry(s.to) {
			r := &refused{Refusal: Refusal{Host: s.to.display(), Kind: WrongHost, Secret: name}}
			if !s.to.tls {
				r.detail = " over plain HTTP"
			}
			return "", r
		}
		return s.fetch(rule)
	}
	return "", &refused{Refusal: Refusal{Host: s.to.display(), Kind: NoSecret, Secret: name}}
}

func (s *substituter) fetch(rule secretRule) (string, error) {
	if v, ok := s.values[rule.Name]; ok {
		return v, nil
	}
	v, err := rule.Value()
	switch {
	case err != nil: // the error is not passed on: its text may contain the value
		return "", fmt.Errorf("%w: the value of the secret %q could not be read; check secrets.%s.value", errValue, rule.Name, rule.Name)
	case len(v) < minValue:
		return "", fmt.Errorf("%w: the value of the secret %q is shorter than %d characters; check secrets.%s.value",
			errValue, rule.Name, minValue, rule.Name)
	}
	s.values[rule.Name] = v
	return v, nil
}

// text replaces the placeholders of one text with values written by encode.
func (s *substituter) text(text string, mark *regexp.Regexp, encode func(string) string) (string, error) {
	if !strings.Contains(text, "secret") {
		return text, nil
	}
	found := mark.FindAllStringSubmatchIndex(text, -1)
	if found == nil {
		return text, nil
	}
	var out strings.Builder
	from := 0
	for _, at := range found {
		v, err := s.value(text[at[2]:at[3]])
		if err != nil {
			return "", err
		}
		out.WriteString(text[from:at[0]])
		out.WriteString(encode(v))
		from = at[1]
	}
	out.WriteString(text[from:])
	return out.String(), nil
}

func asIs(v string) string { return v }

// asJSON returns a value as it appears inside a JSON string.
func asJSON(v string) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw[1 : len(raw)-1])
}

// header replaces placeholders in all header values, including the base64 of basic authentication.
func (s *substituter) header(h http.Header) error {
	for name, values := range h {
		for i, value := range values {
			replaced, err := s.text(value, plainPlaceholder(), asIs)
			if err == nil && replaced == value {
				replaced, err = s.basic(value)
			}
			if err != nil {
				return err
			}
			if !noControlChars(replaced) {
				return fmt.Errorf("%w: a secret holds line breaks, which the header %s cannot carry", errValue, name)
			}
			values[i] = replaced
		}
	}
	return nil
}

func (s *substituter) basic(value string) (string, error) {
	scheme, code, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "basic") {
		return value, nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(code))
	if err != nil {
		return value, nil // the host decides what to do with it
	}
	replaced, err := s.text(string(raw), urlPlaceholder(), asIs) // git leaves a part of a password from a URL escaped
	if err != nil || replaced == string(raw) {
		return value, err
	}
	return scheme + " " + base64.StdEncoding.EncodeToString([]byte(replaced)), nil
}

// url replaces placeholders in path and query.
func (s *substituter) url(u *url.URL) (*url.URL, error) {
	path, err := s.text(u.EscapedPath(), urlPlaceholder(), url.PathEscape)
	if err != nil {
		return nil, err
	}
	query, err := s.text(u.RawQuery, urlPlaceholder(), url.QueryEscape)
	if err != nil {
		return nil, err
	}
	out := &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: query, RawPath: path, ForceQuery: u.ForceQuery}
	if out.Path, err = url.PathUnescape(path); err != nil {
		return nil, malformed("its path does not parse")
	}
	return out, nil
}
