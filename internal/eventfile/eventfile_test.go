package eventfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"immediate","threadId":"x","text":"hi"}`:                                                                               "",
		`{"type":"one-shot","threadId":"x","text":"hi","at":"2026-12-24T18:00:00+01:00"}`:                                               "",
		`{"type":"one-shot","threadId":"x","text":"hi","schedule":"2026-12-24T18:00:00","timezone":"Europe/Berlin"}`:                    "",
		`{"type":"periodic","channelId":"C1","adapterId":"slack","text":"hi","schedule":"0 9 * * 1-5","timezone":"America/New_York"}`:   "",
		`{"type":"periodic","threadId":"x","channelId":"C1","adapterId":"slack","text":"hi","schedule":"@daily","extra":{"a":[1,2,3]}}`: "",
		`{"type":"immediate","threadId":"x"}`:                                                             `"text" is missing`,
		`{"type":"immediate","text":"hi"}`:                                                                "say where",
		`{"type":"immediate","channelId":"C1","text":"hi"}`:                                               "say where",
		`{"type":"later","threadId":"x","text":"hi"}`:                                                     "is no type of event",
		`{"type":"one-shot","threadId":"x","text":"hi"}`:                                                  `needs "at"`,
		`{"type":"one-shot","threadId":"x","text":"hi","at":"tomorrow"}`:                                  "neither an instant",
		`{"type":"one-shot","threadId":"x","text":"hi","at":"0 9 * * *"}`:                                 "that is a periodic event",
		`{"type":"periodic","threadId":"x","text":"hi"}`:                                                  `needs "schedule"`,
		`{"type":"periodic","threadId":"x","text":"hi","schedule":"2026-12-24T18:00:00Z"}`:                "that is a one-shot event",
		`{"type":"periodic","threadId":"x","text":"hi","schedule":"0 0 31 2 *"}`:                          "never comes",
		`{"type":"periodic","threadId":"x","text":"hi","schedule":"61 * * * *"}`:                          "is not valid cron",
		`{"type":"periodic","threadId":"x","text":"hi","schedule":"0 9 * * *","timezone":"Mars/Olympus"}`: "there is no time zone",
		`{"type":"immediate",`:         "not a JSON object",
		`[]`:                           "not a JSON object",
		``:                             "not a JSON object",
		strings.Repeat(" ", maxFile+1): "at most",
	} {
		e, err := Parse([]byte(text))
		if want == "" {
			if err != nil || e.Thread != "" && e.Channel != "" {
				t.Errorf("%s: %+v, %v", text, e, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"type":"periodic","threadId":"x","text":"hi","schedule":"0 9 * * 1-5","timezone":"America/New_York"}`)
	f.Add(`{"type":"one-shot","threadId":"x","text":"hi","at":"2026-12-24T18:00:00+01:00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := Parse([]byte(text)); err == nil && (e.Text == "" || e.Type != Immediate && e.Spec.String() == "") {
			t.Errorf("%q is %+v", text, e)
		}
	})
}

// heard is a handler that keeps what it is told.
type heard struct {
	mu   sync.Mutex
	said map[string]string // by key
	kept map[string]string // the words, by file
	only []string
	over bool
	err  error
}

func (h *heard) Say(_ context.Context, file, key string, e Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.said[key] = e.Words(file)
	}
	return h.err
}

func (h *heard) Keep(_ context.Context, file, _ string, e Event) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept[file] = e.Words(file)
	return h.over, h.err
}

func (h *heard) Only(_ context.Context, files []string) error {
	h.only = files
	return nil
}

func newFolder(t *testing.T) (*Folder, *heard, func(name, text string)) {
	h := &heard{said: map[string]string{}, kept: map[string]string{}}
	f := &Folder{Dir: filepath.Join(t.TempDir(), "events"), Handler: h, Log: slog.New(slog.DiscardHandler), Pause: func(context.Context, time.Duration) {}}
	if err := f.Look(t.Context()); err != nil { // makes it
		t.Fatal(err)
	}
	return f, h, func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *Folder) look(t *testing.T) []string {
	t.Helper()
	if err := f.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

const (
	now   = `{"type":"immediate","threadId":"x","text":"hi"}`
	daily = `{"type":"periodic","threadId":"x","text":"good morning","schedule":"0 9 * * *","timezone":"UTC"}`
)

func TestFilesAreTakenOnce(t *testing.T) {
	t.Parallel()
	f, h, write := newFolder(t)
	write("a.json", now)
	write("b.json", daily)
	write("c.txt", now)
	write(".d.json", now)
	if left := f.look(t); !slices.Equal(left, []string{".d.json", "b.json", "c.txt"}) {
		t.Errorf("left: %v", left)
	}
	f.look(t)
	if len(h.said) != 1 || h.kept["b.json"] != "[EVENT:b.json:periodic:0 9 * * *] good morning" || !slices.Equal(h.only, []string{"b.json"}) {
		t.Errorf("said %v, kept %v, only %v", h.said, h.kept, h.only)
	}
	write("a.json", now) // the same words again are another event
	f.look(t)
	if len(h.said) != 2 {
		t.Errorf("said %v", h.said)
	}
	h.over = true
	if left := f.look(t); slices.Contains(left, "b.json") {
		t.Errorf("what is over stays: %v", left)
	}
}

func TestWhatIsWrongIsPutAsideWithTheReason(t *testing.T) {
	t.Parallel()
	f, h, write := newFolder(t)
	write("half.json", now[:20])
	write("good.json", now)
	if err := os.Symlink("/etc/passwd", filepath.Join(f.Dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if left := f.look(t); !slices.Equal(left, []string{"rejected"}) || len(h.said) != 1 {
		t.Errorf("left %v, said %v", left, h.said)
	}
	for name, want := range map[string]string{"half.json": "not a JSON object", "link.json": "not a regular file"} {
		why, err := os.ReadFile(filepath.Join(f.Dir, rejected, name+".txt"))
		if err != nil || !strings.Contains(string(why), want) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		if _, err := os.Lstat(filepath.Join(f.Dir, rejected, name)); err != nil {
			t.Error(err)
		}
	}
}

// A file that is being written is whole at the second or third look.
func TestHalfAFileIsTriedAgain(t *testing.T) {
	t.Parallel()
	f, h, write := newFolder(t)
	write("slow.json", now[:20])
	pauses := 0
	f.Pause = func(context.Context, time.Duration) {
		if pauses++; pauses == 2 {
			write("slow.json", now)
		}
	}
	if left := f.look(t); len(left) != 0 || len(h.said) != 1 || pauses != 2 {
		t.Errorf("left %v, said %v after %d pauses", left, h.said, pauses)
	}
}

// What cannot be taken now stays, and what is written while a file is taken is not removed with it.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	f, h, write := newFolder(t)
	h.err = errors.New("the disk is full")
	write("a.json", now)
	if left := f.look(t); !slices.Equal(left, []string{"a.json"}) {
		t.Errorf("left %v", left)
	}
	h.err = nil
	second := strings.Replace(now, "hi", "second", 1)
	if err := f.remove("a.json", "the digest of something else"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(f.Dir, "a.json")); err != nil || string(data) != now {
		t.Errorf("%s, %v", data, err)
	}
	write("a.json", second)
	if left := f.look(t); len(left) != 0 || len(h.said) != 1 {
		t.Errorf("left %v, said %v", left, h.said)
	}
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	many := 1000
	if os.Getenv("CHORUS_FAULTS") != "" { // make faults
		many = 10_000
	}
	f, h, write := newFolder(t)
	for i := range many {
		write(fmt.Sprintf("%05d.json", i), now)
	}
	if left := f.look(t); len(left) != 0 || len(h.said) != many {
		t.Errorf("%d left, %d said", len(left), len(h.said))
	}
}

func TestTheFolderIsWatched(t *testing.T) {
	t.Parallel()
	f, h, write := newFolder(t)
	f.Pause = nil
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	deadline := time.Now().Add(20 * time.Second) // far below the rescan
	for i := 0; ; i++ {
		h.mu.Lock()
		n := len(h.said)
		h.mu.Unlock()
		if n > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Error("nobody noticed the file")
			break
		}
		write("a.json", now) // the watch may begin after the first
		<-time.After(20 * time.Millisecond)
	}
	cancel()
	<-done
}
