package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// forget removes the words of the event that a Deleted names, in the transaction that writes the
// Deleted: from its body and those of its edits, the thread's title, its snapshots, and the bytes
// that nothing else refers to. The event itself stays, and says that it was forgotten.
func (a *applying) forget(d chat.Deleted) error {
	var bodies []storedBody
	var err error
	if d.Message != "" {
		bodies, err = a.bodies(`kind IN ('imported', 'edited')`)
	} else {
		bodies, err = a.bodies(`(seq = ? OR kind = 'edited')`, d.Seq)
	}
	if err != nil {
		return err
	}
	for _, b := range bodies {
		body, err := chat.DecodeBody(b.kind, []byte(b.body))
		if err != nil {
			return err
		}
		left, err := a.without(b.seq, body, d)
		if err != nil {
			return err
		}
		if left == nil {
			continue
		}
		if err := a.untitle(body); err != nil {
			return err
		}
		if err := a.replace(b.seq, body, left); err != nil {
			return err
		}
	}
	return a.tx.Exec(`DELETE FROM snapshots WHERE thread_id = ?`, string(a.in.Thread))
}

// storedBody is an event as stored in its row.
type storedBody struct {
	seq  int64
	kind chat.Kind
	body string
}

func (a *applying) bodies(where string, args ...any) (out []storedBody, err error) {
	err = a.tx.Rows(`SELECT seq, kind, body FROM events WHERE thread_id = ? AND `+where, append([]any{string(a.in.Thread)}, args...), database.Fill(&out, func(rows *sql.Rows, b *storedBody) error {
		return rows.Scan(&b.seq, &b.kind, &b.body)
	}))
	return out, err
}

// forgotten replaces deleted words.
func forgotten() chat.Blocks { return chat.TextBlocks("(deleted)") }

// without returns a body without the deleted words, or nil if it has none of them.
func (a *applying) without(seq int64, body chat.Body, d chat.Deleted) (chat.Body, error) {
	switch b := body.(type) {
	case chat.Imported:
		return a.withoutLine(b, d.Message)
	case chat.Edited:
		if b.Seq != d.Seq || b.Message != d.Message {
			return nil, nil
		}
		b.Blocks, b.Forgotten = forgotten(), true
		return b, nil
	}
	if seq != d.Seq {
		return nil, nil
	}
	switch b := body.(type) {
	case chat.Received:
		b.Blocks, b.Forgotten = forgotten(), true
		return b, nil
	case chat.Steered:
		b.Blocks, b.Forgotten = forgotten(), true
		return b, nil
	case chat.Said:
		if len(b.Blocks.Calls()) > 0 {
			return nil, nil // calls belong to results, which stay
		}
		b.Blocks, b.Forgotten = forgotten(), true
		return b, nil
	}
	return nil, nil
}

// withoutLine returns an import without one of its messages.
func (a *applying) withoutLine(b chat.Imported, message string) (chat.Body, error) {
	data, err := a.blobIn(b.Blob)
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lines []chat.Line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, nil // damaged; not repaired here
	}
	before := len(lines)
	lines = slices.DeleteFunc(lines, func(l chat.Line) bool { return slices.Contains(strings.Fields(l.ID), message) })
	if len(lines) == before {
		return nil, nil
	}
	if data, err = json.Marshal(lines); err != nil {
		return nil, err
	}
	row, err := a.db.KeepBlobHere(chat.NewBlob(data))
	if err != nil {
		return nil, err
	}
	if err := a.db.WriteBlob(a.tx, row, a.now); err != nil {
		return nil, err
	}
	b.Blob, b.Count, b.Forgotten = row.Hash, len(lines), true
	return b, nil
}

// blobIn reads bytes inside the writer's transaction.
func (a *applying) blobIn(hash string) ([]byte, error) {
	var data []byte
	var outside bool
	var place string
	if err := a.tx.Row(`SELECT data, data IS NULL, place FROM blobs WHERE hash = ?`, []any{hash}, &data, &outside, &place); err != nil || !outside {
		return data, err
	}
	if place == "" {
		return os.ReadFile(a.db.BlobPath(hash))
	}
	data, fetched := a.in.fetched[hash]
	switch {
	case !fetched:
		return nil, &needsBlob{a.in, hash}
	case data == nil:
		return nil, fs.ErrNotExist
	}
	return data, nil
}

// needsBlob rolls a transaction back because it needs bytes from the
// storage, which are not fetched while it is open.
type needsBlob struct {
	in   *intent
	hash string
}

func (n *needsBlob) Error() string { return "blob " + n.hash + " must be fetched first" }

// fetching tries a transaction that may need bytes from the storage, and fetches them.
func (db *DB) fetching(ctx context.Context, try func() (lost bool, err error)) (lost bool, err error) {
	for {
		lost, err := try()
		var need *needsBlob
		if !errors.As(err, &need) {
			return lost, err
		}
		data, err := db.Blob(ctx, need.hash)
		if err != nil && !errors.Is(err, chat.ErrLost) {
			return false, err
		}
		if need.in.fetched == nil {
			need.in.fetched = map[string][]byte{}
		}
		need.in.fetched[need.hash] = data // nil: lost
	}
}

