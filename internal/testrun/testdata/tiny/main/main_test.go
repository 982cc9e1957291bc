package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("READY", "yes"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestOnceBehindMain(t *testing.T) {
	if os.Getenv("READY") != "yes" {
		t.Fatal("TestMain did not run")
	}
	if err := os.Mkdir(filepath.Join(os.Getenv("TINY_DIR"), "main"), 0o755); err == nil {
		t.Fatal("the first time")
	}
}
