package docsite

import (
	"slices"
	"strings"
)

// Hit is a section that a search found.
type Hit struct {
	Page    *Page
	Section Section
	Excerpt string // around the first word that was found
	score   int
}

const (
	maxHits   = 40
	maxQuery  = 200
	excerptOf = 160
)

// Search finds the sections that hold every word, those whose heading has them first.
func (s *Site) Search(query string) []Hit {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	var hits []Hit
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

// rate says how well a section fits; 0 is not at all.
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
	if at < 0 || len(lower) != len(text) { // letters whose lower case has another length
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
