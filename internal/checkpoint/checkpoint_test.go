package checkpoint

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// memoryLog is a log by the hashes of its seals, the first one first.
type memoryLog []string

func (l memoryLog) SealAudit(ctx context.Context) (int64, string, error) { return l.AuditHead(ctx) }

func (l memoryLog) AuditHead(context.Context) (int64, string, error) {
	if len(l) == 0 {
		return 0, "", nil
	}
	return int64(len(l)), l[len(l)-1], nil
}

func (l memoryLog) AuditSeal(_ context.Context, seal int64) (string, error) {
	if seal < 1 || seal > int64(len(l)) {
		return "", nil
	}
	return l[seal-1], nil
}

// AuditLost is what stands instead of the hash of a seal that has lost its lines.
func (l memoryLog) AuditLost(_ context.Context, seal int64) (string, error) {
	if seal < 1 || !strings.HasPrefix(l[seal-1], "lost") {
		return "", nil
	}
	return "lines were cut off", nil
}

// AuditHash knows two lines from before there were seals.
func (l memoryLog) AuditHash(_ context.Context, line int64) (string, error) {
	return map[int64]string{1: "line one", 2: "line two"}[line], nil
}

func newKeeper(t *testing.T) Keeper {
	t.Helper()
	dir := t.TempDir()
	return Keeper{Home: "test", File: filepath.Join(dir, "state", "points.jsonl"), Key: filepath.Join(dir, "home", "audit.key"), Pause: time.Millisecond}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	log := memoryLog{"a", "b", "c", "d", "e"}
	if p, err := k.Keep(t.Context(), memoryLog{}); p != nil || err != nil {
		t.Errorf("of nothing: %v, %v", p, err)
	}
	for n := 1; n <= len(log); n += 2 {
		if p, err := k.Keep(t.Context(), log[:n]); err != nil || p == nil || p.Seal != int64(n) {
			t.Fatalf("%d: %v, %v", n, p, err)
		}
	}
	if p, err := k.Keep(t.Context(), log); p != nil || err != nil {
		t.Errorf("the same again: %v, %v", p, err)
	}
	if p, err := k.Check(t.Context(), append(log, "f")); err != nil || p.Seal != 5 {
		t.Errorf("with a new line: %v, %v", p, err)
	}
	for _, tt := range []struct {
		name string
		log  memoryLog
		seal int64
		gone bool
		text string
	}{
		{"cut off", log[:3], 4, true, "ends with seal 3, but seal 5 was there at 20"},
		{"emptied", nil, 1, true, "seals 1 to 5 are missing at the end"},
		{"cut by one", log[:4], 5, true, "seal 5 is missing at the end"},
		{"cut off and gone on", memoryLog{"a", "b", "c", "D", "E", "F"}, 5, false, "seal 5 is not the one that was there"},
		{"written anew", memoryLog{"A", "B", "C", "D", "E"}, 1, false, "seal 1 is not the one"},
	} {
		_, err := k.Check(t.Context(), tt.log)
		var broken *Broken
		if !errors.As(err, &broken) || broken.Seal != tt.seal || broken.Gone != tt.gone || !strings.Contains(broken.Text, tt.text) {
			t.Errorf("%s: %+v", tt.name, err)
		}
		if p, err := k.Keep(t.Context(), tt.log); err == nil || p != nil {
			t.Errorf("%s: a head was kept: %v", tt.name, p)
		}
	}
	if _, err := k.Check(t.Context(), log); err != nil {
		t.Errorf("what proves it is gone: %v", err)
	}
}

// Checkpoints from before there were seals are held against their lines, and new ones stand behind them.
func TestCheckpointsFromBeforeSeals(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{"line two": "", "another": "line 2 is not the one that was there"} {
		k := newKeeper(t)
		key, err := k.key(true)
		if err != nil {
			t.Fatal(err)
		}
		old := Point{Home: k.Home, Line: 2, Head: head, At: time.Now().UTC()}
		old.Signature = encode(ed25519.Sign(key, old.signed()))
		if err := k.write([]Point{old}); err != nil {
			t.Fatal(err)
		}
		p, err := k.Keep(t.Context(), memoryLog{"a"})
		switch {
		case want == "" && (err != nil || p == nil || p.Seal != 1):
			t.Errorf("%v, %v", p, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v", err)
		}
		if want != "" {
			continue
		}
		if p, err := k.Check(t.Context(), memoryLog{"a"}); err != nil || p.Seal != 1 {
			t.Errorf("both: %v, %v", p, err)
		}
	}
}

// Whoever changes a checkpoint needs the key.
func TestSignature(t *testing.T) {
	t.Parallel()
	log := memoryLog{"a", "b"}
	for name, change := range map[string]func(k *Keeper) error{
		"another seal": func(k *Keeper) error { return replace(k.File, `"seal":2`, `"seal":1`) },
		"another head": func(k *Keeper) error { return replace(k.File, `"head":"b"`, `"head":"x"`) },
		"another time": func(k *Keeper) error { return replace(k.File, `"at":"20`, `"at":"19`) },
		"another log":  func(k *Keeper) error { k.Home = "other"; return nil },
		"no JSON":      func(k *Keeper) error { return replace(k.File, `{`, `[`) },
		"no key":       func(k *Keeper) error { return os.Remove(k.Key) },
		"another key": func(k *Keeper) error {
			if err := os.Remove(k.Key); err != nil {
				return err
			}
			_, err := k.key(true)
			return err
		},
	} {
		k := newKeeper(t)
		if _, err := k.Keep(t.Context(), log); err != nil {
			t.Fatal(err)
		}
		if err := change(&k); err != nil {
			t.Fatal(err)
		}
		var broken *Broken
		if _, err := k.Check(t.Context(), log); !errors.As(err, &broken) || !strings.Contains(broken.Text, k.File) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k := newKeeper(t)
	if _, err := k.Keep(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(k.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Check(t.Context(), log); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
}

func replace(file, old, by string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), old) {
		return fmt.Errorf("no %s in %s", old, data)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(data), old, by, 1)), 0o600)
}

