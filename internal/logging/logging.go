package logging

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"chorus/internal/config"
	"chorus/internal/redact"
)

// OpenLog opens the log files of the home.
func (l *Logs) OpenLog() *slog.Logger {
	log, files := l.newLog()
	l.files = files
	return log
}

// CloseLog closes what OpenLog opened.
func (l *Logs) CloseLog() {
	if l.files != nil {
		l.files.close()
	}
}

// newLog returns the log of the home as configured in the environment. It has what nobody at a
// terminal needs to see, for finding causes later. Warnings and errors also go to a separate file.
func (l *Logs) newLog() (*slog.Logger, *logFiles) {
	known := &secrets{environ: l.Environ}
	dir := func() (string, error) { return l.Home.Ensure(l.Home.Logs()) }
	hidden := func() []string { return known.of(l.ConfigFiles()) }
	files := &logFiles{
		all:    &LogFile{Name: "chorus", Dir: dir, Hidden: hidden, Keep: l.LogDays},
		errors: &LogFile{Name: "error", Dir: dir, Hidden: hidden, Keep: l.LogDays},
		spoken: &logSpeaker{hidden: hidden},
		shown:  &logSpeaker{hidden: hidden},
	}
	format := func(w io.Writer, level slog.Level) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
	}
	switch name := strings.ToLower(strings.TrimSpace(l.Env("CHORUS_LOG_FORMAT"))); name {
	case "", "text":
	case "json":
		format = func(w io.Writer, level slog.Level) slog.Handler {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
		}
	default:
		l.Warn(fmt.Sprintf("CHORUS_LOG_FORMAT is %q, which is not a format; use text or json (now: text)", name))
	}
	level := logLevel(l.Env, l.Warn)
	var handler slog.Handler = slog.NewMultiHandler(format(files.all, level), format(files.errors, max(level, slog.LevelWarn)),
		whenSpoken{format(files.spoken, level), files.spoken}, whenSpoken{forPeople{out: files.shown}, files.shown})
	handler = handler.WithAttrs([]slog.Attr{slog.Int("pid", os.Getpid())}) // before the redactor, which reads the configuration while there may be no record
	return slog.New(logFields{redact.Handler(handler, l.Redactor)}), files
}

// LogDays is how many days of the log are kept, including today.
func (l *Logs) LogDays() int {
	bot, problems := l.ConfigFiles().Bot(config.Ask{})
	if problems.Err() != nil {
		return defaultLogDays
	}
	return bot.LogDays
}

// logLevel returns the lowest level of records to write.
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
			warn(fmt.Sprintf("%s is %q, which is not a level; use debug, info, warn or error (now: info)", variable, name))
			return slog.LevelInfo
		}
	}
	return slog.LevelInfo
}

// LogOnce logs a text once that would otherwise be logged at every check.
func (l *Logs) LogOnce(text, component string) {
	if _, said := l.once.LoadOrStore(text, true); !said {
		l.Log.Warn(text, "component", component)
	}
}

// secrets are the values that no record may show: those of the environment
// whose name says so, and those of the configuration.
type secrets struct {
	environ []string

	mu    sync.Mutex
	files *config.Files // the files from which the values were read
	words []string
}

// leastSecret is the minimum length of a value to be hidden; a shorter one is not a key.
const leastSecret = 6

// of returns the secrets of the given files. It must not log.
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
			continue // nobody can use what it contains
		}
		s.bot(bot)
	}
	// Longest first, since it may contain a shorter one.
	slices.SortFunc(s.words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.words = slices.Compact(s.words)
	return s.words
}

func (s *secrets) bot(bot *config.Bot) {
	s.add(string(bot.DatabaseURL), string(bot.NATSURL), string(bot.BlobSecretKey))
	for _, rule := range bot.Secrets {
		s.add(string(rule.Value))
	}
	for _, p := range bot.SearchProviders {
		s.add(string(p.Key))
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

// named adds a value if its name says that it is a secret. It may contain several keys.
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

// hide removes words from a record, including their quoted forms.
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
