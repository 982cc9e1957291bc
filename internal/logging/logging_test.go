package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"chorus/internal/agent/attempt"
	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/logging"
	"chorus/internal/store/storetest"
)

// openLogging opens a home in dir and gives what it warned of.
func openLogging(t *testing.T, dir string, environ []string, pairs ...string) (*app.App, *[]string) {
	t.Helper()
	var warned []string
	a, err := app.Open(context.Background(), app.Options{Home: dir, Env: apptest.Env(pairs...), Environ: append([]string{"PATH=/bin"}, environ...),
		Warn: func(text string) { warned = append(warned, text) }})
	if err != nil {
		t.Fatal(err)
	}
	return a, &warned
}

func readLog(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "logs", logging.LogName))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

func TestLogIsOpenedWithTheFirstRecord(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	a, _ := openLogging(t, dir, nil)
	a.Log.Debug("nobody wants to know")
	if _, err := os.Stat(filepath.Join(dir, "logs")); !os.IsNotExist(err) {
		t.Errorf("the folder is there before anything was written: %v", err)
	}
	a.Log.Info("first", "component", "test")
	for path, want := range map[string]os.FileMode{"logs": 0o700, "logs/" + logging.LogName: 0o600} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a.Log.Info("too late")
	text := readLog(t, dir)
	if !strings.Contains(text, "level=INFO msg=first pid=") || !strings.Contains(text, "component=test") || strings.Count(text, "\n") != 1 {
		t.Errorf("the log:\n%s", text)
	}
}

func TestLogVariables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env   []string
		lines string // the levels that are written
		warns string
	}{
		{nil, "INFO WARN ERROR", ""},
		{[]string{"CHORUS_LOG_LEVEL", "debug"}, "DEBUG INFO WARN ERROR", ""},
		{[]string{"LOG_LEVEL", "Warn"}, "WARN ERROR", ""},
		{[]string{"CHORUS_LOG_LEVEL", " ERROR ", "LOG_LEVEL", "nonsense"}, "ERROR", ""},
		{[]string{"CHORUS_LOG_LEVEL", "loud"}, "INFO WARN ERROR", `CHORUS_LOG_LEVEL is "loud", which is not a level; use debug, info, warn or error`},
		{[]string{"LOG_LEVEL", "loud"}, "INFO WARN ERROR", `LOG_LEVEL is "loud"`},
		{[]string{"CHORUS_LOG_FORMAT", "xml"}, "INFO WARN ERROR", `CHORUS_LOG_FORMAT is "xml", which is not a format; use text or json`},
		{[]string{"CHORUS_LOG_FORMAT", "JSON", "LOG_LEVEL", "error"}, "ERROR", ""},
	} {
		dir := storetest.FreshHome(t)
		a, warned := openLogging(t, dir, nil, c.env...)
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			a.Log.Log(t.Context(), level, "a word")
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		var levels []string
		for line := range strings.Lines(readLog(t, dir)) {
			var record struct{ Level string }
			if strings.HasPrefix(line, "{") {
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Errorf("%v: %s: %v", c.env, line, err)
				}
				levels = append(levels, record.Level)
			} else if _, rest, ok := strings.Cut(line, "level="); ok {
				level, _, _ := strings.Cut(rest, " ")
				levels = append(levels, level)
			}
		}
		if got := strings.Join(levels, " "); got != c.lines {
			t.Errorf("%v: %s", c.env, got)
		}
		if got := strings.Join(*warned, "\n"); !strings.Contains(got, c.warns) || c.warns == "" && got != "" {
			t.Errorf("%v: warned %q", c.env, got)
		}
	}
}

