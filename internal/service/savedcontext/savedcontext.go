// Package savedcontext saves what agents see of conversations, with a model's summary, so that people can go back to it later.
//
// A saved context is a file for people, a row in the database and, for other machines, the text of the file in the database. The file is
// written before the row, so a row never names a missing file. Before either, the database notes which file is coming, so that Sweep
// finds what a killed process left.
package savedcontext

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/service/summary"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// NoSummary is stored if a model would not or could not write a summary.
const NoSummary = "(summary generation failed)"

// ErrEmpty is returned if the agent sees nothing that could be saved.
var ErrEmpty = operation.Errorf(operation.NotFound, "there is nothing to save: there are no messages since the last clear")

// Contexts saves contexts and brings them back.
type Contexts struct {
	DB        *store.DB
	Home      *datadir.Home
	Log       *slog.Logger
	Settings  *settings.Settings
	Summaries *summary.Writer

	step func(string) // a hook for tests, to stop the process here
}

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

// Saving says what to save: conversations of one agent in one place.
type Saving struct {
	Rows        []journal.Thread
	By          chat.Principal
	Description string
	Quiet       time.Time // since when nobody has spoken; zero: somebody asked for it
	Run         string    // of the summary in the ledger; "": its own
	Key         string    // with the same key it is saved once; "": each time
}

// Save saves the windows of conversations. It clears nothing, and also saves if there is no summary.
func (c *Contexts) Save(ctx context.Context, s Saving) (store.SavedContext, error) {
	file := savedFile{ID: newID(s.Key), At: time.Now().UTC().Truncate(time.Microsecond), Description: s.Description}
	if s.Key != "" {
		if saved, err := c.DB.SavedContexts(ctx, store.ContextFilter{Prefix: file.ID, Limit: 1}); err != nil || len(saved) > 0 {
			return first(saved), err
		}
	}
	conversations, err := c.gather(ctx, s.Rows, &file)
	if err != nil {
		return store.SavedContext{}, err
	}
	if len(file.Messages) == 0 {
		return store.SavedContext{}, ErrEmpty
	}
	row := s.Rows[0]
	if file.Summary, err = c.summarize(ctx, s, row, file.ID, conversations); err != nil {
		return store.SavedContext{}, err
	}
	return c.keep(ctx, s, row, file)
}

func first(list []store.SavedContext) (c store.SavedContext) {
	if len(list) > 0 {
		c = list[0]
	}
	return c
}

// summarize returns the summary, or NoSummary if there is none.
func (c *Contexts) summarize(ctx context.Context, s Saving, row journal.Thread, file string, conversations [][]chat.Line) (string, error) {
	run := cmp.Or(s.Run, "save-"+file)
	before, err := c.DB.LedgerEntries(ctx, run)
	if err != nil {
		return "", err
	}
	text, err := c.Summaries.Write(ctx, summary.Request{Agent: row.Agent, Thread: row.ID, Payer: s.By, Run: run, Attempt: len(before) + 1, Conversations: conversations})
	if err == nil || ctx.Err() != nil {
		return text, ctx.Err()
	}
	c.Log.Warn("no summary of a saved context could be made", "component", "contexts", "event", "summary_failed", "agent", row.Agent, "error", err)
	return NoSummary, nil
}

