package redact

import "strings"

const (
	blockHead = "-----BEGIN "
	blockTail = "-----END "
	keyWords  = "PRIVATE KEY"
	// maxBlock is far longer than any private key.
	maxBlock = 64 << 10
)

// block cuts a private key in PEM or PGP armour. A key whose end is missing ends with the text.
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

// keyBlock returns the length of the first line of an armoured block, and whether the block is a private key.
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