// replace replaces the body in an event's row, and removes what only the old one needed.
func (a *applying) replace(seq int64, old, now chat.Body) error {
	data, err := chat.EncodeBody(now)
	if err != nil {
		return err
	}
	if err := a.tx.Exec(`UPDATE events SET body = ? WHERE thread_id = ? AND seq = ?`, string(data), string(a.in.Thread), seq); err != nil {
		return err
	}
	kept := blobRefs(now)
	for _, hash := range kept {
		if err := a.tx.Exec(insertRef, hash, string(a.in.Thread), seq); err != nil {
			return err
		}
	}
	for _, hash := range blobRefs(old) {
		if slices.Contains(kept, hash) {
			continue
		}
		if err := a.tx.Exec(`DELETE FROM event_blobs WHERE hash = ? AND thread_id = ? AND seq = ?`, hash, string(a.in.Thread), seq); err != nil {
			return err
		}
		left, err := a.db.RemoveBlob(a.tx, hash, a.now)
		if err != nil {
			return err
		}
		a.in.left = append(a.in.left, left...)
	}
	return nil
}

// untitle removes a title that was made of the words.
func (a *applying) untitle(body chat.Body) error {
	var blocks chat.Blocks
	switch b := body.(type) {
	case chat.Received:
		blocks = b.Blocks
	case chat.Steered:
		blocks = b.Blocks
	default:
		return nil
	}
	words := TitleOf(blocks)
	if words == "" {
		return nil
	}
	var title string
	if err := a.tx.Row(`SELECT title FROM threads WHERE id = ?`, []any{string(a.in.Thread)}, &title); err != nil {
		return err
	}
	begins := strings.TrimRight(strings.Join(strings.Fields(title), " "), "….")
	if begins == "" || !strings.HasPrefix(words, begins) {
		return nil
	}
	return a.tx.Exec(`UPDATE threads SET title = '(deleted)' WHERE id = ?`, string(a.in.Thread))
}

// SaidBy lists the events in which somebody spoke, over all threads: those
// whose author or principal has this id on a platform.
func (db *DB) SaidBy(ctx context.Context, who string) ([]journal.Place, error) {
	var out []journal.Place
	err := db.Query(ctx, `SELECT thread_id, seq FROM events WHERE who = ? AND kind IN ('received', 'steered') ORDER BY thread_id, seq`,
		[]any{who}, database.Fill(&out, func(rows *sql.Rows, p *journal.Place) error {
			return rows.Scan(&p.Thread, &p.Seq)
		}))
	if err != nil {
		return nil, fmt.Errorf("what %s said: %w", who, err)
	}
	return out, nil
}

// EditsOf returns, with their threads and numbers, the edits of events and of the messages that came with imports, by their
// platform id.
func (db *DB) EditsOf(ctx context.Context, events []journal.Place, messages []string) ([]chat.Event, error) {
	of, imported := map[journal.Place]bool{}, map[string]bool{}
	for _, p := range events {
		of[journal.Place{Thread: p.Thread, Seq: p.Seq}] = true
	}
	for _, id := range messages {
		imported[id] = id != ""
	}
	var out []chat.Event
	err := db.Query(ctx, `SELECT thread_id, seq, body FROM events WHERE kind = 'edited' ORDER BY thread_id, seq`, nil, func(rows *sql.Rows) error {
		var ev chat.Event
		var text string
		if err := rows.Scan(&ev.Thread, &ev.Seq, &text); err != nil {
			return err
		}
		body, err := chat.DecodeBody(chat.KindEdited, []byte(text))
		b, ok := body.(chat.Edited)
		if err == nil && ok && (of[journal.Place{Thread: ev.Thread, Seq: b.Seq}] || imported[b.Message]) {
			ev.Body = b
			out = append(out, ev)
		}
		return nil // damaged, or of somebody else
	})
	if err != nil {
		return nil, fmt.Errorf("list edits: %w", err)
	}
	return out, nil
}

// ReadOf lists somebody's messages that came with imports, by thread.
func (db *DB) ReadOf(ctx context.Context, author string) (map[chat.ThreadID][]chat.Line, error) {
	type imported struct {
		thread chat.ThreadID
		body   string
	}
	var list []imported
	err := db.Query(ctx, `SELECT thread_id, body FROM events WHERE kind = 'imported'`, nil, database.Fill(&list, func(rows *sql.Rows, one *imported) error {
		return rows.Scan(&one.thread, &one.body)
	}))
	out := map[chat.ThreadID][]chat.Line{}
	for _, one := range list {
		body, derr := chat.DecodeBody(chat.KindImported, []byte(one.body))
		b, ok := body.(chat.Imported)
		if derr != nil || !ok || b.Blob == "" {
			continue
		}
		data, berr := db.Blob(ctx, b.Blob)
		var lines []chat.Line
		if berr != nil || json.Unmarshal(data, &lines) != nil {
			continue
		}
		for _, l := range lines {
			if l.From.ID == author {
				out[one.thread] = append(out[one.thread], l)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("what was read of %s: %w", author, err)
	}
	return out, nil
}

// ForgetPrincipal removes what is stored about somebody besides their words: their name and roles, and the answers that are kept for their
// requests.
func (db *DB) ForgetPrincipal(ctx context.Context, who string) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Exec(`DELETE FROM kept_answers WHERE principal = ?`, who); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM principals WHERE id = ?`, who)
	})
	if err != nil {
		return fmt.Errorf("forget %s: %w", who, err)
	}
	return nil
}