func TestLogHidesSecrets(t *testing.T) {
	t.Parallel()
	hidden := []string{"test-key-env", "test-key-2", "test\nkey \"quoted\" <&>", "test-key-config", "test-header"}
	for _, format := range []string{"text", "json"} {
		dir := storetest.FreshHome(t)
		if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
			t.Fatal(err)
		}
		config := "vendors:\n  acme:\n    config: {openai_api_key: test-key-config, api_base: http://acme.example}\n    headers: {x-auth: test-header}\n"
		if err := os.WriteFile(filepath.Join(dir, "config", "shared.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		a, _ := openLogging(t, dir, []string{"SOME_KEY=test-key-env, test-key-2", "ODD_TOKEN=" + hidden[2], "SHORT_KEY=word", "PLAIN=visible-value"},
			"CHORUS_LOG_FORMAT", format)
		a.Log.Warn("a word of "+strings.Join(hidden, " "), "error", errors.New("refused "+strings.Join(hidden, ",")),
			"values", map[string]string{"x": hidden[2]}, "plain", "visible-value", "base", "http://acme.example")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		text := readLog(t, dir)
		for _, word := range append(hidden, "quoted") {
			if strings.Contains(text, word) {
				t.Errorf("%s: the log shows %q:\n%s", format, word, text)
			}
		}
		for _, word := range []string{"a word of [redacted:known]", "visible-value", "http://acme.example"} {
			if !strings.Contains(text, word) {
				t.Errorf("%s: the log lost %q:\n%s", format, word, text)
			}
		}
	}
}

// dayFile is a log file of a day that a test chooses.
func dayFile(dir string, now func() time.Time) *logging.LogFile {
	return &logging.LogFile{Name: "chorus", Dir: func() (string, error) { return dir, nil }, Hidden: func() []string { return nil }, Keep: func() int { return 3 }, Now: now}
}

func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// Several processes write through several midnights: no record is lost, torn or doubled, old
// days go, what is not ours stays, and the link leads to the newest day.
func TestLogTurnsTheDay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"chorus-2026-01-01.log", "chorus-notes.log", "error-2026-01-01.log", "chorus-2026-01-01.log.gz", logging.LogName} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var day atomic.Int64
	now := func() time.Time { return time.Date(2026, 2, 27+int(day.Load()), 12, 0, 0, 0, time.Local) }
	var work, begun sync.WaitGroup
	const writers, records, days = 8, 60, 4
	begun.Add(writers)
	for w := range writers {
		work.Go(func() {
			file := dayFile(dir, now)
			defer file.Close()
			log := slog.New(slog.NewTextHandler(file, nil))
			for n := range records {
				if w == 0 && n > 0 && n%(records/days) == 0 {
					begun.Wait() // nobody opens the first day when it is three days old
					day.Add(1)
				}
				log.Info("record", "id", fmt.Sprintf("w%d-%d", w, n), "long", strings.Repeat("x", 2000))
				if n == 0 {
					begun.Done()
				}
			}
		})
	}
	work.Wait()
	if got, want := namesIn(t, dir), "chorus-2026-01-01.log.gz chorus-2026-02-28.log chorus-2026-03-01.log chorus-2026-03-02.log chorus-notes.log "+
		"chorus.log chorus.log.old error-2026-01-01.log"; got != want {
		t.Errorf("there are %s", got)
	}
	if target, err := os.Readlink(filepath.Join(dir, logging.LogName)); err != nil || target != "chorus-2026-03-02.log" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, logging.LogName+".old")); err != nil || string(data) != "old chorus.log\n" {
		t.Errorf("what stood there before: %q, %v", data, err)
	}
	found := map[string]int{}
	for _, name := range []string{"chorus-2026-02-28.log", "chorus-2026-03-01.log", "chorus-2026-03-02.log"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			rest, whole := bytes.CutSuffix(line, []byte(" long="+strings.Repeat("x", 2000)+"\n"))
			_, id, _ := bytes.Cut(rest, []byte("msg=record id="))
			if found[string(id)]++; !whole || found[string(id)] > 1 {
				t.Fatalf("torn or doubled: %.100q", line)
			}
		}
	}
	// The first day went with its records, which are the first of each; no other is missing.
	for w := range writers {
		for n, begun := 0, false; n < records; n++ {
			there := found[fmt.Sprintf("w%d-%d", w, n)] == 1
			if begun = begun || there; begun && !there || w == 0 && n >= records/days && !there {
				t.Errorf("record w%d-%d is missing", w, n)
			}
		}
	}
}

