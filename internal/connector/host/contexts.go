package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/runsetup"
	"chorus/internal/store"
)

// NoSummary is stored if a model would not or could not write a summary.
const NoSummary = "(summary generation failed)"

// savedFile is the file of a saved context.
type savedFile struct {
	ID          string         `json:"session_id"`
	At          time.Time      `json:"timestamp"`
	Description string         `json:"description"`
	Summary     string         `json:"summary"`
	Count       int            `json:"message_count"`
	From        time.Time      `json:"window_start"`
	Until       time.Time      `json:"window_end"`
	Messages    []savedMessage `json:"messages"`
}

// savedMessage is one message in it. A restore reads Blocks and the speaker; the
// other fields are for people and other programs.
type savedMessage struct {
	ID        int64            `json:"id"`
	Agent     string           `json:"agent_name"`
	Thread    chat.ThreadID    `json:"thread_id"`
	Role      string           `json:"role"`
	Content   string           `json:"content"`
	ToolCalls []savedCall      `json:"tool_calls"`
	ToolCall  *string          `json:"tool_call_id"`
	At        time.Time        `json:"timestamp"`
	Platform  *string          `json:"discord_message_id"`
	From      chat.Participant `json:"from"`
	Blocks    chat.Blocks      `json:"blocks"`
}

type savedCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"`
}

// Saving is a command to save the conversations of one agent in one place.
type Saving struct {
	Rows        []journal.Thread
	By          chat.Principal
	description string
	Quiet       time.Time // since when nobody has spoken; zero: somebody asked for it
	run         string    // in the ledger; "": a new one
	attempt     int
}

// SaveContext saves the windows of conversations: a model's summary, a file,
// a row. It clears nothing, and also saves without a summary. The file is written
// before the row, so a row never names a missing file.
func (h *Host) SaveContext(ctx context.Context, s Saving) (store.SavedContext, error) {
	file := savedFile{ID: newUUID(), At: time.Now().UTC().Truncate(time.Microsecond), Description: s.description}
	conversations, err := h.gather(ctx, s.Rows, &file)
	if err != nil {
		return store.SavedContext{}, err
	}
	if len(file.Messages) == 0 {
		return store.SavedContext{}, errNothingSaved
	}
	row := s.Rows[0]
	d := digesting{agent: row.Agent, thread: row.ID, payer: s.By, run: cmp.Or(s.run, "save-"+file.ID), attempt: s.attempt, conversations: conversations}
	if file.Summary, err = h.digest(ctx, d); err != nil {
		if ctx.Err() != nil {
			return store.SavedContext{}, ctx.Err()
		}
		h.Log.Warn("no summary of a saved context could be made", "component", "contexts", "event", "summary_failed", "agent", row.Agent, "error", err)
		file.Summary = NoSummary
	}
	path, err := h.writeSaved(ctx, row, file)
	if err != nil {
		return store.SavedContext{}, err
	}
	saved := store.SavedContext{ID: file.ID, Agent: row.Agent, Transport: row.ID.Transport(), Place: row.Place, Description: s.description, Summary: file.Summary,
		By: s.By.String(), At: file.At, Messages: file.Count, From: file.From, Until: file.Until, File: path, Quiet: s.Quiet}
	fresh, err := h.DB.KeepContext(ctx, saved)
	if err == nil && !fresh {
		_ = os.Remove(path) // the list already contains another one of this idle time
		err = h.Settings.ForgetContext(ctx, file.ID)
	}
	return saved, err
}

var errNothingSaved = errors.New("there is nothing to save")

// gather puts the windows of conversations into the file, the oldest conversation first.
func (h *Host) gather(ctx context.Context, rows []journal.Thread, file *savedFile) (conversations [][]chat.Line, err error) {
	for _, row := range slices.Backward(rows) {
		log, err := engine.Load(ctx, h.DB, row.ID)
		if err != nil {
			return nil, err
		}
		for ev, err := range h.DB.AllEvents(ctx, row.ID, log.Seq()) {
			if err == nil {
				err = log.Apply(ev)
			}
			if err != nil {
				return nil, err
			}
		}
		placed, err := log.PlacedLines()
		if err != nil {
			return nil, err
		}
		var lines []chat.Line
		for _, p := range placed {
			ev, err := h.DB.Event(ctx, row.ID, p.Seq)
			if err != nil {
				return nil, err
			}
			lines = append(lines, p.Line)
			file.Messages = append(file.Messages, savedAs(row, p.Line, ev))
		}
		if len(lines) > 0 {
			conversations = append(conversations, lines)
		}
	}
	file.Count = len(file.Messages)
	for _, m := range file.Messages {
		if file.From.IsZero() || m.At.Before(file.From) {
			file.From = m.At
		}
		if m.At.After(file.Until) {
			file.Until = m.At
		}
	}
	return conversations, nil
}

