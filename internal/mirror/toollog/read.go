package toollog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
	"chorus/internal/text"
)

// Channel is what one agent's tools did in one channel, oldest first.
type Channel struct {
	Agent   string // the bot's name or id
	Name    string // the channel's id
	Entries []Entry
}

// Problem is something in the files that could not be read, or only in part.
type Problem struct {
	Path   string
	Line   int // from 1; 0: the whole file
	Column int // in bytes from 1; 0: the whole line
	Why    string
}

func (p Problem) String() string {
	where := p.Path
	if p.Line > 0 {
		where += fmt.Sprintf(":%d", p.Line)
	}
	if p.Column > 0 {
		where += fmt.Sprintf(":%d", p.Column)
	}
	return where + ": " + p.Why
}

// Read reads a tool folder, Chapter3's or ours: <dir>/<agent>/<channel>/<hour>.jsonl.
// Unreadable parts are returned as problems; an error means that the folder itself could not
// be listed. Only channels with entries are returned, sorted.
func Read(dir string) ([]Channel, []Problem, error) {
	agents, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read tool files: %w", err)
	}
	var channels []Channel
	var problems []Problem
	for _, agent := range agents {
		if !agent.IsDir() {
			continue
		}
		places, err := os.ReadDir(filepath.Join(dir, agent.Name()))
		if err != nil {
			problems = append(problems, Problem{Path: filepath.Join(dir, agent.Name()), Why: err.Error()})
			continue
		}
		for _, place := range places {
			if !place.IsDir() {
				continue
			}
			c, more, err := ReadChannel(filepath.Join(dir, agent.Name(), place.Name()))
			problems = append(problems, more...)
			if err != nil {
				problems = append(problems, Problem{Path: filepath.Join(dir, agent.Name(), place.Name()), Why: err.Error()})
			}
			if len(c.Entries) > 0 {
				channels = append(channels, c)
			}
		}
	}
	return channels, problems, nil
}

// ReadChannel reads the folder of one channel. Its last two path elements are the agent and the channel.
func ReadChannel(dir string) (Channel, []Problem, error) {
	c := Channel{Agent: decoded(filepath.Base(filepath.Dir(dir))), Name: decoded(filepath.Base(dir))}
	files, err := os.ReadDir(dir)
	if err != nil {
		return c, nil, fmt.Errorf("read tool files: %w", err)
	}
	var problems []Problem
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		parts := hourName().FindStringSubmatch(f.Name())
		if parts == nil {
			if filepath.Ext(f.Name()) == ".jsonl" {
				problems = append(problems, Problem{Path: path, Why: "not named by an hour (YYYY-MM-DDTHH.jsonl); left out"})
			}
			continue
		}
		hour, err := time.Parse("2006-01-02T15", parts[1]+"T"+parts[2])
		if err != nil {
			problems = append(problems, Problem{Path: path, Why: "its name is no date and hour; left out"})
			continue
		}
		entries, more := readFile(path, hour)
		c.Entries, problems = append(c.Entries, entries...), append(problems, more...)
	}
	c.Entries = tidy(c.Entries)
	return c, problems, nil
}

// decoded decodes an encoded name and leaves Chapter3's plain ones unchanged.
func decoded(name string) string {
	if plain, err := chat.DecodeSegment(name); err == nil && chat.EncodeSegment(plain) == name {
		return plain
	}
	return name
}

// tidy sorts by time and keeps the later of two lines about the same call, which may know more.
func tidy(entries []Entry) []Entry {
	type key struct {
		id string
		at time.Time
	}
	last := map[key]int{}
	for i, e := range entries {
		if e.Call.ID != "" {
			last[key{e.Call.ID, e.At}] = i
		}
	}
	var out []Entry
	for i, e := range entries {
		if e.Call.ID == "" || last[key{e.Call.ID, e.At}] == i {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return a.At.Compare(b.At) })
	return out
}

func readFile(path string, hour time.Time) ([]Entry, []Problem) {
	f, err := os.Open(path)
	if err != nil {
		return nil, []Problem{{Path: path, Why: text.Cause(err).Error()}}
	}
	defer f.Close()
	return readLines(f, path, hour, jsonl.MaxLine)
}

