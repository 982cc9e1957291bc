package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A rush: many conversations that are held and then left.
const (
	rushSessions = 1000
	rushAtOnce   = 200
	rushTurns    = 3
	// barRush is how many MB more than before the server may hold when the rush is over for rushOver.
	barRush  = 20.0
	rushOver = 2 * time.Minute
)

// rushRows measure whether the memory of conversations that nobody goes on with comes back. What is compared is a
// server that has held one.
func (b *stand) rushRows(ctx context.Context) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*loadTime)
	defer cancel()
	s, err := b.serve(ctx, "rush", openConfig)
	if err != nil {
		return nil, err
	}
	before, after, took, err := b.rush(ctx, s)
	cost, stopped := s.stop()
	if err := errors.Join(err, stopped); err != nil {
		return nil, err
	}
	return []row{
		{what: fmt.Sprintf("memory after %d conversations were left, more than before", rushSessions), unit: "MB", floor: before, chorus: after, value: after - before, bar: barRush, how: "%.1f MB"},
		{what: "… after", unit: "s", chorus: took.Seconds()},
		{what: "… at the most", unit: "MB", chorus: cost.peak},
	}, nil
}

// rush holds the conversations and waits until their memory is back, or the time is over.
func (b *stand) rush(ctx context.Context, s *served) (before, after float64, took time.Duration, err error) {
	if err := expect(ctx, b.url, rushTurns); err != nil {
		return 0, 0, 0, err
	}
	private := func() float64 { return float64(privateNow(s.cmd.Process.Pid)) / 1e6 } // not the pages of the program's file
	if err := b.hold(ctx, s, 1); err != nil {
		return 0, 0, 0, err
	}
	if err := s.rests(ctx); err != nil {
		return 0, 0, 0, err
	}
	before = private()
	for held := 0; held < rushSessions; held += rushAtOnce {
		if err := b.hold(ctx, s, rushAtOnce); err != nil {
			return 0, 0, 0, err
		}
	}
	s.client.CloseIdleConnections()
	over := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		after, took = private(), time.Since(over)
		if after-before <= barRush || took > rushOver {
			return before, after, took, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, 0, 0, ctx.Err()
		}
	}
}

// hold holds so many new conversations at once to their end.
func (b *stand) hold(ctx context.Context, s *served, conversations int) error {
	return each(conversations, func(int) error {
		session, err := s.session(ctx, b.repo())
		if err != nil {
			return err
		}
		if err := s.say(ctx, session); err != nil {
			return err
		}
		got, err := s.follow(ctx, session, func() {})
		if err == nil && got.end != "completed" {
			err = fmt.Errorf("session %s ended with %q", session, got.end)
		}
		return err
	})
}
