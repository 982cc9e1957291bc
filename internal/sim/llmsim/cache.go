package llmsim

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"sync"

	"chorus/internal/model"
	"chorus/internal/pattern"
)

// part is a piece of a request for the providers' prefix caches.
type part struct {
	bytes  []byte
	marked bool
}

// cache remembers prefixes, as the providers do. OpenAI and Google cache what they have seen automatically; Anthropic
// caches up to the marks, and counts what it writes. Ollama has a cache too, but does not report its use.
type cache struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool
}

// cacheMark is a cache mark with the comma before it.
var cacheMark = pattern.Lazy(`,?"cache_control":\{[^}]*\}`)

// newPart removes the marks, so that a prefix is the same wherever they move.
func newPart(raw []byte) part {
	if !bytes.Contains(raw, []byte(`"cache_control"`)) {
		return part{bytes: raw}
	}
	return part{bytes: cacheMark().ReplaceAll(raw, nil), marked: true}
}

// byItself reports whether a provider caches automatically. A router passes marks on to Anthropic's models.
func byItself(api API, name string) bool {
	switch api {
	case OpenAI, Responses, Completions, Google, Ollama:
		return true
	case OpenRouter:
		return !strings.HasPrefix(name, "anthropic/")
	}
	return false
}

// count returns the usage of a request with these parts, and remembers them.
func (c *cache) count(api API, name string, parts []part) Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) > 1<<16 {
		c.seen = map[[sha256.Size]byte]bool{}
	}
	sum := sha256.Sum256([]byte(name))
	read, marked, total := 0, 0, 0
	for _, p := range parts {
		h := sha256.New()
		h.Write(sum[:])
		h.Write(p.bytes)
		h.Sum(sum[:0])
		total += model.Tokens(len(p.bytes))
		if c.seen[sum] {
			read = total
		}
		if p.marked {
			marked = total
		}
		if p.marked || byItself(api, name) {
			c.seen[sum] = true
		}
	}
	if byItself(api, name) {
		return Usage{Input: total - read, CacheRead: read}
	}
	write := max(marked-read, 0)
	return Usage{Input: total - read - write, CacheRead: read, CacheWrite: write}
}
