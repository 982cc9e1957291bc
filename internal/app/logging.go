package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"chorus/internal/config"
	"chorus/internal/redact"
)

const (
	logName  = "chorus.log"
	maxLog   = 10 << 20 // a larger one is put aside by whoever opens it next
	keptLogs = 3        // of those that were put aside
)

// newLog is the log of the home as the environment wants it: what nobody at a terminal
// has to see, for whoever looks for a reason later.
func (a *App) newLog() (*slog.Logger, *logFile) {
	known := &secrets{environ: a.Environ}
	file := &logFile{
		dir:    func() (string, error) { return a.Home.Ensure(a.Home.Logs()) },
		hidden: func() []string { return known.of(a.conduct.now()) },
	}
	options := &slog.HandlerOptions{Level: logLevel(a.Env, a.Warn)}
	var handler slog.Handler = slog.NewTextHandler(file, options)
	switch name := strings.ToLower(strings.TrimSpace(a.Env("CHORUS_LOG_FORMAT"))); name {
	case "", "text":
	case "json":
		handler = slog.NewJSONHandler(file, options)
	default:
		a.Warn(fmt.Sprintf("CHORUS_LOG_FORMAT is %q, which is no format; there are text and json, and text holds", name))
	}
	handler = handler.WithAttrs([]slog.Attr{slog.Int("pid", os.Getpid())}) // before the redactor: it reads the configuration, and there may be no record
	return slog.New(redact.Handler(handler, a.Redactor)), file
}

// logLevel is from which level on records are written.
func logLevel(env func(string) string, warn func(string)) slog.Level {
	for _, variable := range []string{"CHORUS_LOG_LEVEL", "LOG_LEVEL"} {
		switch name := strings.ToLower(strings.TrimSpace(env(variable))); name {
		case "":
			continue
		case "debug":
			return slog.LevelDebug
		case "info":
			return slog.LevelInfo
		case "warn":
			return slog.LevelWarn
		case "error":
			return slog.LevelError
		default:
			warn(fmt.Sprintf("%s is %q, which is no level; there are debug, info, warn and error, and info holds", variable, name))
			return slog.LevelInfo
		}
	}
	return slog.LevelInfo
}

// logOnce writes down what would otherwise be written at every look.
func (a *App) logOnce(text, component string) {
	if _, said := a.logged.LoadOrStore(text, true); !said {
		a.Log.Warn(text, "component", component)
	}
}

// logFile is a file that is opened with the first record and not before. Several
// processes may write to it: each record is one append. What cannot be written is
// dropped; nothing stops for the want of a log.
type logFile struct {
	dir    func() (string, error) // makes the folder
	hidden func() []string        // what no record may show

	mu     sync.Mutex
	file   *os.File
	closed bool
}

// Write implements io.Writer: slog calls it once for each record.
func (l *logFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(record), nil
	}
	if l.file == nil {
		l.file, _ = l.open() // nil: the next record tries again
	}
	if l.file != nil {
		_, _ = l.file.Write(hide(record, l.hidden())) // a full disk loses records, and nothing else
	}
	return len(record), nil
}

// close ends it. What is written afterwards is dropped.
func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file != nil {
		_ = l.file.Close()
	}
}

func (l *logFile) open() (*os.File, error) {
	dir, err := l.dir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, logName)
	for try := 1; ; try++ {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, errors.New(path + " is no file") // a pipe would wait for its reader
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if try > 3 || !putAside(f, path) {
			return f, nil
		}
		_ = f.Close() // nothing was written to it
	}
}

// putAside renames a file that has grown too large, and reports whether path has to
// be opened again. One process does it at a time; another goes on with what it has.
func putAside(f *os.File, path string) bool {
	info, err := f.Stat()
	if err != nil || info.Size() <= maxLog || syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(info, now) {
		return true // it was done meanwhile
	}
	for n := keptLogs; n > 1; n-- {
		_ = os.Rename(path+"."+strconv.Itoa(n-1), path+"."+strconv.Itoa(n)) // most are not there
	}
	return os.Rename(path, path+".1") == nil
}

// secrets are the values that no record may show: those of the environment whose name
// says so, and those of the configuration.
type secrets struct {
	environ []string

	mu    sync.Mutex
	files *config.Files // whose values they are
	words []string
}

// leastSecret is how long a value must be to be hidden: a shorter one is no key.
const leastSecret = 6

// of are the secrets while files hold. It must not log.
func (s *secrets) of(files *config.Files) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.words != nil && s.files == files {
		return s.words
	}
	s.files, s.words = files, []string{}
	for _, pair := range s.environ {
		name, value, _ := strings.Cut(pair, "=")
		s.named(name, value)
	}
	for _, name := range append([]string{""}, files.Bots()...) {
		bot, problems := files.Bot(config.Ask{Bot: name})
		if problems.Err() != nil {
			continue // nobody can use what it holds
		}
		s.bot(bot)
	}
	// The longest first: it may hold a shorter one.
	slices.SortFunc(s.words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.words = slices.Compact(s.words)
	return s.words
}

func (s *secrets) bot(bot *config.Bot) {
	s.add(string(bot.DatabaseURL), string(bot.NATSURL))
	for _, rule := range bot.Secrets {
		s.add(string(rule.Value))
	}
	for _, v := range bot.Vendors {
		for name, value := range v.Config {
			s.named(name, value)
		}
		for _, value := range v.Headers {
			s.add(value)
		}
	}
	for _, server := range bot.MCPServers {
		for name, value := range server.Env {
			s.named(name, value)
		}
		for _, value := range server.Headers {
			s.add(value)
		}
	}
}

// named adds a value if its name says that it is a secret. Several keys may stand in one.
func (s *secrets) named(name, value string) {
	name = strings.ToUpper(name)
	for _, end := range []string{"KEY", "KEYS", "KEY_ID", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"} {
		if strings.HasSuffix(name, end) {
			s.add(value)
			s.add(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })...)
			return
		}
	}
}

func (s *secrets) add(values ...string) {
	for _, value := range values {
		if value = strings.TrimSpace(value); len(value) >= leastSecret {
			s.words = append(s.words, value)
		}
	}
}

// hide takes words out of a record, also as the formats quote them.
func hide(record []byte, words []string) []byte {
	for _, word := range words {
		record = bytes.ReplaceAll(record, []byte(word), []byte("***"))
		if quoted := strconv.Quote(word); len(quoted) > len(word)+2 {
			record = bytes.ReplaceAll(record, []byte(quoted[1:len(quoted)-1]), []byte("***"))
		}
		if quoted, err := json.Marshal(word); err == nil && len(quoted) > len(word)+2 {
			record = bytes.ReplaceAll(record, quoted[1:len(quoted)-1], []byte("***"))
		}
	}
	return record
}
