package redact

import "strings"

const (
	// leastRandom is the minimum length of a word that is judged only by
	// its looks: shorter ones are too often names.
	leastRandom = 32
	// mostRandom is the length of the longest keys; longer words are data.
	mostRandom = 128
	// leastDataLine is the minimum length of a full line of wrapped base64.
	leastDataLine = 60
	// awsSecret is the length of AWS's secret keys, which may contain slashes.
	awsSecret = 40
)

// checksums are the words before hashes that are not secret.
var checksums = []string{"sha1", "sha256", "sha384", "sha512", "md5", "h1", "base64", "integrity"}

// encoded are the beginnings of public keys and certificates in base64, and of mangled C++ names.
var encoded = []string{"AAAA", "MII", "ZN"}

// random judges a run only by its looks: upper case, lower case and digits, alternating as
// often as in random text. Names alternate seldom, hashes in hex have no upper case, and
// base64 of bytes is padded, longer, or on separate lines.
func (s *scanner) random(from, to int) {
	for from > s.done() && inRun[s.text[from-1]] {
		from-- // a word begins with a letter, base64 with anything
	}
	run := s.text[from:to]
	wholeLine := (from == 0 || s.text[from-1] == '\n') && (to == len(s.text) || s.text[to] == '\n' || s.text[to] == '\r')
	inData := s.data && wholeLine
	s.data = s.data || wholeLine && len(run) >= leastDataLine
	if inData || len(run) > mostRandom || to < len(s.text) && s.text[to] == '=' || strings.ContainsAny(run, "/+") && len(run) != awsSecret {
		return
	}
	bare := strings.TrimLeft(run, "-_")
	for _, head := range encoded {
		if strings.HasPrefix(bare, head) {
			return
		}
	}
	if !s.isChecksum(from, run) && looksRandom(run) {
		s.cut(from, to, "high-entropy")
	}
}

// isChecksum reports whether a run is a checksum: "sha256:…", "sha512-…", "h1:…".
func (s *scanner) isChecksum(from int, run string) bool {
	before := s.text[max(s.done(), from-len("integrity")-1):from]
	if len(before) > 0 {
		before = before[:len(before)-1] // the separator
	}
	for _, sum := range checksums {
		if strings.HasPrefix(run, sum+"-") || len(before) >= len(sum) && strings.EqualFold(before[len(before)-len(sum):], sum) {
			return true
		}
	}
	return false
}

// looksRandom reports whether a word looks like random characters.
func looksRandom(word string) bool {
	var upper, lower, digit, changes, letters int
	var seen [256]bool
	distinct := 0
	before := byte(0)
	for i := range len(word) {
		c := word[i]
		if !seen[c] {
			seen[c] = true
			distinct++
		}
		var kind byte
		switch {
		case c >= 'A' && c <= 'Z':
			upper, kind = upper+1, 'A'
		case c >= 'a' && c <= 'z':
			lower, kind = lower+1, 'a'
		case c >= '0' && c <= '9':
			digit, kind = digit+1, '0'
		default:
			before = 0
			continue
		}
		letters++
		if before != 0 && kind != before {
			changes++
		}
		before = kind
	}
	// Random text of 62 characters changes between capitals, small letters and digits at 62
	// of 100 places, has 16 per cent digits, and seldom four small letters in a row, of
	// which names are made. The bounds leave room for chance.
	return letters*10 >= len(word)*9 && digit >= 2 && upper*6 >= letters && lower*6 >= letters && distinct >= 16 &&
		changes*100 >= letters*42 && spelled(word)*100 <= letters*26
}

// spelled counts the lower-case letters in rows of four or more, which are typical of names.
func spelled(word string) int {
	n, row := 0, 0
	for i := range len(word) {
		if c := word[i]; c < 'a' || c > 'z' {
			row = 0
			continue
		}
		if row++; row == 4 {
			n += 4
		} else if row > 4 {
			n++
		}
	}
	return n
}
