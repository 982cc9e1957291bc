package redact

import "strings"

// shape is how a vendor's keys look: a beginning that nothing else has, then at least
// so many bytes of a set.
type shape struct {
	head  string
	set   string
	least int
	exact bool // no more than least
	digit bool // one of them is a digit: the beginning alone is too common
	kind  string
}

const (
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	alnum       = upperDigits + "abcdefghijklmnopqrstuvwxyz"
	alnumDash   = alnum + "-_"
	alnumDot    = alnumDash + "."
	tokenSet    = alnumDot + "~+/="
)

var shapes = []shape{
	{head: "sk-ant-", set: alnumDash, least: 12, kind: "anthropic-key"},
	{head: "sk-proj-", set: alnumDash, least: 16, kind: "openai-key"},
	{head: "sk-svcacct-", set: alnumDash, least: 16, kind: "openai-key"},
	{head: "sk-or-", set: alnumDash, least: 16, digit: true, kind: "openrouter-key"},
	{head: "sk-", set: alnumDash, least: 20, digit: true, kind: "api-key"},
	{head: "sk_live_", set: alnum, least: 16, kind: "stripe-key"},
	{head: "sk_test_", set: alnum, least: 16, kind: "stripe-key"},
	{head: "rk_live_", set: alnum, least: 16, kind: "stripe-key"},
	{head: "whsec_", set: alnum, least: 24, kind: "stripe-key"},
	{head: "AKIA", set: upperDigits, least: 16, exact: true, kind: "aws-key"},
	{head: "ASIA", set: upperDigits, least: 16, exact: true, kind: "aws-key"},
	{head: "ghp_", set: alnum, least: 20, kind: "github-token"},
	{head: "gho_", set: alnum, least: 20, kind: "github-token"},
	{head: "ghu_", set: alnum, least: 20, kind: "github-token"},
	{head: "ghs_", set: alnum, least: 20, kind: "github-token"},
	{head: "ghr_", set: alnum, least: 20, kind: "github-token"},
	{head: "github_pat_", set: alnumDash, least: 20, kind: "github-token"},
	{head: "glpat-", set: alnumDash, least: 16, kind: "gitlab-token"},
	{head: "xoxb-", set: alnumDash, least: 10, kind: "slack-token"},
	{head: "xoxa-", set: alnumDash, least: 10, kind: "slack-token"},
	{head: "xoxp-", set: alnumDash, least: 10, kind: "slack-token"},
	{head: "xoxr-", set: alnumDash, least: 10, kind: "slack-token"},
	{head: "xoxs-", set: alnumDash, least: 10, kind: "slack-token"},
	{head: "xoxe-", set: alnumDash, least: 10, kind: "slack-token"},
	{head: "xapp-", set: alnumDash, least: 10, digit: true, kind: "slack-token"},
	{head: "chorus_", set: alnum, least: 40, kind: "chorus-token"},
	{head: "AIza", set: alnumDash, least: 35, kind: "google-key"},
	{head: "ya29.", set: alnumDash, least: 20, kind: "google-token"},
	{head: "GOCSPX-", set: alnumDash, least: 20, kind: "google-key"},
	{head: "npm_", set: alnum, least: 36, kind: "npm-token"},
	{head: "pypi-", set: alnumDash, least: 50, kind: "pypi-token"},
	{head: "hf_", set: alnum, least: 30, kind: "huggingface-token"},
	{head: "gsk_", set: alnum, least: 40, kind: "api-key"},
	{head: "xai-", set: alnum, least: 40, kind: "api-key"},
	{head: "SG.", set: alnumDot, least: 60, kind: "sendgrid-key"},
	{head: "dop_v1_", set: alnum, least: 40, kind: "digitalocean-token"},
	{head: "shpat_", set: alnum, least: 32, kind: "shopify-token"},
	{head: "AGE-SECRET-KEY-1", set: upperDigits, least: 50, kind: "age-key"},
	{head: "hooks.slack.com/services/", set: alnum + "/", least: 20, kind: "webhook"},
	{head: "api/webhooks/", set: alnumDash + "/", least: 60, kind: "webhook"},
}

// maybeKey are the bytes that some key begins with.
var maybeKey = func() (t [256]bool) {
	for _, s := range shapes {
		t[s.head[0]] = true
	}
	for _, c := range []byte("eMNOBb") { // JWT, Discord, Bearer, Basic
		t[c] = true
	}
	return t
}()

