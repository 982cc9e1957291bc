package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/mirror/toollog"
	"chorus/internal/runsetup"
)

// ToolFiles returns the tool files of a Chapter3 installation, one channel of a bot each. The rows
// list what could not be read.
func ToolFiles(dir string) ([]toollog.Channel, []config.Taken, error) {
	tools := filepath.Join(dir, "tools")
	if !runsetup.IsDir(tools) {
		return nil, nil, nil
	}
	channels, problems, err := toollog.Read(tools)
	if err != nil {
		return nil, nil, fmt.Errorf("import: %w", err)
	}
	var rows []config.Taken
	for _, p := range problems {
		rows = append(rows, config.Taken{From: "tools", Action: "left out", Detail: p.String()})
	}
	return channels, rows, nil
}

// ToolThread is the thread for a channel's tool files. Chapter3's files do not
// name the guild, so it cannot be the channel's own thread.
func ToolThread(c toollog.Channel) (chat.ThreadID, error) {
	return chat.NewThreadID("chapter3", "tools", c.Name, c.Agent)
}

// ImportToolFiles imports a channel's tool files as a separate thread. Importing
// them twice is harmless.
func (s *Sessions) ImportToolFiles(ctx context.Context, c toollog.Channel) (config.Taken, error) {
	row := config.Taken{From: filepath.Join("tools", c.Agent, c.Name), Action: "written", Detail: fmt.Sprintf("%d calls", len(c.Entries))}
	thread, err := ToolThread(c)
	if err != nil {
		row.Action, row.Detail = "left out", err.Error()
		return row, nil
	}
	row.To = "thread " + string(thread)
	switch _, err := s.DB.Thread(ctx, thread); {
	case err == nil:
		row.Action = "same"
		return row, nil
	case !errors.Is(err, journal.ErrUnknown):
		return row, err
	}
	lines, blobs := c.Lines()
	data, err := json.Marshal(lines)
	if err != nil {
		return row, err
	}
	blob := chat.NewBlob(data)
	create := journal.Thread{ID: thread, Agent: c.Agent, Place: "tools", Owner: s.Me(), Dir: s.Home.Dir()}
	_, err = s.DB.Commit(ctx, journal.Commit{Thread: thread, Create: &create, Blobs: append(blobs, blob),
		Events: []chat.Event{{Thread: thread, Who: create.Owner.String(), Platform: "local", PlatformID: id.New(),
			Body: chat.Imported{Source: row.From, Blob: blob.Hash, Count: len(lines)}}}})
	if err != nil {
		return row, fmt.Errorf("import %s: %w", row.From, err)
	}
	return row, nil
}
