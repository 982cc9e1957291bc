package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"chorus/bench/room"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
)

// A home that is years old, and how long any of its pages may take.
const (
	manySessions = 3_000
	manyEvents   = 1_000_000
	barSlowest   = 100 // ms
	// pageLooks is how often each page is asked for.
	pageLooks = 15
)

// pageRows measure how long the pages of a home take that has been talked to for years.
func (b *stand) pageRows(ctx context.Context, q float64) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	const home = "pages"
	session, err := fillSessions(ctx, filepath.Join(b.dir, home))
	if err != nil {
		return nil, fmt.Errorf("fill a home with %d sessions: %w", manySessions, err)
	}
	s, err := b.serve(ctx, home, openConfig)
	if err != nil {
		return nil, err
	}
	if err := s.rests(ctx); err != nil {
		return nil, err
	}
	var rows []row
	page := func(what string, paths ...string) error {
		slowest, where := 0.0, ""
		for _, path := range paths {
			var all []float64
			for range pageLooks {
				took, err := s.look(ctx, path)
				if err != nil {
					return fmt.Errorf("GET %s: %w", path, err)
				}
				all = append(all, took)
			}
			if took := quantile(all, q); took > slowest {
				slowest, where = took, path
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %.1f ms (%s)\n", what, slowest, where)
		rows = append(rows, row{what: what, unit: "ms", chorus: slowest, value: slowest, bar: barSlowest, how: "%.1f ms"})
		return nil
	}
	err = errors.Join(
		page("the overview, with 3,000 conversations and 1,000,000 events", "/"),
		page("… a conversation", "/s/"+session),
		page("… its journal", "/s/"+session+"/journal"),
		page("… a search for words that are everywhere", "/search?q=deploy"),
		page("… the slowest of 18 other pages", "/new", "/approvals", "/agents", "/agents/chorus", "/costs", "/audit", "/work", "/projects", "/workers", "/processes", "/schedules", "/hooks", "/skills",
			"/servers", "/memory", "/permissions", "/permissions/standard", "/settings"))
	_, stopped := s.stop()
	return rows, errors.Join(err, stopped)
}

// fillSessions makes a home with many conversations, and names the last one.
func fillSessions(ctx context.Context, home string) (last string, err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(home, "chorus.db")})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	who := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	script := room.Script()
	for i := range manySessions {
		last = fmt.Sprintf("talk-%04d", i)
		thread, err := chat.NewThreadID("web", who.OwnPlace(), last, chat.DefaultAgent)
		if err != nil {
			return "", err
		}
		_, err = db.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{ID: thread, Agent: chat.DefaultAgent, Place: who.OwnPlace(), Owner: who, Title: fmt.Sprintf("Conversation %d", i)}})
		if err != nil {
			return "", err
		}
		owned, err := db.Take(ctx, thread)
		if err != nil {
			return "", err
		}
		c := journal.Commit{Thread: thread, Epoch: owned.Epoch, Expect: owned.Next, Status: chat.Idle} // all that was said was answered
		for n := range manyEvents / manySessions / 4 {
			line := script[(i+n)%len(script)]
			run := fmt.Sprintf("run-%d-%d", i, n)
			c.Events = append(c.Events,
				chat.Event{Body: chat.Received{From: chat.Participant{Name: line.From, Kind: chat.Person}, Principal: who, Blocks: chat.TextBlocks(line.Text), Prompt: true}},
				chat.Event{Run: run, Body: chat.Took{Run: run, Step: 1, Seqs: []int64{owned.Next + int64(len(c.Events))}}},
				chat.Event{Run: run, Body: chat.Said{Attempt: 1, Blocks: chat.TextBlocks("About the deploy: " + line.Text)}},
				chat.Event{Run: run, Body: chat.RunEnded{Run: run, Reason: chat.EndDone, Steps: 1}})
		}
		if _, err := db.Commit(ctx, c); err != nil {
			return "", err
		}
		if i%100 == 0 {
			fmt.Fprintf(os.Stderr, "\rfilling a home: %d of %d conversations", i, manySessions)
		}
	}
	fmt.Fprintln(os.Stderr)
	return last, nil
}
