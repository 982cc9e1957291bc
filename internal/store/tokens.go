package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
)

// Token is the row of an API token. The token itself is never stored, only its digest.
type Token struct {
	ID      string
	Name    string
	Digest  string
	Scopes  []string
	Roles   []string
	By      string // who created it
	Created time.Time
	Used    time.Time // zero: never
	Expires time.Time // zero: never
	Revoked time.Time // zero: not revoked
}

const tokenColumns = `id, name, digest, scopes, roles, created_by, created_at, COALESCE(used_at, 0), COALESCE(expires_at, 0), COALESCE(revoked_at, 0)`

// PutToken stores a new token.
func (db *DB) PutToken(ctx context.Context, t Token) error {
	scopes, err := database.AsJSON(t.Scopes)
	if err != nil {
		return err
	}
	roles, err := database.AsJSON(append([]string{}, t.Roles...))
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`INSERT INTO api_tokens (id, name, digest, scopes, roles, created_by, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			t.ID, t.Name, t.Digest, scopes, roles, t.By, database.Micros(t.Created), database.NullMicros(t.Expires))
	})
	if err != nil {
		return fmt.Errorf("keep token %s: %w", t.Name, err)
	}
	return nil
}

// Tokens lists all tokens, newest first, including revoked ones.
func (db *DB) Tokens(ctx context.Context) ([]Token, error) {
	return db.tokens(ctx, `SELECT `+tokenColumns+` FROM api_tokens ORDER BY created_at DESC, id`)
}

// TokenByDigest finds a token by its digest, or fails with ErrUnknown.
func (db *DB) TokenByDigest(ctx context.Context, digest string) (Token, error) {
	return db.token(ctx, `SELECT `+tokenColumns+` FROM api_tokens WHERE digest = ?`, digest)
}

// TokenByID finds a token by its id, or fails with ErrUnknown.
func (db *DB) TokenByID(ctx context.Context, id string) (Token, error) {
	return db.token(ctx, `SELECT `+tokenColumns+` FROM api_tokens WHERE id = ?`, id)
}

func (db *DB) token(ctx context.Context, query, arg string) (Token, error) {
	found, err := db.tokens(ctx, query, arg)
	if err != nil {
		return Token{}, err
	}
	if len(found) == 0 {
		return Token{}, fmt.Errorf("token: %w", journal.ErrUnknown)
	}
	return found[0], nil
}

func (db *DB) tokens(ctx context.Context, query string, args ...any) ([]Token, error) {
	var out []Token
	err := db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, t *Token) error {
		var scopes, roles string
		var times [4]int64
		if err := rows.Scan(&t.ID, &t.Name, &t.Digest, &scopes, &roles, &t.By, &times[0], &times[1], &times[2], &times[3]); err != nil {
			return err
		}
		for i, field := range []*time.Time{&t.Created, &t.Used, &t.Expires, &t.Revoked} {
			if times[i] != 0 {
				*field = database.Time(times[i])
			}
		}
		if err := json.Unmarshal([]byte(scopes), &t.Scopes); err != nil {
			return err
		}
		return json.Unmarshal([]byte(roles), &t.Roles)
	}))
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return out, nil
}

// RevokeToken ends a token permanently. It returns false if it was already revoked.
func (db *DB) RevokeToken(ctx context.Context, id string, now time.Time) (bool, error) {
	var n int64
	err := db.Write(ctx, func(tx database.Tx) (err error) {
		n, err = tx.Change(`UPDATE api_tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, database.Micros(now), id)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("revoke token %s: %w", id, err)
	}
	return n > 0, nil
}

// TokenUsed records that a token was used.
func (db *DB) TokenUsed(ctx context.Context, id string, now time.Time) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`UPDATE api_tokens SET used_at = ? WHERE id = ?`, database.Micros(now), id)
	})
	if err != nil {
		return fmt.Errorf("note the use of token %s: %w", id, err)
	}
	return nil
}
