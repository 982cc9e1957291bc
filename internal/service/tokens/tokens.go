// Package tokens stores the tokens of the HTTP API: it creates, finds and revokes them, and keeps the key that signs
// cookies and sign-in links.
package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/digest"
	"chorus/internal/documents"
	"chorus/internal/gate"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// tokenPrefix lets people and secret scanners recognize a token.
const tokenPrefix = "chorus_"

// maxTokenName is longer than any sensible name.
const maxTokenName = 64

// useNoted is the minimum interval between two records of a token's use.
const useNoted = time.Minute

// Options are what Tokens works with.
type Options struct {
	DB   *store.DB
	Home *datadir.Home
	Log  *slog.Logger
	// Copies shares the owner's token and the key with other nodes.
	Copies func() *documents.Copies
	// Owner is the person at this terminal, who may do everything.
	Owner func() operation.Caller
}

// Tokens stores the tokens of the HTTP API.
type Tokens struct {
	o Options

	mu    sync.Mutex
	noted map[string]time.Time
}

var _ operations.Tokens = (*Tokens)(nil)

// New returns the tokens of a home.
func New(o Options) *Tokens { return &Tokens{o: o, noted: map[string]time.Time{}} }

// CreateToken creates a token. Nobody can create a token with more scopes than their own.
func (t *Tokens) CreateToken(ctx context.Context, by operation.Caller, in operations.NewToken) (operations.Token, error) {
	in.Name = strings.TrimSpace(in.Name)
	if err := checkToken(by, in); err != nil {
		return operations.Token{}, err
	}
	lifetime, err := in.Lifetime()
	if err != nil {
		return operations.Token{}, err
	}
	text := tokenPrefix + rand.Text() + rand.Text()
	now := time.Now().UTC()
	row := store.Token{ID: id.New(), Name: in.Name, Digest: digest.Of(text), Roles: in.Roles, By: by.Principal.String(), Created: now}
	for _, s := range in.Scopes {
		if !slices.Contains(row.Scopes, string(s)) {
			row.Scopes = append(row.Scopes, string(s))
		}
	}
	if lifetime > 0 {
		row.Expires = now.Add(lifetime)
	}
	if err := t.o.DB.PutToken(ctx, row); err != nil {
		return operations.Token{}, err
	}
	made := tokenOf(row)
	made.Text = text
	return made, t.record(ctx, by, "token create", row)
}

func checkToken(by operation.Caller, in operations.NewToken) error {
	if in.Name == "" || len(in.Name) > maxTokenName {
		return operation.InvalidField("name", "a token needs a name of at most %d characters, so that you recognize it", maxTokenName)
	}
	if len(in.Scopes) == 0 {
		return operation.InvalidField("scopes", "choose the scopes of the token: one or more of %s", scopeNames())
	}
	for _, s := range in.Scopes {
		if !slices.Contains(operation.Scopes(), s) {
			return operation.InvalidField("scopes", "there is no scope %q; use %s", s, scopeNames())
		}
		if !by.May(s) {
			return operation.Errorf(operation.Forbidden, "you cannot give the scope %s: your own token does not have it", s)
		}
	}
	for _, r := range in.Roles {
		if !slices.Contains(by.Principal.Roles, r) && !slices.Contains(by.Principal.Roles, chat.OwnerRole) {
			return operation.Errorf(operation.Forbidden, "you cannot give the role %s: you do not have it", r)
		}
	}
	return nil
}

func scopeNames() string {
	var names []string
	for _, s := range operation.Scopes() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// ListTokens returns all of them, without their texts.
func (t *Tokens) ListTokens(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.Token], error) {
	rows, err := t.o.DB.Tokens(ctx)
	if err != nil {
		return operation.List[operations.Token]{}, err
	}
	out := operation.List[operations.Token]{Items: []operations.Token{}}
	for _, row := range rows {
		out.Items = append(out.Items, tokenOf(row))
	}
	return out, nil
}

