// Package checkpoint keeps the head of the audit log in another place, so that a log whose end was cut
// off, or that was rewritten, is detected. A checkpoint is a signed statement that a seal of the log had
// a certain hash at a certain time. It is kept in a file outside the database's directory and, if
// configured, sent to an address or committed to a git repository. A target that does not answer delays
// nobody: every attempt has a limit, and there are few.
package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"chorus/internal/datadir"
)

// Point is one checkpoint.
type Point struct {
	Home      string    `json:"home"`           // identifies the log: several may be sent to one place
	Seal      int64     `json:"seal,omitempty"` // which seal of the log; 0: it is from before there were seals
	Line      int64     `json:"line,omitempty"` // which line, in those from before
	Head      string    `json:"head"`           // the hash of that seal or line
	At        time.Time `json:"at"`
	Key       string    `json:"key"` // the public key
	Signature string    `json:"signature"`
}

// signed returns what the signature covers.
func (p Point) signed() []byte {
	kind, number := "chorus audit checkpoint 2", p.Seal
	if p.Seal == 0 {
		kind, number = "chorus audit checkpoint 1", p.Line
	}
	return []byte(strings.Join([]string{kind, p.Home, strconv.FormatInt(number, 10), p.Head, p.At.UTC().Format(time.RFC3339Nano)}, "\n"))
}

