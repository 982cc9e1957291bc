package mirror

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// appendFile adds to a file, making it if there is something to add, and says
// how long it is then.
func appendFile(path string, data []byte) (int64, error) {
	if len(data) == 0 {
		return sizeOf(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(data)
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// replaceFile writes a file whole through a temporary one with a fixed name, so
// that what a crash leaves is overwritten the next time.
func replaceFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, path)
}

// mendLog notes which messages stand in the log beyond the sidecar's knowledge,
// and ends or cuts away a torn last line.
func (t *Thread) mendLog() error {
	path := t.path(LogName)
	size, err := sizeOf(path)
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
		_, err := appendFile(path, []byte("\n"))
		return err
	}
	return os.Truncate(path, int64(len(data)-len(torn)))
}

// splitLines gives the lines of a file and what stands behind the last newline.
func splitLines(data []byte) (lines [][]byte, torn []byte) {
	for {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return lines, data
		}
		lines, data = append(lines, line), rest
	}
}

// mendContext cuts away what was written behind the sidecar's place, and reports
// whether what is left is what the sidecar remembers.
func (t *Thread) mendContext() (bool, error) {
	path := t.path(ContextName)
	size, err := sizeOf(path)
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
	return true, replaceFile(path, buf.Bytes())
}

// readContext reads the lines of a context; those that are not JSON are left out.
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