// Nouns implements operation.Namer: revoked tokens are not suggested.
func (t *Tokens) Nouns() map[string]operation.Noun {
	return map[string]operation.Noun{"token": {Suggest: func(ctx context.Context, by operation.Caller, _ string) (names []string, err error) {
		if !by.May(operation.Admin) {
			return nil, nil
		}
		rows, err := t.o.DB.Tokens(ctx)
		for _, row := range rows {
			if row.Revoked.IsZero() {
				names = append(names, row.Name)
			}
		}
		return names, err
	}}}
}

// RevokeToken revokes a token, by its id or by a unique name.
func (t *Tokens) RevokeToken(ctx context.Context, by operation.Caller, in operations.TokenRef) (operation.None, error) {
	return operation.None{}, t.revoke(ctx, by, in.ID)
}

func (t *Tokens) revoke(ctx context.Context, by operation.Caller, name string) error {
	rows, err := t.o.DB.Tokens(ctx)
	if err != nil {
		return err
	}
	var found []store.Token
	for _, row := range rows {
		if row.ID == name {
			found = []store.Token{row}
			break
		}
		if row.Revoked.IsZero() && (row.Name == name || len(name) >= 6 && strings.HasPrefix(row.ID, strings.ToUpper(name))) {
			found = append(found, row)
		}
	}
	switch len(found) {
	case 0:
		return operation.Errorf(operation.NotFound, "there is no token %q; `chorus token list` shows them", name)
	case 1:
	default:
		return operation.Errorf(operation.Conflict, "%d tokens are called %q; name one by its id", len(found), name)
	}
	done, err := t.o.DB.RevokeToken(ctx, found[0].ID, time.Now())
	if err != nil || !done {
		return err
	}
	return t.record(ctx, by, "token revoke", found[0])
}

func (t *Tokens) record(ctx context.Context, by operation.Caller, action string, row store.Token) error {
	err := t.o.DB.Audit(ctx, approval.Audit{Principal: by.Principal, Action: action, Decision: gate.Changed,
		Detail: fmt.Sprintf("%s (%s): %s", row.Name, row.ID, strings.Join(row.Scopes, ", "))})
	if err != nil {
		return fmt.Errorf("it was done, but could not be written to the audit log: %w", err)
	}
	return nil
}

// Recheck returns an error when the token of a caller is no longer valid.
func (t *Tokens) Recheck(ctx context.Context, by operation.Caller) error {
	if by.Principal.Kind != chat.TokenHolder {
		return nil
	}
	_, err := t.TokenByID(ctx, by.Principal.ID)
	return err
}

// TokenByText finds a token by its text, if it is valid now.
func (t *Tokens) TokenByText(ctx context.Context, text string) (operations.Token, error) {
	row, err := t.o.DB.TokenByDigest(ctx, digest.Of(text))
	return t.good(ctx, row, err)
}

// endedSignIns are the memos of used sign-in links and signed-out cookies.
const endedSignIns = "ended sign-in"

// EndSignIn records that a link or a cookie is no longer valid, and reports whether that was new. keep is how long the record is needed.
func (t *Tokens) EndSignIn(ctx context.Context, nonce string, keep time.Duration) (first bool, err error) {
	return t.o.DB.RememberOnce(ctx, endedSignIns, nonce, []byte("ended"), keep)
}

// SignInEnded reports whether EndSignIn was called for it.
func (t *Tokens) SignInEnded(ctx context.Context, nonce string) (bool, error) {
	value, err := t.o.DB.Recall(ctx, endedSignIns, nonce)
	return value != nil, err
}

// TokenByID does the same by its id.
func (t *Tokens) TokenByID(ctx context.Context, id string) (operations.Token, error) {
	row, err := t.o.DB.TokenByID(ctx, id)
	return t.good(ctx, row, err)
}

func (t *Tokens) good(ctx context.Context, row store.Token, err error) (operations.Token, error) {
	now := time.Now()
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return operations.Token{}, operation.Errorf(operation.NotFound, "there is no such token")
	case err != nil:
		return operations.Token{}, err
	case !row.Revoked.IsZero() || !row.Expires.IsZero() && now.After(row.Expires):
		return operations.Token{}, operation.Errorf(operation.NotFound, "the token has expired or was revoked")
	}
	t.mu.Lock()
	note := now.Sub(t.noted[row.ID]) > useNoted
	if note {
		t.noted[row.ID] = now
	}
	t.mu.Unlock()
	if note {
		if err := t.o.DB.TokenUsed(ctx, row.ID, now); err != nil {
			t.o.Log.Warn("the use of a token could not be recorded", "component", "http", "event", "token_use_not_noted", "error", err)
		}
	}
	return tokenOf(row), nil
}