func savedAs(row journal.Thread, line chat.Line, ev chat.Event) savedMessage {
	m := savedMessage{ID: ev.Seq, Agent: row.Agent, Thread: row.ID, Role: line.Role, Content: line.Blocks.Text(), At: ev.At, From: line.From, Blocks: line.Blocks}
	if ev.Platform == row.ID.Transport() && ev.PlatformID != "" {
		m.Platform = &ev.PlatformID
	}
	for _, block := range line.Blocks {
		switch b := block.(type) {
		case chat.ToolUse:
			m.ToolCalls = append(m.ToolCalls, savedCall{b.ID, b.Name, b.Args})
		case chat.ToolResult:
			m.ToolCall = cmp.Or(m.ToolCall, &b.Call)
			m.Content += b.Blocks.Text()
		}
	}
	return m
}

// writeSaved writes the file next to the agent's others; for an agent without a folder, with
// the place.
func (h *Host) writeSaved(ctx context.Context, row journal.Thread, file savedFile) (string, error) {
	dir := filepath.Join(h.Home.AgentDir(row.Agent), "sessions")
	if !runsetup.IsDir(h.Home.AgentDir(row.Agent)) {
		dir = filepath.Join(filepath.Dir(h.Home.ThreadDir(row.ID)), "sessions")
	}
	dir, err := h.Home.Ensure(dir)
	if err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return "", err
	}
	data = append(data, '\n')
	if err := h.Settings.KeepContext(ctx, file.ID, data); err != nil { // a context that is too long can only be restored on this machine
		h.Log.Warn("other machines cannot restore a saved context", "component", "contexts", "event", "context_not_shared", "agent", row.Agent, "error", err)
	}
	path := filepath.Join(dir, file.ID+".json")
	return path, datadir.WriteFile(path, data, 0o600)
}

// newUUID is a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// savedNamed finds one saved context by its id or an unambiguous prefix.
func (h *Host) savedNamed(ctx context.Context, f store.ContextFilter, id string) (store.SavedContext, error) {
	f.Prefix, f.Limit = id, 2
	found, err := h.DB.SavedContexts(ctx, f)
	switch {
	case err != nil:
		return store.SavedContext{}, err
	case id == "" || len(found) == 0:
		return store.SavedContext{}, operation.Errorf(operation.NotFound, "no context saved here has an id that starts with %.40q; see `/context history`", id)
	case len(found) > 1:
		return store.SavedContext{}, operation.Errorf(operation.Conflict, "several ids start with %.40q; type more of it", id)
	}
	return found[0], nil
}

// restoreContext replaces the current windows by a saved context: with what was
// saved of each conversation, or nothing if it was not saved. Repeating it changes
// nothing, so an interrupted restore is simply repeated.
func (h *Host) restoreContext(ctx context.Context, saved store.SavedContext, rows []journal.Thread, by string) (connector.Restored, error) {
	var out connector.Restored
	data, err := h.Settings.ReadContext(ctx, saved)
	if err != nil {
		h.Log.Warn("a saved context cannot be read", "component", "contexts", "event", "restore_failed", "error", err)
		return out, operation.Errorf(operation.NotFound, "the file of this context is missing or unreadable; nothing was changed")
	}
	var file savedFile
	if err := json.Unmarshal(data, &file); err != nil {
		return out, operation.Errorf(operation.Failed, "the file %s is damaged; nothing was changed: %v", filepath.Base(saved.File), err)
	}
	lines := map[chat.ThreadID][]chat.Line{}
	for _, m := range file.Messages {
		lines[m.Thread] = append(lines[m.Thread], chat.Line{Role: m.Role, From: m.From, At: m.At, Blocks: m.Blocks})
	}
	for _, row := range rows {
		if row.Status.On() {
			return out, operation.Errorf(operation.Conflict, "%q is running; stop it or wait until it ends, then restore", cmp.Or(row.Title, row.ID.Thread()))
		}
	}
	for _, row := range rows {
		before, kept := lines[row.ID]
		delete(lines, row.ID)
		if !kept {
			n, err := h.Running().Clear(ctx, row.ID, by)
			if err != nil {
				return out, err
			}
			if n > 0 {
				out.Cleared++
			}
			continue
		}
		if err := h.Running().Replace(ctx, row.ID, by, "saved context "+saved.ID, before); err != nil {
			return out, err
		}
		out.Conversations++
		out.Messages += len(before)
	}
	out.LeftOut = len(lines)
	return out, nil
}
