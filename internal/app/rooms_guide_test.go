package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/app/apptest"
	"chorus/internal/config"
	"chorus/internal/room"
	"chorus/internal/room/history"
)

// TestGuideToRooms holds the examples of the guide to what reads them.
func TestGuideToRooms(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/rooms.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string][]string{}
	for i, part := range strings.Split("\n"+string(guide), "\n```") {
		if i%2 == 1 {
			kind, text, _ := strings.Cut(part, "\n")
			examples[kind] = append(examples[kind], text)
		}
	}
	if len(examples["yaml"]) == 0 || len(examples["history"]) != 2 || len(examples["pin"]) == 0 {
		t.Fatalf("the guide has %d kinds of examples", len(examples))
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bots"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bots", "cora.yaml"), []byte(examples["yaml"][0]), 0o600); err != nil {
		t.Fatal(err)
	}
	files, problems := config.ReadFiles(config.Options{Dir: dir, Env: apptest.Env()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	bot, problems := files.Bot(config.Ask{Bot: "cora", Pins: []config.Pin{{ID: "1", Text: examples["pin"][0]}}})
	if len(problems) > 0 || bot.Routing != "room" || !bot.ReplyOnName || bot.ReplyOnRandom != 50 || bot.WindowMessages != 200 {
		t.Fatalf("the pin makes of it %+v: %v", bot, problems)
	}
	cora := room.Agent{Name: "cora", InnerName: bot.InnerName}
	for i, text := range examples["history"] {
		order, is, err := history.Parse(text)
		if err != nil || !is || order.Clear() != (i == 1) || !cora.Addressed(order.Targets) {
			t.Errorf("%q is read as %+v: %v", text, order, err)
		}
	}
}
