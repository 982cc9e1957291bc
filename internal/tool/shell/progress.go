package shell

import "time"

// Limits of progress output: a few pieces at once, then one piece for every interval or every
// batch of bytes. A command that floods its output must not flood readers.
const (
	burst    = 16
	interval = 50 * time.Millisecond
	batch    = 4 << 10
)

// progress passes output on in pieces, without timers: what is held back goes along with
// the next output, and the result contains everything in the end.
type progress struct {
	send    func(string)
	pending []byte
	credit  int // pieces that may still be sent at once
	last    time.Time
}

// add is called by one goroutine at a time.
func (p *progress) add(text string) {
	now := time.Now()
	if p.last.IsZero() {
		p.last, p.credit = now, burst
	}
	if earned := int(now.Sub(p.last) / interval); earned > 0 {
		p.credit, p.last = min(p.credit+earned, burst), now
	}
	p.pending = append(p.pending, text...)
	if p.credit <= 0 && len(p.pending) < batch {
		return
	}
	p.credit = max(p.credit-1, 0)
	p.send(string(p.pending))
	p.pending = p.pending[:0]
}
