package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
)

// Log is the content of a session log.
type Log struct {
	Start Start             // of the last session_start
	Notes map[string]string // work notes that were not removed
	lines []chat.Line
}

// Lines returns the conversation, every call followed by its result. The caller may keep and change the slice.
func (l Log) Lines() []chat.Line { return append([]chat.Line(nil), l.lines...) }

// Read reads a log to its end. Unusable lines are skipped, each with a warning
// that names it (warn may be nil). Only r can cause an error.
//
// Only "message" lines form the conversation. An event of type Cleared empties
// it. Calls that never got a result get an interrupted one.
func Read(r io.Reader, warn func(string)) (Log, error) {
	if warn == nil {
		warn = func(string) {}
	}
	rd := reader{log: Log{Notes: map[string]string{}}, tools: map[string]string{}}
	in := jsonl.NewReader(r, jsonl.MaxLine)
	for {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Log{}, fmt.Errorf("read session log after line %d: %w", in.No, err)
		}
		if l.Blank() {
			continue
		}
		rd.warn = func(why string) { warn(fmt.Sprintf("session log line %d: %s", l.No, why)) }
		rd.take(l)
	}
	rd.log.lines = Repair(rd.log.lines, warn)
	return rd.log, nil
}

type reader struct {
	log   Log
	tools map[string]string // names of calls by id, for results without a name
	warn  func(string)
}

func (rd *reader) take(l jsonl.Line) {
	e, err := parseLine(l)
	switch {
	case errors.Is(err, errNoData):
		return // other programs' lines, for example the logger's errors
	case err != nil && !l.Ended:
		rd.warn("it was cut off; skipped")
		return
	case err != nil:
		rd.warn("skipped: " + err.Error())
		return
	}
	switch e.kind {
	case "session_start":
		rd.log.Start = Start{e.SessionID, e.SessionPath, e.RepoRoot, e.Provider, e.Model, e.Mode, e.Resumed}
	case "message":
		rd.message(e)
	case "event":
		if strings.EqualFold(e.EventType, "Cleared") {
			rd.log.lines = nil
		}
	case "work_note":
		rd.note(e)
	case "work_note_clear_all":
		clear(rd.log.Notes)
	}
}

func (rd *reader) note(e entry) {
	if e.Key == "" {
		rd.warn("skipped: a work note without a key")
		return
	}
	if len(e.Value) == 0 || string(e.Value) == "null" {
		delete(rd.log.Notes, e.Key)
		return
	}
	rd.log.Notes[e.Key] = plain(e.Value)
}

func (rd *reader) message(e entry) {
	add := func(role string, from chat.Participant, blocks chat.Blocks) {
		rd.log.lines = append(rd.log.lines, chat.Line{Role: role, From: from, At: e.at, Blocks: blocks})
	}
	switch strings.ToLower(e.Role) {
	case "user":
		if blocks := userBlocks(e.speech()); len(blocks) > 0 {
			add("user", chat.Participant{ID: e.UserID, Name: e.UserName, Kind: chat.Person}, blocks)
		}
	case "assistant":
		if blocks := rd.assistantBlocks(e); len(blocks) > 0 {
			add("assistant", chat.Participant{Kind: chat.Agent}, blocks)
		}
	case "tool":
		if result, ok := rd.result(e); ok {
			add("tool", chat.Participant{Kind: chat.System}, chat.Blocks{result})
		}
	default:
		rd.warn(fmt.Sprintf("skipped: a message with the role %.40q", e.Role))
	}
}

// userBlocks leaves out the bytes of attachments, since another home does not have them.
func userBlocks(s speech) chat.Blocks {
	var blocks chat.Blocks
	if s.Content != "" {
		blocks = append(blocks, chat.Text{Text: s.Content})
	}
	for _, a := range s.Attachments {
		blocks = append(blocks, chat.File{Name: a.Name, MediaType: a.MediaType, Path: a.Path})
	}
	return blocks
}

func (rd *reader) assistantBlocks(e entry) chat.Blocks {
	var blocks chat.Blocks
	if e.Content != nil && *e.Content != "" {
		blocks = append(blocks, chat.Text{Text: *e.Content})
	}
	for _, raw := range e.ToolCalls {
		c, ok := parseCall(raw)
		if !ok {
			rd.warn("a tool call without callId or name was dropped")
			continue
		}
		rd.tools[c.CallID] = c.Name
		blocks = append(blocks, chat.ToolUse{ID: c.CallID, Name: c.Name, Args: args(c.ArgsJSON)})
	}
	return blocks
}

func args(text string) json.RawMessage {
	switch {
	case strings.TrimSpace(text) == "":
		return json.RawMessage(`{}`)
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	default: // the model's own mistake, stored as in the journal
		quoted, _ := json.Marshal(text)
		return quoted
	}
}

func (rd *reader) result(e entry) (chat.ToolResult, bool) {
	if e.CallID == "" || len(e.Result) == 0 || string(e.Result) == "null" {
		rd.warn("skipped: a tool message without callId or result")
		return chat.ToolResult{}, false
	}
	e.ToolName = cmp.Or(e.ToolName, rd.tools[e.CallID])
	r := result{OK: true}
	if e.Result[0] != '{' { // some writers put the text there
		r.Stdout = plain(e.Result)
	} else if err := json.Unmarshal(e.Result, &r); err != nil {
		rd.warn("skipped: " + err.Error())
		return chat.ToolResult{}, false
	}
	return chat.ToolResult{Call: e.CallID, Name: e.ToolName, Blocks: chat.TextBlocks(r.text()), Failed: !r.OK && r.ExitCode == 0}, true
}