// A seal that is still there does not help when the lines are gone that it has.
func TestCheckLooksForLines(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	log := memoryLog{"a", "lost"}
	if _, err := k.Keep(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	var broken *Broken
	if _, err := k.Keep(t.Context(), append(log, "c")); !errors.As(err, &broken) || !broken.Gone || broken.Seal != 2 || broken.Text != "lines were cut off" {
		t.Errorf("%v", err)
	}
}

// A file does not grow for ever, and what is dropped is the oldest.
func TestFileIsBounded(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	var log memoryLog
	for i := range maxPoints + 3 {
		log = append(log, fmt.Sprint("h", i))
		if _, err := k.Keep(t.Context(), log); err != nil {
			t.Fatal(err)
		}
	}
	points, err := k.load()
	if err != nil || len(points) != maxPoints || points[0].Seal != 4 {
		t.Errorf("%d points, %v", len(points), err)
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var got Point
	answer := func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s %v", r.Method, err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(answer))
	defer server.Close()
	k := newKeeper(t)
	k.URL = server.URL + "/?key=test-key-value"
	p, err := k.Keep(t.Context(), memoryLog{"a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Send(t.Context(), *p); err != nil || asked.Load() != 3 || got.Signature != p.Signature || got.Head != "a" {
		t.Errorf("%d tries, %+v, %v", asked.Load(), got, err)
	}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	})
	asked.Store(0)
	if err := k.Send(t.Context(), *p); err == nil || asked.Load() != tries || strings.Contains(err.Error(), "test-key-value") || !strings.Contains(err.Error(), "403") {
		t.Errorf("refused: %d tries, %v", asked.Load(), err)
	}
}

// A target that is down, or that takes the connection and says nothing, holds nobody up.
func TestTargetDown(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := closed.Addr().String()
	_ = closed.Close()
	k := newKeeper(t)
	p, err := k.Keep(t.Context(), memoryLog{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{down, silent.Addr().String()} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // as the end of a process would
		k.URL = "http://" + addr
		began := time.Now()
		if err := k.Send(ctx, *p); err == nil || !strings.Contains(err.Error(), "audit.checkpointUrl") {
			t.Errorf("%s: %v", addr, err)
		}
		if took := time.Since(began); took >= oneTry {
			t.Errorf("%s: it took %s", addr, took)
		}
		cancel()
	}
}

func TestGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: there is no git")
	}
	dir := t.TempDir()
	k := newKeeper(t)
	k.Git = filepath.Join(dir, "copy")
	for _, args := range [][]string{{"init", "-q", "--bare", filepath.Join(dir, "remote")}, {"clone", "-q", filepath.Join(dir, "remote"), k.Git}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	hook := filepath.Join(k.Git, ".git", "hooks", "pre-commit")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+dir+"/hooked\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, log := range []memoryLog{{"a"}, {"a", "b"}} {
		p, err := k.Keep(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a second time does no harm
			if err := k.Send(t.Context(), *p); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.Command("git", "-C", filepath.Join(dir, "remote"), "log", "--format=%s", "--all").Output()
	if err != nil || string(out) != "Checkpoint of the audit log: seal 2\nCheckpoint of the audit log: seal 1\n" {
		t.Errorf("%s %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "hooked")); err == nil {
		t.Error("a hook of the repository was started")
	}
	k.Git = filepath.Join(dir, "nothing")
	if err := k.Send(t.Context(), Point{Line: 1}); err == nil || !strings.Contains(err.Error(), "audit.checkpointGit") {
		t.Errorf("no repository: %v", err)
	}
}