// shapesOf are the shapes by their first byte.
var shapesOf = func() (t [256][]*shape) {
	for i := range shapes {
		first := shapes[i].head[0]
		t[first] = append(t[first], &shapes[i])
	}
	return t
}()

// vendor finds a key in the word that begins at i: where it begins, how long it is.
// A length of 0 is none.
func (s *scanner) vendor(i int) (from, length int, kind string) {
	text := s.text[i:]
	for _, sh := range shapesOf[text[0]] {
		if len(text) < len(sh.head) || text[1] != sh.head[1] || !strings.HasPrefix(text, sh.head) {
			continue
		}
		rest := text[len(sh.head):]
		n := span(rest, sh.set)
		if n < sh.least || sh.exact && (n != sh.least || n < len(rest) && class[rest[n]] == letter) {
			continue
		}
		if sh.digit && !hasDigit(rest[:n]) {
			continue
		}
		return i, len(sh.head) + n, sh.kind
	}
	switch text[0] {
	case 'e':
		return i, jwt(text), "jwt"
	case 'M', 'N', 'O':
		return i, discord(text), "discord-token"
	case 'B', 'b':
		skip, n := scheme(text)
		return i + skip, n, "authorization"
	}
	return i, 0, ""
}

// jwt is the length of a JSON web token: three parts, of which the first two are JSON.
func jwt(text string) int {
	if !strings.HasPrefix(text, "eyJ") {
		return 0
	}
	head := span(text, alnumDash)
	if head < 12 || !strings.HasPrefix(text[head:], ".eyJ") {
		return 0
	}
	n := head + 1
	n += span(text[n:], alnumDash)
	if n < len(text) && text[n] == '.' {
		n++
		n += span(text[n:], alnumDash)
	}
	return n
}

// discord is the length of a bot's token: its number in base64, a time, a signature.
func discord(text string) int {
	a := span(text, alnumDash)
	if a < 23 || a > 30 || a >= len(text) || text[a] != '.' {
		return 0
	}
	b := span(text[a+1:], alnumDash)
	if b < 6 || b > 7 || a+1+b >= len(text) || text[a+1+b] != '.' {
		return 0
	}
	c := span(text[a+b+2:], alnumDash)
	if c < 27 {
		return 0
	}
	return a + b + 2 + c
}

// scheme finds the credentials behind "Bearer " or "Basic ": where they begin and how
// long they are. Words of a sentence are none.
func scheme(text string) (skip, n int) {
	for _, word := range []string{"Bearer ", "Basic "} {
		if len(text) > len(word) && strings.EqualFold(text[:len(word)], word) {
			value := text[len(word):]
			n := span(value, tokenSet)
			if n >= 12 && (hasDigit(value[:n]) || value[n-1] == '=') {
				return len(word), n
			}
		}
	}
	return 0, 0
}

// span is how many bytes at the beginning of text are of the set.
func span(text, set string) int {
	for i := range len(text) {
		if strings.IndexByte(set, text[i]) < 0 {
			return i
		}
	}
	return len(text)
}

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

const (
	blockHead = "-----BEGIN "
	blockTail = "-----END "
	keyWords  = "PRIVATE KEY"
	// maxBlock is far more than any private key is long.
	maxBlock = 64 << 10
)

// block cuts a private key in armour. One whose end is missing ends with the text.
func (s *scanner) block(i int) {
	head, ok := keyBlock(s.text[i:])
	if !ok {
		s.data = s.data || head > 0 // a certificate, a public key
		return
	}
	limit := min(len(s.text), i+maxBlock)
	rest := s.text[i+head : limit]
	end := strings.Index(rest, blockTail)
	if end < 0 {
		s.cut(i, limit, "private-key")
		return
	}
	end += i + head + len(blockTail)
	if n := strings.Index(s.text[end:min(len(s.text), end+100)], "-----"); n >= 0 {
		end += n + len("-----")
	}
	s.cut(i, end, "private-key")
}

// keyBlock gives the length of the first line of a private key in armour.
func keyBlock(text string) (int, bool) {
	if !strings.HasPrefix(text, blockHead) {
		return 0, false
	}
	line := text[:min(len(text), 100)]
	n := strings.Index(line[len(blockHead):], "-----")
	if n < 0 {
		return 0, false
	}
	n += len(blockHead)
	return n + len("-----"), strings.Contains(line[:n], keyWords)
}
