package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/memory"
	"chorus/internal/store"
)

// barMemory is what a look at memory that has not changed may take: it comes before every request.
const barMemory = 1.0 // ms

// memoryRows measure a look at 200 files of memory when nothing has changed.
func memoryRows(ctx context.Context, dir string, q float64) ([]row, error) {
	home := filepath.Join(dir, "memory-home")
	docs := filepath.Join(home, "agents", "planner", "docs")
	if err := os.MkdirAll(docs, 0o755); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(home, "chorus.db")})
	if err != nil {
		return nil, err
	}
	keeper := memory.NewKeeper(home, db, time.Now)
	var all []memory.File
	for i := range 200 {
		name := fmt.Sprint(i, ".md")
		err := os.WriteFile(filepath.Join(docs, name), []byte(strings.Repeat("- something\n", 20)), 0o644)
		f, perr := memory.Parse("agents/planner/docs/" + name)
		if err = errors.Join(err, perr); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		all = append(all, f)
	}
	look := func() {
		for _, f := range all {
			if _, lerr := keeper.Read(ctx, f); lerr != nil {
				err = lerr
			}
		}
	}
	look()
	ms := timed(q, look, 10, rounds)
	return []row{{what: "look at 200 files of memory, nothing changed", unit: "ms", chorus: ms, value: ms, bar: barMemory, how: "%.2f ms"}}, errors.Join(err, db.Close())
}