func tokenOf(row store.Token) operations.Token {
	out := operations.Token{ID: row.ID, Name: row.Name, Roles: row.Roles, CreatedAt: row.Created, UsedAt: row.Used, ExpiresAt: row.Expires, RevokedAt: row.Revoked}
	for _, s := range row.Scopes {
		out.Scopes = append(out.Scopes, operation.Scope(s))
	}
	return out
}

func (t *Tokens) tokenFile() string { return filepath.Join(t.o.Home.Dir(), settings.TokenName) }

// OwnerToken returns the token of the home's owner: created at the first start and stored in a file that only they can
// read. A revoked one is replaced.
func (t *Tokens) OwnerToken(ctx context.Context) (text string, token operations.Token, err error) {
	if text, err = t.readOwnerToken(ctx); err != nil {
		return "", operations.Token{}, err
	}
	if text != "" {
		token, err = t.TokenByText(ctx, text)
		if err == nil || operation.KindOf(err) != operation.NotFound {
			return text, token, err
		}
	}
	token, err = t.CreateToken(ctx, t.o.Owner(), operations.NewToken{Name: chat.OwnerRole, Scopes: []operation.Scope{operation.Admin}, Roles: []string{chat.OwnerRole}})
	if err != nil {
		return "", operations.Token{}, err
	}
	if err := datadir.WriteFile(t.tokenFile(), []byte(token.Text+"\n"), 0o600); err != nil {
		return "", operations.Token{}, err
	}
	return t.shareOwnerToken(ctx, token)
}

// readOwnerToken returns the token in the file, or that of other nodes if they share secrets; "": there is none.
func (t *Tokens) readOwnerToken(ctx context.Context) (string, error) {
	if copies := t.o.Copies(); copies.Owns(settings.TokenName) {
		if err := copies.Sync(ctx, settings.TokenName); err != nil {
			return "", err
		}
	}
	data, err := readPrivate(t.tokenFile())
	return strings.TrimSpace(string(data)), err
}

// shareOwnerToken shares a new token with other nodes. If one of them was faster, its token wins.
func (t *Tokens) shareOwnerToken(ctx context.Context, made operations.Token) (string, operations.Token, error) {
	text, err := t.readOwnerToken(ctx)
	if err != nil || text == made.Text {
		return text, made, err
	}
	if _, err := t.RevokeToken(ctx, t.o.Owner(), operations.TokenRef{ID: made.ID}); err != nil {
		return "", operations.Token{}, err
	}
	token, err := t.TokenByText(ctx, text)
	return text, token, err
}

// SessionKey signs cookies and sign-in links, and is the same on every machine; it is created on first use.
func (t *Tokens) SessionKey() ([]byte, error) {
	if _, err := readPrivate(filepath.Join(t.o.Home.Dir(), settings.KeyName)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	var key []byte
	err := t.o.Copies().Change(ctx, settings.KeyName, func(text []byte) ([]byte, error) {
		var err error
		if key, err = hex.DecodeString(strings.TrimSpace(string(text))); err == nil && len(key) >= sha256.Size {
			return text, nil
		}
		key = make([]byte, sha256.Size)
		rand.Read(key) // it never fails
		return []byte(hex.EncodeToString(key) + "\n"), nil
	})
	if err != nil {
		return nil, fmt.Errorf("the key that signs cookies and sign-in links: %w", err)
	}
	return key, nil
}

// keyTime limits the creation of the key.
const keyTime = 20 * time.Second

// readPrivate reads a file that nobody else may read; a missing file counts as empty.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s must be a plain file that only you can read: chmod 600 %s", path, path)
	}
	return os.ReadFile(path)
}
