package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/store"
)

func TestKeptAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "c.db"), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	recall := func(principal, key, route string) string {
		t.Helper()
		digest, status, body, err := db.RecallAnswer(t.Context(), principal, key, route)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %d %s", digest, status, body)
	}
	keep := func(key, digest, body string) {
		t.Helper()
		if err := db.KeepAnswer(t.Context(), "token:a", key, "POST /x", digest, 201, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	keep("k", "d1", `{"id":1}`)
	keep("k", "d2", `{"id":2}`)
	for name, c := range map[string][4]string{
		"the first stays": {"token:a", "k", "POST /x", `d1 201 {"id":1}`},
		"another key":     {"token:a", "K", "POST /x", " 0 "},
		"another person":  {"token:b", "k", "POST /x", " 0 "},
		"another route":   {"token:a", "k", "POST /y", " 0 "},
	} {
		if got := recall(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s: got %q, want %q", name, got, c[3])
		}
	}
	keep("secret", "d", `{"text":"words"}`)
	for _, step := range []struct{ who, left string }{{"token:b", `d 201 {"text":"words"}`}, {"token:a", " 0 "}} {
		if err := db.ForgetPrincipal(t.Context(), step.who); err != nil {
			t.Fatal(err)
		}
		if got := recall("token:a", "secret", "POST /x"); got != step.left {
			t.Errorf("after %s was forgotten: %q", step.who, got)
		}
	}
	keep("k", "d1", `{"id":1}`)
	now = now.Add(store.KeepAnswersFor)
	if got := recall("token:a", "k", "POST /x"); got != " 0 " {
		t.Errorf("after a day it is still there: %q", got)
	}
	keep("k", "d3", `{"id":3}`)
	if got := recall("token:a", "k", "POST /x"); got != `d3 201 {"id":3}` {
		t.Errorf("after a day the key is not free: %q", got)
	}
}
