package redact

import "strings"

// head is one beginning of a format.
type head struct {
	text string
	of   *format
}

// heads are the beginnings of formats by their first byte, in the order of the table.
var heads = func() (t [256][]head) {
	for i := range formats {
		for _, text := range formats[i].heads {
			t[text[0]] = append(t[text[0]], head{text, &formats[i]})
		}
	}
	return t
}()

// starts is a bit set of the pairs of bytes with which tokens begin.
// It rules out nearly every word of a text.
var starts = func() (t [1 << 16 / 64]uint64) {
	add := func(a, b byte) {
		n := uint(a)<<8 | uint(b)
		t[n/64] |= 1 << (n % 64)
	}
	for i := range formats {
		for _, text := range formats[i].heads {
			add(text[0], text[1])
		}
	}
	for _, other := range []string{"ey", "Be", "be", "BE", "Ba", "ba", "BA"} { // JWT, Bearer, Basic
		add(other[0], other[1])
	}
	for _, a := range []byte("MNO") { // a Discord bot's number in base64
		for b := range 256 {
			add(a, byte(b))
		}
	}
	return t
}()

// startsToken reports whether a token may begin at i.
func (s *scanner) startsToken(i int) bool {
	if i+1 >= len(s.text) {
		return false
	}
	n := uint(s.text[i])<<8 | uint(s.text[i+1])
	return starts[n/64]&(1<<(n%64)) != 0
}

// token finds a token in the word that begins at i. It returns where its secret
// part begins, and its length; 0 means that there is none.
func (s *scanner) token(i int) (from, length int, kind string) {
	text := s.text[i:]
	for _, h := range heads[text[0]] {
		if text[1] != h.text[1] || !strings.HasPrefix(text, h.text) {
			continue
		}
		if n := h.of.match(text[len(h.text):]); n > 0 && (!h.of.alone || s.standsAlone(i, i+len(h.text)+n)) {
			return i, len(h.text) + n, h.of.kind
		}
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

// match returns how many bytes of text, which follows the beginning,
// belong to the token, or 0 if it is not one.
func (f *format) match(text string) int {
	n, ok := f.part.match(text)
	if !ok {
		return 0
	}
	bounded := f.most > 0
	for _, p := range f.then {
		more, ok := p.match(text[n:])
		if !ok {
			return 0
		}
		n += more
		bounded = p.most > 0
	}
	if bounded && n < len(text) && class[text[n]] == letter {
		return 0 // it continues, so it is something longer
	}
	if f.digit && !hasDigit(text[:n]) || f.mixed && !mixed(text[:n]) {
		return 0
	}
	return n
}

func (p part) match(text string) (n int, ok bool) {
	if p.most > 0 && len(text) > p.most {
		text = text[:p.most]
	}
	n = span(text, p.set)
	return n, n >= p.least
}

// standsAlone reports whether no base64 byte precedes or follows the text between from and to.
func (s *scanner) standsAlone(from, to int) bool {
	return (from == s.done() || !inRun[s.text[from-1]]) && (to == len(s.text) || !inRun[s.text[to]])
}

// beginsToken reports whether a word may be the beginning of a token whose end is missing.
// If ordinary words have the same beginning, a digit must follow.
func beginsToken(word string) bool {
	if word == "" {
		return false
	}
	for _, h := range heads[word[0]] {
		rest, ok := strings.CutPrefix(word, h.text)
		if !ok || rest == "" || (h.of.digit || h.of.mixed || h.of.alone || h.of.most > 0) && !hasDigit(rest) {
			continue
		}
		if h.of.fits(rest) {
			return true
		}
	}
	return false
}

// fits reports whether text, which follows the beginning, may continue to a token.
func (f *format) fits(text string) bool {
	n, ok := f.part.match(text)
	for i := 0; ok && n < len(text) && i < len(f.then); i++ {
		text = text[n:]
		n, ok = f.then[i].match(text)
	}
	return n == len(text)
}

// mixed reports whether a text has digits, capitals and lower-case letters, and few words.
func mixed(text string) bool {
	upper, lower := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		}
	}
	return hasDigit(text) && upper*8 >= len(text) && lower*8 >= len(text) && spelled(text)*3 <= len(text)
}

// jwt returns the length of a JSON web token: three parts, of which the first two are JSON.
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

// discord returns the length of a bot's token: its number in base64, a time, a signature.
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

// telegram finds the token of a Telegram bot around the colon at i: its number
// before, 35 characters after, of which the first is an A.
func (s *scanner) telegram(i int) bool {
	if i+1 >= len(s.text) || s.text[i+1] != 'A' || span(s.text[i+1:], alnumDash) != 35 {
		return false
	}
	from := i
	for from > s.done() && s.text[from-1] >= '0' && s.text[from-1] <= '9' {
		from--
	}
	if n := i - from; n < 6 || n > 16 {
		return false
	}
	s.cut(from, i+1+35, "telegram-token")
	return true
}

// azure finds the secret of an application at Azure around the tilde at i:
// three characters, a digit and a Q before, 31 to 34 after.
func (s *scanner) azure(i int) {
	const before = 5 // "abc8Q"
	from := i - before
	if from < s.done() || s.text[i-1] != 'Q' || !hasDigit(s.text[i-2:i-1]) || span(s.text[from:i], alnumDot+"~") != before {
		return
	}
	if from > s.done() && inRun[s.text[from-1]] {
		return
	}
	if n := span(s.text[i+1:], alnumDot+"~"); n >= 31 && n <= 34 {
		s.cut(from, i+1+n, "azure-secret")
	}
}

// scheme finds the credentials after "Bearer " or "Basic ": where they begin
// and their length. Words of a sentence do not count.
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

// span returns how many bytes at the beginning of text belong to the set.
func span(text, set string) int {
	for i := range len(text) {
		if strings.IndexByte(set, text[i]) < 0 {
			return i
		}
	}
	return len(text)
}

func hasDigit(text string) bool { return strings.ContainsAny(text, digits) }