// What names the seal or line that a checkpoint is of.
func (p Point) What() string {
	if p.Seal == 0 {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("seal %d", p.Seal)
}

// Log is the audit log.
type Log interface {
	// SealAudit seals what is new and returns the newest seal and its hash; 0 if there is none.
	SealAudit(ctx context.Context) (seal int64, hash string, err error)
	// AuditHead returns the newest seal and its hash; 0 if there is none.
	AuditHead(ctx context.Context) (seal int64, hash string, err error)
	// AuditSeal returns the hash of a seal, or "" if there is none.
	AuditSeal(ctx context.Context, seal int64) (string, error)
	// AuditLost names a line of a seal that is missing or changed, or returns "".
	AuditLost(ctx context.Context, seal int64) (string, error)
	// AuditHash returns the hash of a line from before there were seals, or "" if there is none.
	AuditHash(ctx context.Context, line int64) (string, error)
}

// Keeper keeps the checkpoints of one log.
type Keeper struct {
	Home string // names the log
	File string // where they are kept; "": nowhere, and nothing is checked
	Key  string // the file with the private key; created on first use
	URL  string // where each is posted; "": nowhere
	Git  string // a working copy of a git repository that each is committed to; "": none
	Now  func() time.Time
	// Pause is the pause between attempts at a target; 0: a second, then two.
	Pause time.Duration
}

// maxPoints limits the checkpoints in a file: older ones say nothing that newer ones do
// not, unless the log was rewritten, which the next check detects.
const maxPoints = 100

// Broken means that a log does not agree with a checkpoint, or that a checkpoint has no valid signature.
type Broken struct {
	Seal int64  // the first that is missing or different; 0: it is a line, or about the checkpoint itself
	Line int64  // the line that is missing or different, if the checkpoint is from before there were seals
	Gone bool   // seals or lines are missing at the end
	Text string // for people
}

// Error implements error.
func (b *Broken) Error() string { return b.Text }

// Check compares the log with the kept checkpoints. It returns the newest of them, or nil
// without any. If the log does not agree, the error is a *Broken.
func (k Keeper) Check(ctx context.Context, log Log) (*Point, error) {
	points, err := k.load()
	if err != nil || len(points) == 0 {
		return nil, err
	}
	last, _, err := log.AuditHead(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		hash, err := hashOf(ctx, log, p)
		if err != nil {
			return nil, err
		}
		if hash == p.Head {
			continue
		}
		broken := &Broken{Seal: p.Seal, Line: p.Line, Text: fmt.Sprintf("%s is not the one that was there at %s, says %s: the log was cut off or written anew before it, and lines that were there are missing", p.What(), moment(p.At), k.File)}
		switch {
		case hash == "" && p.Seal > last:
			newest := points[len(points)-1]
			broken.Seal, broken.Gone = last+1, true
			broken.Text = fmt.Sprintf("the log ends with seal %d, but seal %d was there at %s, says %s: %s missing at the end", last, newest.Seal, moment(newest.At), k.File, seals(last+1, newest.Seal))
		case hash == "" && p.Seal == 0:
			broken.Gone = true
			broken.Text = fmt.Sprintf("line %d was there at %s, says %s, and is missing", p.Line, moment(p.At), k.File)
		}
		return nil, broken
	}
	newest := &points[len(points)-1]
	// A full verification checks all lines. This check is quick, and shows whether the log was cut off since.
	lost, err := log.AuditLost(ctx, newest.Seal)
	if err != nil {
		return nil, err
	}
	if lost != "" {
		return nil, &Broken{Seal: newest.Seal, Gone: true, Text: lost}
	}
	return newest, nil
}

func hashOf(ctx context.Context, log Log, p Point) (string, error) {
	if p.Seal == 0 {
		return log.AuditHash(ctx, p.Line)
	}
	return log.AuditSeal(ctx, p.Seal)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func seals(from, to int64) string {
	if from == to {
		return fmt.Sprintf("seal %d is", from)
	}
	return fmt.Sprintf("seals %d to %d are", from, to)
}

// Keep checks the log, seals it and keeps its head, unless the newest checkpoint already
// has it. If the log does not agree, the error is a *Broken and its head is not kept, so
// that the evidence stays. point is nil if nothing was new.
func (k Keeper) Keep(ctx context.Context, log Log) (point *Point, err error) {
	if k.File == "" {
		return nil, nil
	}
	newest, err := k.Check(ctx, log)
	if err != nil {
		return nil, err
	}
	seal, head, err := log.SealAudit(ctx)
	if err != nil || seal == 0 || newest != nil && newest.Seal == seal {
		return nil, err
	}
	key, err := k.key(true)
	if err != nil {
		return nil, err
	}
	p := Point{Home: k.Home, Seal: seal, Head: head, At: k.now().UTC(), Key: encode(key.Public().(ed25519.PublicKey))}
	p.Signature = encode(ed25519.Sign(key, p.signed()))
	points, err := k.load()
	if err != nil {
		return nil, err
	}
	points = append(points, p)
	return &p, k.write(points[max(0, len(points)-maxPoints):])
}

func (k Keeper) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// load reads the checkpoints, oldest first, and checks their signatures.
func (k Keeper) load() ([]Point, error) {
	if k.File == "" {
		return nil, nil
	}
	data, err := os.ReadFile(k.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints of the audit log: %w", err)
	}
	key, err := k.key(false)
	if err != nil {
		return nil, err
	}
	var out []Point
	for scan := bufio.NewScanner(bytes.NewReader(data)); scan.Scan(); {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		var p Point
		if err := json.Unmarshal(scan.Bytes(), &p); err != nil {
			return nil, &Broken{Text: fmt.Sprintf("%s contains a line that is not a checkpoint: it was changed", k.File)}
		}
		sum, err := base64.StdEncoding.DecodeString(p.Signature)
		if err != nil || key == nil || p.Home != k.Home || !ed25519.Verify(key.Public().(ed25519.PublicKey), p.signed(), sum) {
			return nil, &Broken{Text: fmt.Sprintf("the checkpoint of %s in %s has a wrong signature: it was changed, or %s is not the key that signed it", p.What(), k.File, k.Key)}
		}
		out = append(out, p)
	}
	return out, nil
}

func (k Keeper) write(points []Point) error {
	if err := os.MkdirAll(filepath.Dir(k.File), 0o700); err != nil {
		return fmt.Errorf("keep a checkpoint of the audit log: %w", err)
	}
	var out bytes.Buffer
	for _, p := range points {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	return datadir.WriteFile(k.File, out.Bytes(), 0o600)
}

// NewKey returns the text of a file with a new private key.
func NewKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	return []byte(encode(key.Seed()) + "\n"), nil
}

// key reads the private key. If there is none, it creates one or returns nil.
func (k Keeper) key(create bool) (ed25519.PrivateKey, error) {
	info, err := os.Lstat(k.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(k.Key), 0o700); err != nil {
			return nil, err
		}
		return key, datadir.WriteFile(k.Key, []byte(encode(key.Seed())+"\n"), 0o600)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s must be a plain file that only you can read: chmod 600 %s", k.Key, k.Key)
	}
	text, err := datadir.SecretFile(k.Key)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is no key for checkpoints: it must hold %d bytes in base64", k.Key, ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
