package node

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"chorus/internal/store"
)

// The secret shared by all processes on one journal and nobody else. It is
// stored in the journal by the first that needs it.
const (
	secretKind, secretKey = "nodes", "secret"
	forever               = 100 * 365 * 24 * time.Hour
)

// Secret returns a secret that all processes on one journal share, a different one for each purpose.
func Secret(ctx context.Context, db *store.DB, purpose string) (string, error) {
	secret, err := db.Recall(ctx, secretKind, secretKey)
	if err == nil && secret == nil {
		if _, err = db.RememberOnce(ctx, secretKind, secretKey, []byte(rand.Text()+rand.Text()), forever); err == nil {
			secret, err = db.Recall(ctx, secretKind, secretKey) // another process may have been first
		}
	}
	if err != nil {
		return "", fmt.Errorf("the secret that nodes share: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return hex.EncodeToString(mac.Sum(nil)), nil
}
