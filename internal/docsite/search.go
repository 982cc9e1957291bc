package docsite

import (
	"slices"
	"strings"
	"unicode"
)

// Hit is a section found by a search.
type Hit struct {
	Page    *Page
	Section Section
	Excerpt string // around the first match
	score   int
}

const (
	maxHits   = 40
	maxQuery  = 200
	excerptOf = 160
	leastWord = 5 // minimum letters of a word that may be misspelled or inflected
)

// Search finds the sections that contain every word; sections with a match in the heading come first. If there are none,
// it searches for the closest words instead and returns them (meant). static/search.js does the same.
func (s *Site) Search(query string) (hits []Hit, meant string) {
	if len(query) > maxQuery {
		query = strings.ToValidUTF8(query[:maxQuery], "")
	}
	words := strings.Fields(strings.ToLower(query))
	if hits = s.find(words); len(hits) > 0 || len(words) == 0 {
		return hits, ""
	}
	known := s.vocabulary()
	near := make([]string, len(words))
	for i, word := range words {
		near[i] = nearest(word, known)
	}
	if slices.Equal(near, words) {
		return nil, ""
	}
	if hits = s.find(near); len(hits) == 0 {
		return nil, ""
	}
	return hits, strings.Join(near, " ")
}

// vocabulary counts the words of all pages.
func (s *Site) vocabulary() map[string]int {
	known := map[string]int{}
	for _, p := range s.Pages {
		for _, section := range p.Sections {
			for word := range strings.FieldsFuncSeq(strings.ToLower(section.Title+" "+section.Text), func(r rune) bool { return !unicode.IsLetter(r) }) {
				known[word]++
			}
		}
	}
	return known
}

// nearest corrects an unknown word: the most common word that is one typo away ("shedule"), else the longest prefix that
// other words share ("scheduling": "schedul"), else the word itself.
func nearest(word string, known map[string]int) string {
	if len(word) < leastWord || known[word] > 0 {
		return word
	}
	best := ""
	for other, n := range known {
		if len(other) >= leastWord && oneSlip(word, other) && (n > known[best] || n == known[best] && other < best) {
			best = other
		}
	}
	if best != "" {
		return best
	}
	for n := len(word); n >= leastWord; n-- {
		for other := range known {
			if strings.HasPrefix(other, word[:n]) {
				return word[:n]
			}
		}
	}
	return word
}

// oneSlip reports whether two words differ by one missing, extra or wrong letter, or by two swapped letters.
func oneSlip(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a) == len(b)+1:
		return a[i+1:] == b[i:]
	case len(a) != len(b) || i == len(b):
		return false
	}
	return a[i+1:] == b[i+1:] || i+1 < len(b) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// find returns the sections that contain every word.
func (s *Site) find(words []string) (hits []Hit) {
	if len(words) == 0 {
		return nil
	}
	for _, p := range s.Pages {
		for i, section := range p.Sections {
			if score := rate(words, p, section, i == 0); score > 0 {
				hits = append(hits, Hit{Page: p, Section: section, Excerpt: excerpt(section.Text, words), score: score})
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return b.score - a.score })
	return hits[:min(len(hits), maxHits)]
}

// rate says how well a section matches; 0 means not at all.
func rate(words []string, p *Page, section Section, first bool) (score int) {
	title, heading, body := strings.ToLower(p.Title+" "+p.Name()), strings.ToLower(section.Title), strings.ToLower(section.Text)
	for _, word := range words {
		n := min(strings.Count(body, word), 3)
		if strings.Contains(heading, word) {
			n += 8
		}
		if strings.Contains(title, word) {
			n++
			if first {
				n += 8
			}
		}
		if n == 0 || n == 1 && strings.Contains(title, word) && !strings.Contains(body, word) && !first {
			return 0
		}
		score += n
	}
	if strings.Join(words, " ") == heading || first && strings.Join(words, "-") == p.Name() {
		score += 20
	}
	return score
}

func excerpt(text string, words []string) string {
	at := -1
	lower := strings.ToLower(text)
	for _, word := range words {
		if i := strings.Index(lower, word); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 || len(lower) != len(text) { // letters whose lower case has a different length
		at = 0
	}
	from := max(at-excerptOf/3, 0)
	to := min(from+excerptOf, len(text))
	if from > 0 {
		if i := strings.IndexByte(text[from:], ' '); i >= 0 {
			from += i + 1
		}
	}
	if to < len(text) {
		if i := strings.LastIndexByte(text[:to], ' '); i > from {
			to = i
		}
	}
	out := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		out = "… " + out
	}
	if to < len(text) {
		out += " …"
	}
	return out
}
