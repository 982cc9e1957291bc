package redact

import "strings"

const (
	// leastRandom is the length from which on a word by itself may be a key: shorter
	// ones are too often names.
	leastRandom = 32
	// mostRandom is the length of the longest keys; what is longer is data.
	mostRandom = 128
	// leastDataLine is the shortest line of wrapped base64 that is still full.
	leastDataLine = 60
	// awsSecret is the length of a secret that has slashes in it.
	awsSecret = 40
)

// checksums are what stands before a hash that is no secret.
var checksums = []string{"sha1", "sha256", "sha384", "sha512", "md5", "h1", "base64", "integrity"}

// encoded are how base64 of a public key, a certificate and a name of C++ begin.
var encoded = []string{"AAAA", "MII", "ZN"}

// random judges a run by its looks alone: upper case, lower case and digits, changing
// as often as only dice do. Names change seldom, hashes in hex have no upper case, and
// base64 of bytes is padded, longer, or stands in lines of its own.
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
	if !s.summed(from, run) && dice(run) {
		s.cut(from, to, "high-entropy")
	}
}

// summed reports whether a run is a checksum: "sha256:…", "sha512-…", "h1:…".
func (s *scanner) summed(from int, run string) bool {
	before := s.text[max(s.done(), from-len("integrity")-1):from]
	if len(before) > 0 {
		before = before[:len(before)-1] // the sign between
	}
	for _, sum := range checksums {
		if strings.HasPrefix(run, sum+"-") || len(before) >= len(sum) && strings.EqualFold(before[len(before)-len(sum):], sum) {
			return true
		}
	}
	return false
}

// dice reports whether a word looks as if it had been thrown.
func dice(word string) bool {
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
	// Dice over 62 signs change their kind at 62 of 100 places, give 16 percent digits,
	// and seldom four small letters in a row, of which names are made. The bounds leave
	// room for bad luck.
	return letters*10 >= len(word)*9 && digit >= 2 && upper*6 >= letters && lower*6 >= letters && distinct >= 16 &&
		changes*100 >= letters*42 && spelled(word)*100 <= letters*26
}

// spelled counts the small letters that stand four and more in a row, as in names.
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