// The link never leads back: a process that is late leaves it where it is.
func TestLogLinkGoesForward(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.Local)
	early, late := dayFile(dir, func() time.Time { return at }), dayFile(dir, func() time.Time { return at.Add(-time.Second) })
	for _, f := range []*logging.LogFile{early, late} {
		_, _ = f.Write([]byte("x\n"))
		f.Close()
	}
	if target, _ := os.Readlink(filepath.Join(dir, logging.LogName)); target != "chorus-2026-05-01.log" {
		t.Errorf("the link leads to %q", target)
	}
	if got := namesIn(t, dir); got != "chorus-2026-04-30.log chorus-2026-05-01.log chorus.log" {
		t.Error(got)
	}
}

// A day has room for so much and no more, and says so once, in its own format.
func TestLogOfADayIsBounded(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"level=INFO msg=x\n", `{"level":"INFO","msg":"x"}` + "\n"} {
		dir := t.TempDir()
		at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.Local)
		f := dayFile(dir, func() time.Time { return at })
		f.Most = 1000
		for range 200 {
			_, _ = f.Write([]byte(record))
		}
		at = at.AddDate(0, 0, 1)
		_, _ = f.Write([]byte(record))
		f.Close()
		data, err := os.ReadFile(filepath.Join(dir, "chorus-2026-05-01.log"))
		if err != nil || len(data) > 1400 || bytes.Count(data, []byte("log_full")) != 1 {
			t.Errorf("%d bytes, %v:\n%s", len(data), err, data)
		}
		if record[0] == '{' {
			for line := range bytes.Lines(data) {
				if !json.Valid(line) {
					t.Errorf("no JSON: %s", line)
				}
			}
		}
		if data, err := os.ReadFile(filepath.Join(dir, "chorus-2026-05-02.log")); err != nil || string(data) != record {
			t.Errorf("the next day: %q, %v", data, err)
		}
	}
}

// Warnings and errors stand in a file of their own too, and whoever listens hears everything.
func TestErrorLog(t *testing.T) {
	t.Parallel()
	for _, wish := range []string{"", "off"} {
		dir := storetest.FreshHome(t)
		a, _ := openLogging(t, dir, []string{"SOME_KEY=test-key-env"}, "CHORUS_LOG_STDERR", wish)
		var heard bytes.Buffer
		a.Log.Info("before")
		a.Logs.SpeakLog(&heard, true)
		a.Log.Info("a small thing")
		a.Log.With("component", "engine").Warn("a test-key-env", "thread", chat.ThreadID("web:local/ada:one@helper"), "run", "r1")
		a.Log.Error("a bad thing", "thread", "no thread at all", "agent", "x")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "logs", logging.ErrorLogName))
		text := string(data)
		if err != nil || strings.Count(text, "\n") != 2 || strings.Contains(text, "small") || strings.Contains(text, "test-key-env") {
			t.Errorf("%v:\n%s", err, text)
		}
		if !strings.Contains(text, "component=engine thread=web:local/ada:one@helper run=r1 agent=helper channel=web:local/ada\n") ||
			!strings.Contains(text, `thread="no thread at all" agent=x`+"\n") {
			t.Errorf("the fields:\n%s", text)
		}
		if all := readLog(t, dir); strings.Count(all, "\n") != 4 {
			t.Errorf("the log:\n%s", all)
		}
		if got := heard.String(); (strings.Count(got, "\n") == 3) != (wish == "") || strings.Contains(got, "test-key-env") {
			t.Errorf("heard with %q:\n%s", wish, got)
		}
	}
}

