package documents

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"chorus/internal/digest"
)

const secret = "secrets/key"

func sealOf(t *testing.T, key string) *Seal {
	t.Helper()
	s, err := NewSeal(strings.Repeat(key, shortestKey))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (n *node) withSeal(s *Seal) *node {
	n.Kinds = append(n.Kinds, Kind{Patterns: []string{"secrets/*"}, Seal: s, Plain: true, Spare: true})
	return n
}

// Secrets are the same in all homes that have the key, and nowhere else to be read.
func TestSealed(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b, without, other := newNode(t, m).withSeal(sealOf(t, "k")), newNode(t, m).withSeal(sealOf(t, "k")), newNode(t, m).withSeal(nil), newNode(t, m).withSeal(sealOf(t, "x"))
	a.edit(secret, "hush")
	syncAll(a, b, without, other)
	b.expect(secret, "hush")
	if bytes.Contains(m.docs[secret].Body, []byte("hush")) || m.docs[secret].Digest == digest.Of("hush") {
		t.Errorf("it can be read: %q", m.docs[secret].Body)
	}
	for _, n := range []*node{without, other} {
		n.expect(secret, "")
		if err := n.Sync(t.Context(), secret); !errors.Is(err, ErrSealed) {
			t.Errorf("%v, want ErrSealed", err)
		}
	}
	without.edit(secret, "own")
	other.edit(secret, "own")
	syncAll(without, other, a)
	for _, n := range []*node{without, other} {
		n.expect(secret, "own") // it is not given up for what cannot be read
	}
	a.expect(secret, "hush")
	version := m.docs[secret].Version
	syncAll(a, b, a, b)
	if m.docs[secret].Version != version {
		t.Error("the same text was sealed in two ways")
	}
	if err := b.Change(t.Context(), secret, func(text []byte) ([]byte, error) { return append(text, " hush"...), nil }); err != nil {
		t.Fatal(err)
	}
	a.sync()
	a.expect(secret, "hush hush")
	moved := m.docs[secret]
	moved.Name = "secrets/other"
	m.docs["secrets/other"] = moved // by somebody who may write into the database
	if err := a.Sync(t.Context(), "secrets/other"); !errors.Is(err, ErrSealed) {
		t.Errorf("under another name: %v", err)
	}
}

// A key is changed by giving all homes the new one: the first seals anew what the others have, too.
func TestSealChanges(t *testing.T) {
	t.Parallel()
	m := newMemory()
	dirs := []string{t.TempDir(), t.TempDir()}
	all := func(s *Seal) {
		t.Helper()
		for range 2 {
			for _, dir := range dirs {
				n := at(t, m, dir).withSeal(s)
				n.sync()
				n.expect(secret, "hush")
				if len(n.warned) > 0 {
					t.Errorf("told: %q", n.warned)
				}
			}
		}
	}
	at(t, m, dirs[0]).withSeal(nil).edit(secret, "hush")
	for _, key := range []string{"", "k", "l"} { // it begins in the clear
		var s *Seal
		if key != "" {
			s = sealOf(t, key)
		}
		all(s)
		if isSealed(m.docs[secret].Body) != (key != "") {
			t.Errorf("%q: %q", key, m.docs[secret].Body)
		}
	}
	if _, err := NewSeal("short"); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(at(t, m, dirs[0]).Path(secret)); err != nil {
		t.Error(err)
	}
}
