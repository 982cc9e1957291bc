package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"chorus/internal/mirror/jsonl"
)

// repairLog records which messages are in the log beyond what the sidecar
// knows, and completes or removes an incomplete last line.
func (t *Writer) repairLog() error {
	path := t.path(LogName)
	size, err := jsonl.Size(path)
	if err != nil || size == t.st.LogSize {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	from := min(t.st.LogSize, int64(len(data)))
	lines, torn := splitLines(data[from:])
	for _, l := range lines {
		var entry LogEntry
		if json.Unmarshal(l, &entry) == nil && entry.MessageID != "" {
			t.seen[entry.MessageID] = true
		}
	}
	if len(torn) == 0 {
		return nil
	}
	var entry LogEntry
	if json.Unmarshal(torn, &entry) == nil {
		t.seen[entry.MessageID] = true
		_, err := jsonl.Append(path, []byte("\n"))
		return err
	}
	return os.Truncate(path, int64(len(data)-len(torn)))
}

// splitLines returns the lines of a file and what follows the last newline.
func splitLines(data []byte) (lines [][]byte, torn []byte) {
	for {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return lines, data
		}
		lines, data = append(lines, line), rest
	}
}

// repairContext removes what was written after the sidecar's event, and
// reports whether the rest matches the sidecar.
func (t *Writer) repairContext() (bool, error) {
	path := t.path(ContextName)
	size, err := jsonl.Size(path)
	if err != nil || size == t.st.ContextSize {
		return err == nil, err
	}
	lines, err := readContext(path)
	if err != nil {
		return false, err
	}
	for len(lines) > 0 && lines[len(lines)-1].place > t.st.Seq {
		lines = lines[:len(lines)-1]
	}
	var last int64
	var buf bytes.Buffer
	for _, l := range lines {
		buf.Write(l.raw)
		buf.WriteByte('\n')
		last = l.place
	}
	if last != t.st.ContextLast {
		return false, nil
	}
	t.st.ContextSize = int64(buf.Len())
	return true, jsonl.Replace(path, buf.Bytes())
}

// readContext reads the lines of a context. It leaves out those that are not JSON.
func readContext(path string) ([]contextLine, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines, torn := splitLines(data)
	var out []contextLine
	for _, l := range append(lines, torn) {
		var head struct {
			Seq int64 `json:"seq"`
		}
		if json.Unmarshal(l, &head) == nil {
			out = append(out, contextLine{head.Seq, bytes.Clone(l)})
		}
	}
	return out, nil
}
