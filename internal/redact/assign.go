package redact

import (
	"slices"
	"strings"
)

// family is what the name of a value says about the value.
type family int

const (
	unnamed  family = iota
	password        // certainly a secret
	token           // a secret, or a token of a parser or of a page
	header          // Authorization
)

// names are the endings of the names of secrets, without the separators between their parts.
var names = []struct {
	end  string
	of   family
	kind string
}{
	{"password", password, "password"}, {"passwd", password, "password"}, {"passphrase", password, "password"}, {"pwd", password, "password"},
	{"secret", password, "secret"},
	{"apikey", token, "token"}, {"token", token, "token"}, {"accesskey", token, "token"}, {"secretkey", token, "token"}, {"privatekey", token, "token"},
	{"accountkey", token, "token"}, {"authkey", token, "token"}, {"signingkey", token, "token"}, {"encryptionkey", token, "token"},
	{"credential", token, "token"}, {"credentials", token, "token"}, {"accesskeyid", token, "token"},
	{"authorization", header, "authorization"},
}

// lastLetters are the last bytes of names; a name that ends otherwise need not be compared.
var lastLetters = func() (t [256]bool) {
	for _, n := range names {
		last := n.end[len(n.end)-1]
		t[last], t[last-'a'+'A'] = true, true
	}
	return t
}()

// longestName is how much of a name is checked.
const longestName = 64

// called returns what a name says about its value. capitals reports whether
// the name is in capitals, like environment variables.
func called(name string) (of family, kind string, capitals bool) {
	if name == "" || !lastLetters[name[len(name)-1]] {
		return unnamed, "", false
	}
	if len(name) > longestName {
		name = name[len(name)-longestName:]
	}
	var buf [longestName]byte
	n := 0
	capitals = true
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.':
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z':
			capitals = false
		}
		buf[n] = c
		n++
	}
	flat := buf[:n]
	if s := string(flat); s == "pwd" || s == "oldpwd" { // the working directory of a shell
		return unnamed, "", false
	}
	for _, known := range names {
		if len(flat) >= len(known.end) && string(flat[len(flat)-len(known.end):]) == known.end {
			return known.of, known.kind, capitals
		}
	}
	return unnamed, "", false
}

// separator checks "name: value", "name=value" and "scheme://user:password@host".
func (s *scanner) separator(i int) {
	if s.text[i] == ':' && strings.HasPrefix(s.text[i:], "://") {
		s.address(i + len("://"))
		return
	}
	if s.text[i] == ':' && s.telegram(i) {
		return
	}
	from, to := s.nameBefore(i)
	of, kind, capitals := called(s.text[from:to])
	if of == unnamed || from > 0 && s.text[from-1] == '/' { // a path: /etc/passwd
		return
	}
	a := assignment{text: s.text, of: of, capitals: capitals && s.text[i] == '=' && to == i, startsLine: s.startsLine(from), adjacent: to == i}
	if from > 0 && to == i && i+1 < len(s.text) && s.text[from-1] == s.text[i+1] && strings.IndexByte("\"'`", s.text[i+1]) >= 0 {
		return // "name=" + value: the quote ends the name
	}
	if a.find(i) && a.secret() {
		s.cut(a.from, a.to, kind)
	}
}

// nameBefore finds the name that ends before the separator at i, possibly in quotes.
func (s *scanner) nameBefore(i int) (from, to int) {
	least := s.done()
	to = i
	for to > least && s.text[to-1] == ' ' && i-to < 8 {
		to--
	}
	if to > least && strings.IndexByte("\"'`", s.text[to-1]) >= 0 {
		to--
		if to > least && s.text[to-1] == '\\' {
			to--
		}
	}
	from = to
	for from > least && to-from < longestName && inName(s.text[from-1]) {
		from--
	}
	return from, to
}

func inName(c byte) bool { return class[c] == letter || c == '_' || c == '-' || c == '.' }

// startsLine reports whether only indentation, a quote, "- " or "export" precedes i in its line.
func (s *scanner) startsLine(i int) bool {
	i -= len(s.text[s.done():i]) - len(strings.TrimSuffix(s.text[s.done():i], "export "))
	for i > 0 && strings.IndexByte(" \t-\"'", s.text[i-1]) >= 0 {
		i--
	}
	return i == 0 || s.text[i-1] == '\n'
}

// assignment is a value after a name.
type assignment struct {
	text       string
	of         family
	capitals   bool // VARIABLE=value
	startsLine bool // the name is the first of its line
	adjacent   bool // no space before the separator
	quoted     bool
	endsLine   bool // the value is the last of its line
	from, to   int
}

// find sets where the value is; sep is where its separator begins.
func (a *assignment) find(sep int) bool {
	text := a.text
	j := sep + 1
	if sep > 0 && strings.IndexByte("!<>=", text[sep-1]) >= 0 {
		return false // a comparison
	}
	if text[sep] == '=' && j < len(text) && text[j] == '=' {
		return false
	}
	if j < len(text) && (text[j] == '=' || text[sep] == '=' && text[j] == '>') {
		j++ // ":=" and "=>"
	}
	for n := 0; j < len(text) && (text[j] == ' ' || text[j] == '\t') && n < 16; n++ {
		j++
	}
	escaped := j+1 < len(text) && text[j] == '\\' && (text[j+1] == '"' || text[j+1] == '\'')
	if escaped {
		j++
	}
	if j >= len(text) {
		return false
	}
	if q := text[j]; q == '"' || q == '\'' || q == '`' {
		a.quoted, a.from = true, j+1
		a.to = closing(text, a.from, q, escaped)
	} else {
		a.from = j
		part := text[j:min(len(text), j+maxValue)]
		if end := strings.IndexAny(part, a.ends()); end >= 0 {
			part = part[:end]
		}
		a.to = j + len(part)
		a.endsLine = a.to == len(text) || text[a.to] == '\n' || text[a.to] == '\r'
	}
	if a.of == header {
		a.credentials()
	}
	return a.to > a.from
}

