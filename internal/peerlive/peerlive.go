// Package peerlive brings the live pieces of a run (deltas, progress) from the node that it is on to nodes where somebody
// watches it: as messages where the nodes have a carrier for them (NATS), else over HTTP between the two.
//
// A stream that breaks off, over either, goes on over HTTP. Whoever watches gets the rest of a text, and none of it twice.
//
// It promises to hold nobody up: a node that does not read fast enough is cut off, one that cannot be reached is tried
// again after pauses that grow, and every wait has an end. What is lost is only what may be dropped anyway: events come
// from the journal, and whoever connects again gets the text so far first. Requests carry a code that only nodes on the
// same database can make, and messages are sealed with it.
package peerlive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Path is where nodes ask each other.
const Path = "/internal/live"

const (
	scheme = "Chorus-Node "
	// skew is how far the clocks of two nodes may be apart.
	skew = 10 * time.Minute
	// maxLine bounds one piece; the text so far comes as one.
	maxLine = 16 << 20
)

// sign is what a request for a thread carries.
func sign(secret string, thread chat.ThreadID, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	return scheme + at + "." + code(secret, at, thread)
}

func code(secret, at string, thread chat.ThreadID) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "\n" + string(thread)))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed reports whether a node on the same database made the header, for this thread and not long ago.
func signed(header, secret string, thread chat.ThreadID, now time.Time) bool {
	rest, ok := strings.CutPrefix(header, scheme)
	at, mac, dot := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !ok || !dot || err != nil || secret == "" {
		return false
	}
	return now.Sub(time.Unix(seconds, 0)).Abs() <= skew && hmac.Equal([]byte(mac), []byte(code(secret, at, thread)))
}

// line is one piece on the way, or the word that there are no more; empty: a sign of life, or something that a newer node sends.
type line struct {
	Delta    *chat.Delta    `json:"delta,omitempty"`
	Progress *chat.Progress `json:"progress,omitempty"`
	End      bool           `json:"end,omitempty"`  // of the run
	Gone     bool           `json:"gone,omitempty"` // the thread does not run here
}

func lineOf(piece chat.Live) (l line) {
	switch p := piece.(type) {
	case chat.Delta:
		l.Delta = &p
	case chat.Progress:
		l.Progress = &p
	}
	return l
}

func (l line) piece() chat.Live {
	switch {
	case l.Delta != nil:
		return *l.Delta
	case l.Progress != nil:
		return *l.Progress
	}
	return nil
}

func (l line) encode() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		return nil // such texts and numbers always encode
	}
	return append(b, '\n')
}

func decode(b []byte) (l line, err error) {
	err = json.Unmarshal(b, &l)
	return l, err
}
