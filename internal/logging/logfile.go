package logging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The names of log files and the form of their dates.
const (
	LogName        = "chorus.log" // the link to today's file
	ErrorLogName   = "error.log"
	LogDay         = "2006-01-02"
	defaultLogDays = 30
	maxLog         = 256 << 20 // per day; the rest is dropped, so that a log cannot fill the disk
	lookAfter      = 1 << 20   // how much we write before we check what others have written
)

// logFiles are the destinations of records.
type logFiles struct {
	all, errors *LogFile
	spoken      *logSpeaker // unchanged
	shown       *logSpeaker // in words for people
}

// close closes them. Later writes are dropped.
func (l *logFiles) close() {
	l.all.Close()
	l.errors.Close()
}

// LogFile is one file per day, opened with the day's first record; a link without the date
// leads to the newest. Several processes may write to it: each record is one append. What
// cannot be written is dropped; a missing log never stops anything.
type LogFile struct {
	Name   string                 // prefix of the files' names
	Dir    func() (string, error) // creates the folder
	Hidden func() []string        // what records must not show
	Keep   func() int             // how many days are kept
	Now    func() time.Time       // nil: the clock
	Most   int64                  // bytes of one day; 0: maxLog

	mu     sync.Mutex
	File   *os.File
	Day    string // the file's
	size   int64  // as far as we know
	ours   int64  // what we wrote since the last check
	full   bool   // the file already says that it is full
	Torn   bool   // the disk had no room for the end of the last record
	closed bool
}

// Write implements io.Writer: slog calls it once for each record.
func (l *LogFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(record), nil
	}
	if l.File == nil || l.Day != l.today() {
		l.turn()
	}
	if l.File != nil {
		l.append(hide(record, l.Hidden()))
	}
	return len(record), nil
}

// append writes a record if the day's limit allows it. A full disk loses records and nothing else.
func (l *LogFile) append(record []byte) {
	if l.ours >= lookAfter {
		if info, err := l.File.Stat(); err == nil {
			l.size, l.ours = info.Size(), 0
		}
	}
	if most := l.limit(); l.size >= most {
		if !l.full {
			l.full = true
			_, _ = l.File.WriteString(fullLine(record, most))
		}
		return
	}
	if l.Torn {
		record = append([]byte{'\n'}, record...)
	}
	n, _ := l.File.Write(record)
	l.Torn = n > 0 && n < len(record) || n == 0 && l.Torn
	l.size, l.ours = l.size+int64(n), l.ours+int64(n)
}

func (l *LogFile) limit() int64 {
	if l.Most > 0 {
		return l.Most
	}
	return maxLog
}

// fullLine says, in the log's own format, that the rest of the day is missing.
func fullLine(like []byte, most int64) string {
	at, text := time.Now().Format(time.RFC3339Nano), fmt.Sprintf("this day has %d bytes of log; the rest of what this process has to say is left out", most)
	if len(like) > 0 && like[0] == '{' {
		return fmt.Sprintf(`{"time":%q,"level":"WARN","msg":%q,"pid":%d,"component":"log","event":"log_full"}`+"\n", at, text, os.Getpid())
	}
	return fmt.Sprintf("time=%s level=WARN msg=%q pid=%d component=log event=log_full\n", at, text, os.Getpid())
}

// Close closes the file. Later writes are dropped.
func (l *LogFile) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.File != nil {
		_ = l.File.Close()
	}
}

func (l *LogFile) today() string {
	if l.Now != nil {
		return l.Now().Format(LogDay)
	}
	return time.Now().Format(LogDay)
}

// turn switches to today's file. If that fails, the next record tries again.
func (l *LogFile) turn() {
	if l.File != nil {
		_ = l.File.Close()
	}
	l.File, l.size, l.ours, l.full, l.Torn = nil, 0, 0, false, false
	dir, err := l.Dir()
	if err != nil {
		return
	}
	for range 3 { // more than once only at midnight
		day := l.today()
		f, fresh, err := openDay(filepath.Join(dir, l.Name+"-"+day+".log"))
		if err != nil {
			return
		}
		if info, err := f.Stat(); err == nil {
			l.size = info.Size()
		}
		l.File, l.Day = f, day
		l.link(dir, day)
		if fresh {
			l.prune(dir, day)
		}
		if l.today() == day {
			return
		}
		// Midnight has passed meanwhile, and the link may lead from another
		// process's today back to our yesterday, so try again.
		_ = f.Close()
		l.File = nil
	}
}

// openDay opens the file of a day. fresh means that this call created it; no other call reports that.
func openDay(path string) (f *os.File, fresh bool, err error) {
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil || !errors.Is(err, os.ErrExist) {
		return f, err == nil, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, false, errors.New(path + " is no file") // a pipe would wait for its reader
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return f, false, err
}

// link makes the name without a date lead to the day's file. A log of an older Chorus, which is a
// file with that name, is renamed; anything else with that name is left alone.
func (l *LogFile) link(dir, day string) {
	path, target := filepath.Join(dir, l.Name+".log"), l.Name+"-"+day+".log"
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().IsRegular():
		_ = os.Rename(path, path+".old") // if this fails, there is no link
	case err == nil && info.Mode()&os.ModeSymlink == 0:
		return
	case err == nil:
		if now, err := os.Readlink(path); err == nil && now >= target && strings.HasPrefix(now, l.Name+"-") {
			return // it exists, or another process is a day ahead
		}
	}
	made := filepath.Join(dir, fmt.Sprintf(".%s.log-%d-%d", l.Name, os.Getpid(), time.Now().UnixNano()))
	if os.Symlink(target, made) == nil && os.Rename(made, path) != nil {
		_ = os.Remove(made)
	}
}

// prune removes expired days. The process that created the day's file does this, so it happens once a day.
func (l *LogFile) prune(dir, day string) {
	today, err := time.Parse(LogDay, day)
	if err != nil {
		return
	}
	oldest := today.AddDate(0, 0, 1-max(1, l.Keep()))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		middle, ours := strings.CutPrefix(e.Name(), l.Name+"-")
		middle, dated := strings.CutSuffix(middle, ".log")
		if at, err := time.Parse(LogDay, middle); ours && dated && err == nil && at.Before(oldest) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // or tomorrow
		}
	}
}
