package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"chorus/bench/room"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/participants"
)

// The bars of a room.
const (
	barCached  = 88.0 // percent of all input that the provider's cache had, rolls included
	barBetween = 97.0 // percent, between two rolls
	barBuild   = 2.0  // ms to build a prompt of 400 messages
	barHistory = 1.2  // building with a million messages behind the window, to a thousand
)

// The histories that building is compared with.
const (
	littleHistory = 1_000
	longHistory   = 1_000_000
)

// styles are the ways in which a room is told to a model.
func styles() map[string]room.Wrap {
	in := func(mode participants.Mode) room.Wrap {
		return func(m model.Model, e catalog.Entry) model.Model {
			return participants.Style{Mode: mode, Bot: room.Bot, Persona: true, Stable: true, StopLimit: 4}.Wrap(m, e)
		}
	}
	return map[string]room.Wrap{"chat": in(participants.Chat), "prefill": in(participants.Prefill)}
}

// roomRows measures the room in both styles.
func roomRows(ctx context.Context, dir string) ([]row, error) {
	var rows []row
	for _, name := range []string{"chat", "prefill"} {
		wrap := styles()[name]
		got, err := room.Cache(ctx, filepath.Join(dir, "room-"+name), wrap)
		if err != nil {
			return nil, fmt.Errorf("room, %s: %w", name, err)
		}
		sliding, err := room.Naive(ctx, wrap)
		if err != nil {
			return nil, fmt.Errorf("room, sliding, %s: %w", name, err)
		}
		percent := func(what string, share, beside, bar float64) row {
			return row{what: fmt.Sprintf("%s, %s", what, name), unit: "%", floor: 100 * beside, chorus: 100 * share, value: 100 * share, bar: bar, how: "%.1f%%", least: true}
		}
		rows = append(rows,
			percent("cached of all input (beside: a sliding window)", got.All, sliding.All, barCached),
			percent("cached between rolls", got.Between, 0, barBetween),
			percent("cached while the window grows", got.Growing, 0, 0))
	}
	built, err := buildRows(ctx, dir)
	return append(rows, built...), err
}

func buildRows(ctx context.Context, dir string) ([]row, error) {
	took := map[int]room.Times{}
	for _, history := range []int{littleHistory, longHistory} {
		times, err := room.Build(ctx, filepath.Join(dir, fmt.Sprintf("history-%d", history)), history, styles()["prefill"], func(done int) {
			if done%50_000 == 0 {
				fmt.Fprintf(os.Stderr, "\rfilling the room: %d of %d messages", done, history)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("a history of %d: %w", history, err)
		}
		took[history] = times
	}
	fmt.Fprintln(os.Stderr)
	ms := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
	little, long := took[littleHistory], took[longHistory]
	return []row{
		{what: "building a prompt of 400 messages", unit: "ms", chorus: ms(long.Warm), value: ms(long.Warm), bar: barBuild, how: "%.2f ms"},
		{what: "… with a million messages behind it, to a thousand", unit: "ms", floor: ms(little.Warm), chorus: ms(long.Warm), value: ms(long.Warm) / ms(little.Warm), bar: barHistory, how: "%.2f×"},
		{what: "… in a new process, which reads the window first", unit: "ms", floor: ms(little.Cold), chorus: ms(long.Cold), value: ms(long.Cold) / ms(little.Cold), bar: barHistory, how: "%.2f×"},
	}, nil
}