// gather puts the windows of conversations into the file, the oldest conversation first.
func (c *Contexts) gather(ctx context.Context, rows []journal.Thread, file *savedFile) (conversations [][]chat.Line, err error) {
	for _, row := range slices.Backward(rows) {
		log, err := engine.Load(ctx, c.DB, row.ID)
		if err != nil {
			return nil, err
		}
		for ev, err := range c.DB.AllEvents(ctx, row.ID, log.Seq()) {
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
			ev, err := c.DB.Event(ctx, row.ID, p.Seq)
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

// newID returns an id in the form of a UUID: a random one, or always the same for a key.
func newID(key string) string {
	var b [16]byte
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		copy(b[:], sum[:])
	} else {
		_, _ = rand.Read(b[:]) // never fails
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Named finds one saved context by its id or an unambiguous prefix.
func (c *Contexts) Named(ctx context.Context, f store.ContextFilter, id string) (store.SavedContext, error) {
	f.Prefix, f.Limit = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(id), "…")), 2 // as lists shorten it
	found, err := c.DB.SavedContexts(ctx, f)
	switch {
	case err != nil:
		return store.SavedContext{}, err
	case f.Prefix == "" || len(found) == 0:
		return store.SavedContext{}, operation.Errorf(operation.NotFound, "no context saved here has an id that starts with %.40q; `/context history` lists them, in a shell `chorus context list`", id)
	case len(found) > 1:
		return store.SavedContext{}, operation.Errorf(operation.Conflict, "several ids start with %.40q; type more of it", id)
	}
	return found[0], nil
}

// Restored is the result of a restore.
type Restored struct {
	Conversations int // that have their old window again
	Messages      int // in those conversations
	Cleared       int // conversations that were not saved
	LeftOut       int // saved conversations that are not among the given ones
}

// Restore replaces the current windows by a saved context: with what was saved of each conversation, or nothing if it was not saved.
// Repeating it changes nothing, so an interrupted restore is simply repeated.
func (c *Contexts) Restore(ctx context.Context, windows *engine.Engine, saved store.SavedContext, rows []journal.Thread, by string) (Restored, error) {
	var out Restored
	lines, _, err := c.read(ctx, saved)
	if err != nil {
		return out, err
	}
	for _, row := range rows {
		if row.Status.On() {
			return out, running(row)
		}
	}
	for _, row := range rows {
		before, kept := lines[row.ID]
		delete(lines, row.ID)
		if !kept {
			n, err := windows.Clear(ctx, row.ID, by)
			if err != nil {
				return out, err
			}
			if n > 0 {
				out.Cleared++
			}
			continue
		}
		if err := windows.Replace(ctx, row.ID, by, source(saved), before); err != nil {
			return out, err
		}
		out.Conversations++
		out.Messages += len(before)
	}
	out.LeftOut = len(lines)
	return out, nil
}

// RestoreInto replaces the window of one conversation by what was saved of it, or by the only conversation that was saved. It returns
// the number of messages.
func (c *Contexts) RestoreInto(ctx context.Context, windows *engine.Engine, saved store.SavedContext, row journal.Thread, by string) (int, error) {
	lines, order, err := c.read(ctx, saved)
	if err != nil {
		return 0, err
	}
	before, kept := lines[row.ID]
	switch {
	case row.Status.On():
		return 0, running(row)
	case !kept && len(order) != 1:
		return 0, operation.Errorf(operation.Conflict, "%d conversations were saved there, and this one is not among them; restore it in one of those", len(order))
	case !kept:
		before = lines[order[0]]
	}
	return len(before), windows.Replace(ctx, row.ID, by, source(saved), before)
}

func running(row journal.Thread) error {
	return operation.Errorf(operation.Conflict, "%q is running; stop it or wait until it ends, then restore", cmp.Or(row.Title, row.ID.Thread()))
}

// source says in the journal where a window comes from.
func source(saved store.SavedContext) string { return "saved context " + saved.ID }

// read returns what was saved of each conversation, and the conversations in the order in which they were saved.
func (c *Contexts) read(ctx context.Context, saved store.SavedContext) (lines map[chat.ThreadID][]chat.Line, order []chat.ThreadID, err error) {
	data, err := c.Settings.ReadContext(ctx, saved)
	if err != nil {
		c.Log.Warn("a saved context cannot be read", "component", "contexts", "event", "restore_failed", "error", err)
		return nil, nil, operation.Errorf(operation.NotFound, "the file of this context is missing or unreadable; nothing was changed")
	}
	var file savedFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, nil, operation.Errorf(operation.Failed, "the file %s is damaged; nothing was changed: %v", filepath.Base(saved.File), err)
	}
	lines = map[chat.ThreadID][]chat.Line{}
	for _, m := range file.Messages {
		if lines[m.Thread] == nil {
			order = append(order, m.Thread)
		}
		lines[m.Thread] = append(lines[m.Thread], chat.Line{Role: m.Role, From: m.From, At: m.At, Blocks: m.Blocks})
	}
	return lines, order, nil
}
