// Package npmtest gives tests the programs and libraries that others wrote and publish on npm, so that
// what Chorus speaks is looked at by those who will use it.
//
// It promises that a machine fetches each set once, also when several tests or processes want it at the
// same time, and that a test which cannot have it says loudly that it looked at nothing; with
// CI=true that is a failure wherever npm is there.
package npmtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fetchTime is how long npm may take.
const fetchTime = 3 * time.Minute

// Install gives a directory whose node_modules holds the packages, each named with its exact version.
func Install(t testing.TB, packages ...string) string {
	t.Helper()
	if !Available() {
		t.Skipf("SKIPPED: node or npm is not there, so %s did NOT look at this", strings.Join(packages, ", "))
	}
	dir, err := Fetch(t.Context(), packages...)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skipf("SKIPPED: %s could not be fetched, so it did NOT look at this: %v", strings.Join(packages, ", "), err)
	}
	return dir
}

// Available says whether node and npm are there.
func Available() bool {
	_, node := exec.LookPath("node")
	_, npm := exec.LookPath("npm")
	return node == nil && npm == nil
}

// Fetch is Install for those who have no test at hand.
func Fetch(ctx context.Context, packages ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(packages)), " ")))
	dir := filepath.Join(cache, "chorus-test", "npm-"+hex.EncodeToString(sum[:6]))
	complete := func() bool { _, err := os.Stat(filepath.Join(dir, "complete")); return err == nil }
	if complete() {
		return dir, nil
	}
	// Everybody who finds it missing fetches alone, and the first one done wins.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	own, err := os.MkdirTemp(filepath.Dir(dir), "fetching-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(own) }()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix", own}, packages...)...)
	cmd.Dir = own
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	if err := os.WriteFile(filepath.Join(own, "complete"), nil, 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(own, dir); err != nil && !complete() {
		return "", err
	}
	return dir, nil
}

// Bin is a program of the packages in dir.
func Bin(dir, name string) string { return filepath.Join(dir, "node_modules", ".bin", name) }
