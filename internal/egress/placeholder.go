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
)

// minValue is the shortest value that is swapped in. A shorter one is no secret, and
// could not be taken out of answers without garbling them.
const minValue = 4

// The two spellings of a placeholder: as it is, and as it may stand in a URL or a form.
var (
	plainMark = regexp.MustCompile(`\{\{secret:([A-Za-z0-9_.-]{1,64})\}\}`)
	urlMark   = regexp.MustCompile(`(?:\{|%7[Bb]){2}secret(?::|%3[Aa])([A-Za-z0-9_.-]{1,64})(?:\}|%7[Dd]){2}`)
)

const maxMark = 96 // longer than any placeholder in either spelling

func placeholder(name string) string { return "{{secret:" + name + "}}" }

func validName(name string) bool { return plainMark.FindString(placeholder(name)) == placeholder(name) }

// swap puts values in for the placeholders of one request. Every value passes
// value, which knows where the request goes; there is no other way to one.
type swap struct {
	rules  *ruleset
	to     target
	values map[string]string // those asked for until now
}

func newSwap(rules *ruleset, to target) *swap {
	return &swap{rules: rules, to: to, values: map[string]string{}}
}

// errValue is an owner's mistake; the text never holds the value.
var errValue = errors.New("secret value")

func (s *swap) value(name string) (string, error) {
	for _, rule := range s.rules.secrets {
		if rule.Name != name {
			continue
		}
		if !rule.mayCarry(s.to) {
			r := &refused{Refusal: Refusal{Host: s.to.shown(), Kind: WrongHost, Secret: name}}
			if !s.to.tls {
				r.detail = " over plain HTTP"
			}
			return "", r
		}
		return s.fetch(rule)
	}
	return "", &refused{Refusal: Refusal{Host: s.to.shown(), Kind: NoSecret, Secret: name}}
}

func (s *swap) fetch(rule secretRule) (string, error) {
	if v, ok := s.values[rule.Name]; ok {
		return v, nil
	}
	v, err := rule.Value()
	switch {
	case err != nil: // its text is not ours to pass on: it may hold anything
		return "", fmt.Errorf("%w: the value of the secret %q could not be read; check secrets.%s.value", errValue, rule.Name, rule.Name)
	case len(v) < minValue:
		return "", fmt.Errorf("%w: the value of the secret %q is shorter than %d characters; check secrets.%s.value",
			errValue, rule.Name, minValue, rule.Name)
	}
	s.values[rule.Name] = v
	return v, nil
}

// text replaces the placeholders of one text, written by encode.
func (s *swap) text(text string, mark *regexp.Regexp, encode func(string) string) (string, error) {
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

// asJSON writes a value as the inside of a JSON string.
func asJSON(v string) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw[1 : len(raw)-1])
}

// header replaces in all values, also inside the base64 of basic authentication.
func (s *swap) header(h http.Header) error {
	for name, values := range h {
		for i, value := range values {
			swapped, err := s.text(value, plainMark, asIs)
			if err == nil && swapped == value {
				swapped, err = s.basic(value)
			}
			if err != nil {
				return err
			}
			if !clean(swapped) {
				return fmt.Errorf("%w: a secret holds line breaks, which the header %s cannot carry", errValue, name)
			}
			values[i] = swapped
		}
	}
	return nil
}

func (s *swap) basic(value string) (string, error) {
	scheme, code, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "basic") {
		return value, nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(code))
	if err != nil {
		return value, nil // not ours to judge
	}
	swapped, err := s.text(string(raw), urlMark, asIs) // git leaves half of a password from a URL encoded
	if err != nil || swapped == string(raw) {
		return value, err
	}
	return scheme + " " + base64.StdEncoding.EncodeToString([]byte(swapped)), nil
}

// url replaces in path and query.
func (s *swap) url(u *url.URL) (*url.URL, error) {
	path, err := s.text(u.EscapedPath(), urlMark, url.PathEscape)
	if err != nil {
		return nil, err
	}
	query, err := s.text(u.RawQuery, urlMark, url.QueryEscape)
	if err != nil {
		return nil, err
	}
	out := &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: query, RawPath: path, ForceQuery: u.ForceQuery}
	if out.Path, err = url.PathUnescape(path); err != nil {
		return nil, malformed("its path does not parse")
	}
	return out, nil
}
