// Package peerlive transfers the live pieces of a run (deltas, progress) from the
// node that runs it to nodes where somebody watches it: as messages if the nodes
// have a carrier for them (NATS), otherwise over HTTP.
//
// A stream that breaks off in either way continues over HTTP.
// Watchers get the rest of a text without repetition.
//
// It never delays anybody: a node that does not read fast enough is disconnected, one that
// cannot be reached is tried again after increasing pauses, and every wait is limited. What
// is lost may be dropped anyway: events come from the journal, and whoever connects again
// first gets the text so far. Requests carry a code that only nodes on the same database can
// make, and messages are encrypted with it.
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

// Path is the HTTP path for requests between nodes.
const Path = "/internal/live"

const (
	scheme = "Chorus-Node "
	// skew is how far the clocks of two nodes may differ.
	skew = 10 * time.Minute
	// maxLine limits one piece. The text so far is sent as one piece.
	maxLine = 16 << 20
)

// sign returns the header for a request for a thread.
func sign(secret string, thread chat.ThreadID, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	return scheme + at + "." + code(secret, at, thread)
}

func code(secret, at string, thread chat.ThreadID) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "\n" + string(thread)))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed reports whether a node on the same database recently made the header for this thread.
func signed(header, secret string, thread chat.ThreadID, now time.Time) bool {
	rest, ok := strings.CutPrefix(header, scheme)
	at, mac, dot := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !ok || !dot || err != nil || secret == "" {
		return false
	}
	return now.Sub(time.Unix(seconds, 0)).Abs() <= skew && hmac.Equal([]byte(mac), []byte(code(secret, at, thread)))
}

// line is one piece in transit, or the message that there are no more. An empty
// line is a sign of life, or something that a newer node sends.
type line struct {
	Delta    *chat.Delta    `json:"delta,omitempty"`
	Progress *chat.Progress `json:"progress,omitempty"`
	End      bool           `json:"end,omitempty"`  // the run has ended
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
