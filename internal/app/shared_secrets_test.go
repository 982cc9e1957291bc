package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/operations"
)

// sharedSecret is one of each kind of files that hold secrets.
var sharedSecret = []string{"config/secrets/discord", "mcp-logins/far-0123.json", "audit.key", "token"}

// Secrets are the same on all nodes that have the key; a node without it keeps its own, and the database shows none.
func TestSharedSecrets(t *testing.T) { onBoth(t, sharedSecrets) }

func sharedSecrets(t *testing.T, database string) {
	key := strings.Repeat("0123456789abcdef", 4)
	a, without := openNodeWith(t, database, t.TempDir(), key), openNode(t, database, t.TempDir())
	for _, name := range sharedSecret {
		write(t, a.path(name), "hush "+name)
		write(t, without.path(name), "own")
	}
	a.syncDocuments(t)
	without.syncDocuments(t)
	b := openNodeWith(t, database, t.TempDir(), key)
	for _, name := range sharedSecret {
		if got := b.text(t, name); got != "hush "+name {
			t.Errorf("%s says %q on the other node", name, got)
		}
		if info, err := os.Stat(b.path(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v (%v)", info, err)
		}
		if got := without.text(t, name); got != "own" {
			t.Errorf("%s says %q on a node without the key", name, got)
		}
		doc, err := a.Settings.Documents.Store.Get(t.Context(), name)
		if err != nil || !doc.There() || bytes.Contains(doc.Body, []byte("hush")) {
			t.Errorf("the database says %q (%v)", doc.Body, err)
		}
		write(t, b.path(name), "changed")
	}
	b.syncDocuments(t)
	a.syncDocuments(t)
	for _, name := range sharedSecret {
		if got := a.text(t, name); got != "changed" {
			t.Errorf("%s says %q", name, got)
		}
		if err := os.Remove(a.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	a.syncDocuments(t)
	b.syncDocuments(t)
	for _, name := range sharedSecret {
		want := ""
		if name == "audit.key" {
			want = "changed" // what it signed could not be checked any more
		}
		if got := b.text(t, name); got != want {
			t.Errorf("removed, %s says %q", name, got)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(a.Home.Dir(), "*.replaced-*")); err != nil || len(kept) > 0 {
		t.Errorf("%v (%v)", kept, err)
	}
}

// Nodes that have the key have one owner's token, one key of sign-ins and one key of checkpoints, whoever makes them.
func TestOneTokenForAllNodes(t *testing.T) { onBoth(t, oneTokenForAllNodes) }

func oneTokenForAllNodes(t *testing.T, database string) {
	key := strings.Repeat("0123456789abcdef", 4)
	a, b := openNodeWith(t, database, t.TempDir(), key), openNodeWith(t, database, t.TempDir(), key)
	ctx := t.Context()
	var texts []string
	var id string
	for _, n := range []*App{a, b, a} {
		text, token, err := n.Service.Tokens().OwnerToken(ctx)
		if err != nil || token.ID == "" {
			t.Fatalf("%+v (%v)", token, err)
		}
		texts, id = append(texts, text), token.ID
		if err := n.Settings.MakeCheckpointKey(ctx, n.Settings.Checkpoints(n.Shared)); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Service.Tokens().SessionKey(); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0] != texts[1] || texts[1] != texts[2] {
		t.Error("two nodes have two tokens")
	}
	for _, name := range []string{"audit.key", "door.key"} {
		if got := a.text(t, name); got == "" || got != b.text(t, name) {
			t.Errorf("%s: %q and %q", name, got, b.text(t, name))
		}
	}
	// One that was revoked is replaced by the first node that notices.
	if _, err := b.Service.Tokens().RevokeToken(ctx, b.Service.LocalCaller(), operations.TokenRef{ID: id}); err != nil {
		t.Fatal(err)
	}
	ours, _, err := a.Service.Tokens().OwnerToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := b.Service.Tokens().OwnerToken(ctx)
	if err != nil || ours != theirs || ours == texts[0] {
		t.Errorf("%q and %q (%v)", ours, theirs, err)
	}
}