// ends returns the bytes that end a value without quotes.
func (a *assignment) ends() string {
	switch {
	case a.of == header:
		return "\r\n\"'`\\,;<>)}"
	case a.capitals && a.startsLine:
		return " \t\r\n\"'`\\"
	default:
		return " \t\r\n\"'`\\,;)}]<>&|"
	}
}

// maxValue is longer than any secret on one line.
const maxValue = 8 << 10

// closing finds the quote that ends a value. Without one the value ends with its line.
func closing(text string, from int, quote byte, escaped bool) int {
	for i := from; i < len(text) && i-from < maxValue; i++ {
		switch text[i] {
		case quote:
			return i
		case '\n':
			return i
		case '\\':
			if escaped && i+1 < len(text) && text[i+1] == quote {
				return i
			}
			i++
		}
	}
	return min(len(text), from+maxValue)
}

// credentials leaves the scheme of a header readable: "Bearer", "Basic", "Bot".
func (a *assignment) credentials() {
	value := a.text[a.from:a.to]
	trimmed := strings.TrimRight(value, " \t")
	a.to = a.from + len(trimmed)
	if word, rest, ok := strings.Cut(trimmed, " "); ok && span(word, alnumDash) == len(word) {
		a.from = a.to - len(strings.TrimLeft(rest, " "))
	}
}

// ordinary are words that follow such names without being secrets.
var ordinary = []string{"string", "str", "text", "null", "nil", "none", "true", "false", "undefined", "required", "optional", "changed", "password", "passwd", "secret",
	"token", "bool", "boolean", "number", "int", "bytes", "any", "object", "optional[str]", "required.", "hidden", "empty", "unset", "redacted"}

// isID reports whether a value is an id of ours: "token:01k3…" names a token without
// revealing it. It ignores trailing punctuation and emphasis.
func isID(value string) bool {
	value = strings.TrimRight(value, ".:!?*_")
	return len(value) == 26 && strings.HasPrefix(value, "01") && strings.Trim(value, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// secret decides whether the value is a secret.
func (a *assignment) secret() bool {
	value := a.text[a.from:a.to]
	if placeholder(value) || a.of == token && isID(value) {
		return false
	}
	simple := span(value, alnumDot) == len(value)
	spaces := strings.ContainsAny(value, " \t")
	switch {
	case a.of == header:
		return len(value) >= 6 && (a.quoted || !strings.ContainsAny(value, "([")) && !(simple && !hasDigit(value)) && !(spaces && !hasDigit(value))
	case spaces || !a.quoted && strings.ContainsAny(value, "([{"):
		return false // a sentence, or code
	case a.capitals && a.startsLine:
		return len(value) >= 4
	case a.of == password && a.quoted:
		return len(value) >= 4
	case a.of == password:
		return len(value) >= 4 && (!simple || hasDigit(value) || a.startsLine && a.endsLine && a.adjacent && !strings.ContainsAny(value, "._"))
	case strings.Contains(value, "://") || !a.quoted && !a.adjacent && spelled(value)*5 > len(value)*2:
		return false // an address, or a name
	default:
		least := 16
		if a.quoted || a.capitals {
			least = 12
		}
		return len(value) >= least && hasDigit(value) && strings.IndexFunc(value, isLetter) >= 0
	}
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// placeholder reports whether a value only refers to a secret, such as $NAME.
func placeholder(value string) bool {
	switch rest := value[1:]; value[0] {
	case '<', '(', '{', '&', ':':
		return true
	case '$', '%': // $NAME, %NAME%, %s
		if len(rest) < 3 || strings.ToUpper(rest) == rest && span(strings.TrimSuffix(rest, "%"), upperDigits+"_") >= len(rest)-1 {
			return true
		}
	}
	if strings.Contains(value, markHead) || strings.Trim(value, value[:1]) == "" {
		return true
	}
	for _, inside := range []string{"${", "{{", "$(", "process.env", "os.environ", "getenv", "Getenv"} {
		if strings.Contains(value, inside) {
			return true
		}
	}
	return slices.Contains(ordinary, strings.ToLower(strings.TrimRight(value, ".?!")))
}

// longestHost limits how far a URL's user and host are read.
const longestHost = 1 << 10

// address cuts the password of "scheme://user:password@host"; i is after the slashes.
func (s *scanner) address(i int) {
	part := s.text[i:min(len(s.text), i+longestHost)]
	if end := strings.IndexAny(part, " \t\r\n/?#\"'`<>\\"); end >= 0 {
		part = part[:end]
	}
	at := strings.LastIndexByte(part, '@')
	if at < 0 {
		return
	}
	colon := strings.IndexByte(part[:at], ':')
	if colon < 0 || colon+1 == at {
		return
	}
	if value := part[colon+1 : at]; !placeholder(value) {
		s.cut(i+colon+1, i+at, "password")
	}
}