// How many days are kept is a matter of configuration.
func TestLogDays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(`{"logDays": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := openLogging(t, dir, nil)
	defer func() { _ = a.Close() }()
	if n := a.Logs.LogDays(); n != 2 {
		t.Errorf("%d days", n)
	}
}

// A full disk loses records, and whoever logs never hears of it; what comes when there is
// room again stands on a line of its own.
func TestLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	dir := t.TempDir()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.Local)
	f := dayFile(dir, func() time.Time { return at })
	f.File, f.Day = full, at.Format(logging.LogDay)
	for range 3 {
		if n, err := f.Write([]byte("lost\n")); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	_ = full.Close()
	half, err := os.Create(filepath.Join(dir, "half"))
	if err != nil {
		t.Fatal(err)
	}
	f.File, f.Torn = half, true // as after a write that was cut short
	_, _ = f.Write([]byte("one\n"))
	_, _ = f.Write([]byte("two\n"))
	f.Close()
	if data, err := os.ReadFile(filepath.Join(dir, "half")); err != nil || string(data) != "\none\ntwo\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func todaysLog() string { return "chorus-" + time.Now().Format(logging.LogDay) + ".log" }

func TestLogThatCannotBeWrittenDisturbsNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"a file in the folder's place": func(dir string) error { return os.WriteFile(filepath.Join(dir, "logs"), nil, 0o600) },
		"a folder in the file's place": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "logs", todaysLog()), 0o700) },
		"a pipe that nobody reads": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "logs"), 0o700), syscall.Mkfifo(filepath.Join(dir, "logs", todaysLog()), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := storetest.FreshHome(t)
			a, warned := openLogging(t, dir, nil)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			a.Log.Error("lost")
			if err := os.RemoveAll(filepath.Join(dir, "logs")); err != nil {
				t.Fatal(err)
			}
			a.Log.Error("found")
			if err := a.Close(); err != nil || len(*warned) > 0 {
				t.Errorf("%v, warned %q", err, *warned)
			}
			if text := readLog(t, dir); !strings.Contains(text, "msg=found") || strings.Contains(text, "lost") {
				t.Errorf("the log:\n%s", text)
			}
		})
	}
}

func TestLogOnce(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	a, _ := openLogging(t, dir, nil)
	file := filepath.Join(dir, "agents", "helper", "agent.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := a.Settings.Bot("helper"); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if text := readLog(t, dir); strings.Count(text, "agent.json") != 1 {
		t.Errorf("the log:\n%s", text)
	}
}

// A cache that was lost by our own doing is told with the message that changed.
func TestCacheMissIsLogged(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	a, _ := openLogging(t, dir, nil)
	a.Setup.CacheMissed(attempt.CacheMiss{Run: "r1", Step: 2, Model: "a/b", Expected: 5000, Read: 12, Fragment: 3, Text: "it was so"})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := `component=cache run=r1 step=2 model=a/b expected=5000 read=12 why="message 4 is not what it was: it was so"`
	if text := readLog(t, dir); !strings.Contains(text, want) {
		t.Errorf("the log:\n%s", text)
	}
}

// Somebody at a terminal reads warnings and errors as sentences, and secrets not at all.
func TestLogForPeople(t *testing.T) {
	t.Parallel()
	for wish, lines := range map[string]int{"": 2, "off": 0, "on": 3} {
		a, _ := openLogging(t, storetest.FreshHome(t), []string{"SOME_KEY=test-key-env"}, "CHORUS_LOG_STDERR", wish)
		var shown bytes.Buffer
		a.Logs.ShowLog(&shown)
		a.Log.Info("a small thing")
		a.Log.With("component", "model").Warn("the model is slow", "error", "no answer\nfor test-key-env", "thread", chat.ThreadID("web:local/ada:one@helper"))
		a.Log.Error("a bad thing")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		got := shown.String()
		if strings.Count(got, "\n") != lines || strings.Contains(got, "test-key-env") {
			t.Errorf("with %q:\n%s", wish, got)
		}
		if wish == "" && (!strings.Contains(got, "  warning: the model is slow: no answer for ") || !strings.Contains(got, " (in web:local/ada:one@helper)\n") ||
			!strings.HasSuffix(got, "  error: a bad thing\n") || strings.Contains(got, "component")) {
			t.Errorf("for people:\n%s", got)
		}
	}
}