func readLines(r io.Reader, path string, at time.Time, limit int) (entries []Entry, problems []Problem) {
	in := jsonl.NewReader(r, limit)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return entries, problems
		case err != nil:
			return entries, append(problems, Problem{path, in.No + 1, 0, text.Cause(err).Error()})
		case line.Long:
			problems = append(problems, Problem{path, line.No, 0, fmt.Sprintf("longer than %d bytes; left out", limit)})
		case !line.Blank():
			e, problem := parse(line.Text, at)
			if problem != nil {
				problem.Path, problem.Line = path, line.No
				problems = append(problems, *problem)
			}
			if e != nil {
				entries, at = append(entries, *e), e.At
			}
		}
	}
}

// rawEntry is a line as anybody may have written it.
type rawEntry struct {
	Call struct {
		ID            json.RawMessage `json:"id"`
		Name          json.RawMessage `json:"name"`
		Input         json.RawMessage `json:"input"`
		MessageID     json.RawMessage `json:"messageId"`
		Text          json.RawMessage `json:"originalCompletionText"`
		BotMessageIDs json.RawMessage `json:"botMessageIds"`
	} `json:"call"`
	Result *struct {
		Output json.RawMessage `json:"output"`
		Error  json.RawMessage `json:"error"`
		Images json.RawMessage `json:"images"`
	} `json:"result"`
	Timestamp json.RawMessage `json:"timestamp"`
	Run       string          `json:"run"`
	Seq       int64           `json:"seq"`
}

// parse reads one line. at is used if the time is missing. If it returns both
// an entry and a problem, part of the entry was guessed.
func parse(line []byte, at time.Time) (*Entry, *Problem) {
	var raw rawEntry
	if err := json.Unmarshal(line, &raw); err != nil {
		p := &Problem{Why: "broken line, left out: " + err.Error()}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			p.Column = int(syntax.Offset)
		case errors.As(err, &kind):
			p.Column = int(kind.Offset)
		}
		return nil, p
	}
	e := &Entry{Run: raw.Run, Seq: raw.Seq}
	e.Call = Call{ID: plain(raw.Call.ID), Name: plain(raw.Call.Name), Input: raw.Call.Input, MessageID: plain(raw.Call.MessageID),
		Text: plain(raw.Call.Text), BotMessageIDs: texts(raw.Call.BotMessageIDs)}
	if len(e.Call.Input) == 0 || string(e.Call.Input) == "null" {
		e.Call.Input = json.RawMessage(`{}`)
	}
	if e.Call.Name == "" {
		return nil, &Problem{Why: "no call in it, left out"}
	}
	if raw.Result == nil {
		return nil, &Problem{Why: fmt.Sprintf("the call of %s has no result, left out", text.Clip(e.Call.Name, 60))}
	}
	e.Result = Result{Output: raw.Result.Output, Error: plain(raw.Result.Error)}
	if len(e.Result.Output) == 0 {
		e.Result.Output = json.RawMessage(`""`)
	}
	e.Result.Images = imagesOf(raw.Result.Images)
	var ok bool
	if e.At, ok = instant(raw.Timestamp); !ok {
		e.At = at
		return e, &Problem{Why: "no time in it; that of the line before or the file's hour is taken"}
	}
	return e, nil
}

func texts(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []string
	for _, item := range list {
		if text := plain(item); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// imagesOf accepts objects with data, and bare strings of base64.
func imagesOf(raw json.RawMessage) []Image {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []Image
	for _, item := range list {
		var bare string
		var img struct {
			Image
			MediaType string `json:"mediaType"`
		}
		switch {
		case json.Unmarshal(item, &bare) == nil && bare != "":
			out = append(out, Image{Data: bare})
		case json.Unmarshal(item, &img) == nil && img.Data+img.Blob != "":
			img.MimeType = cmp.Or(img.MimeType, img.MediaType)
			out = append(out, img.Image)
		}
	}
	return out
}

// instant reads a time as JavaScript writes it: text, or milliseconds.
func instant(raw json.RawMessage) (time.Time, bool) {
	var ms int64
	if json.Unmarshal(raw, &ms) == nil && ms > 0 {
		return time.UnixMilli(ms).UTC(), true
	}
	at, err := time.Parse(time.RFC3339, plain(raw))
	return at.UTC(), err == nil && !at.IsZero()
}
