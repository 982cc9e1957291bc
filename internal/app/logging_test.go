package app

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
	"syscall"
	"testing"

	"chorus/internal/agent"
)

// openLogging opens a home in dir and gives what it warned of.
func openLogging(t *testing.T, dir string, environ []string, pairs ...string) (*App, *[]string) {
	t.Helper()
	var warned []string
	a, err := Open(context.Background(), Options{Home: dir, Env: env(pairs...), Environ: append([]string{"PATH=/bin"}, environ...),
		Warn: func(text string) { warned = append(warned, text) }})
	if err != nil {
		t.Fatal(err)
	}
	return a, &warned
}

func readLog(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "logs", logName))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

func TestLogIsOpenedWithTheFirstRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, _ := openLogging(t, dir, nil)
	a.Log.Debug("nobody wants to know")
	if _, err := os.Stat(filepath.Join(dir, "logs")); !os.IsNotExist(err) {
		t.Errorf("the folder is there before anything was written: %v", err)
	}
	a.Log.Info("first", "component", "test")
	for path, want := range map[string]os.FileMode{"logs": 0o700, "logs/" + logName: 0o600} {
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
		{[]string{"CHORUS_LOG_LEVEL", "loud"}, "INFO WARN ERROR", `CHORUS_LOG_LEVEL is "loud", which is no level; there are debug, info, warn and error`},
		{[]string{"LOG_LEVEL", "loud"}, "INFO WARN ERROR", `LOG_LEVEL is "loud"`},
		{[]string{"CHORUS_LOG_FORMAT", "xml"}, "INFO WARN ERROR", `CHORUS_LOG_FORMAT is "xml", which is no format; there are text and json`},
		{[]string{"CHORUS_LOG_FORMAT", "JSON", "LOG_LEVEL", "error"}, "ERROR", ""},
	} {
		dir := t.TempDir()
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
		dir := t.TempDir()
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

// Several processes find a log that is too large: it is put aside once, those before it
// move on, and no record is lost or torn.
func TestLogIsPutAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, logName)
	for _, name := range []string{"", ".1", ".2", ".3"} {
		if err := os.WriteFile(path+name, []byte("old"+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, maxLog+1); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	const writers, records = 8, 50
	for w := range writers {
		work.Go(func() {
			file := &logFile{dir: func() (string, error) { return dir, nil }, hidden: func() []string { return nil }}
			defer file.close()
			log := slog.New(slog.NewTextHandler(file, nil))
			for n := range records {
				log.Info("record", "id", fmt.Sprintf("w%d-%d", w, n), "long", strings.Repeat("x", 2000))
			}
		})
	}
	work.Wait()
	for name, want := range map[string]string{".1": "old\n", ".2": "old.1\n", ".3": "old.2\n"} {
		data, err := os.ReadFile(path + name)
		if err != nil || !bytes.HasPrefix(data, []byte(want)) {
			t.Errorf("%s: %.20q, %v", name, data, err)
		}
	}
	if _, err := os.Stat(path + ".4"); !os.IsNotExist(err) {
		t.Errorf("a fourth was kept: %v", err)
	}
	var all []byte
	for _, name := range []string{"", ".1"} {
		data, err := os.ReadFile(path + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	for w := range writers {
		for n := range records {
			if line := fmt.Sprintf("msg=record id=w%d-%d long=%s\n", w, n, strings.Repeat("x", 2000)); bytes.Count(all, []byte(line)) != 1 {
				t.Fatalf("record w%d-%d is not there whole and once", w, n)
			}
		}
	}
}

func TestLogThatCannotBeWrittenDisturbsNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"a file in the folder's place": func(dir string) error { return os.WriteFile(filepath.Join(dir, "logs"), nil, 0o600) },
		"a folder in the file's place": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "logs", logName), 0o700) },
		"a pipe that nobody reads": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "logs"), 0o700), syscall.Mkfifo(filepath.Join(dir, "logs", logName), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
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
	dir := t.TempDir()
	a, _ := openLogging(t, dir, nil)
	file := filepath.Join(dir, "agents", "helper", "agent.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := a.bot("helper"); err != nil {
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
	dir := t.TempDir()
	a, _ := openLogging(t, dir, nil)
	a.cacheMissed(agent.CacheMiss{Run: "r1", Step: 2, Model: "a/b", Expected: 5000, Read: 12, Fragment: 3, Text: "it was so"})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := `component=cache run=r1 step=2 model=a/b expected=5000 read=12 why="message 4 is not what it was: it was so"`
	if text := readLog(t, dir); !strings.Contains(text, want) {
		t.Errorf("the log:\n%s", text)
	}
}
