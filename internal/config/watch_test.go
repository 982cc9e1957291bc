package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a folder that the rule is shown instead of a real one.
type world struct {
	mu       sync.Mutex
	version  string // what look finds
	wrong    string // "": what read finds is right
	notified chan struct{}
	heard    []string
	reads    int
}

func (w *world) begin(ctx context.Context) (done chan error) {
	w.notified = make(chan struct{}, 1)
	o := WatchOptions{
		Changed: func(*Files) { w.do(func() { w.heard = append(w.heard, "changed "+w.version) }) },
		Broken:  func(p Problems) { w.do(func() { w.heard = append(w.heard, "broken "+p.Error()) }) },
	}
	done = make(chan error, 1)
	go func() {
		done <- watch(ctx, o, w.notified, w.look, w.read)
	}()
	synctest.Wait()
	return done
}

func (w *world) do(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func (w *world) look() (version string) {
	w.do(func() { version = w.version })
	return version
}

func (w *world) read(Options) (files *Files, problems Problems) {
	w.do(func() {
		w.reads++
		if files = (&Files{}); w.wrong != "" {
			files, problems = nil, Problems{{Text: w.wrong}}
		}
	})
	return files, problems
}

func (w *world) set(version, wrong string) { w.do(func() { w.version, w.wrong = version, wrong }) }

// after lets time pass and gives what was told meanwhile.
func (w *world) after(d time.Duration) string {
	time.Sleep(d) // the bubble's clock, not ours
	synctest.Wait()
	out := ""
	w.do(func() { out, w.heard = strings.Join(w.heard, "; "), nil })
	return out
}

func TestWatchRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{version: "1"}
		done := w.begin(ctx)
		step := func(what, got, want string) {
			if got != want {
				t.Errorf("%s: heard %q, want %q", what, got, want)
			}
		}
		w.notified <- struct{}{}
		step("a ring without a change", w.after(time.Second), "")
		if w.reads != 0 {
			t.Error("nothing changed, and it was read")
		}
		w.set("2", "")
		w.notified <- struct{}{}
		step("before it settles", w.after(50*time.Millisecond), "")
		w.notified <- struct{}{}
		step("still written to", w.after(60*time.Millisecond), "")
		step("settled", w.after(50*time.Millisecond), "changed 2")
		w.set("3", "line 1")
		w.notified <- struct{}{}
		step("broken", w.after(time.Second), "broken line 1")
		w.set("4", "line 1")
		w.notified <- struct{}{}
		step("broken in the same way", w.after(time.Second), "")
		w.set("5", "line 2")
		w.notified <- struct{}{}
		step("broken in another way", w.after(time.Second), "broken line 2")
		w.set("6", "")
		step("mended, and nobody rang", w.after(31*time.Second), "changed 6")
		w.set("7", "a secret's file is missing")
		step("broken again", w.after(31*time.Second), "broken a secret's file is missing")
		w.set("7", "")
		step("mended from outside", w.after(31*time.Second), "changed 7")
		reads := w.reads
		step("quiet", w.after(10*time.Minute), "")
		if w.reads != reads {
			t.Error("read without a change")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What changed between the caller's reading and the beginning is found.
func TestWatchKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan string, 1)
		go func() {
			_ = watch(ctx, WatchOptions{Known: &Files{digest: "old"}, Changed: func(*Files) { told <- "changed" }}, nil,
				func() string { return "new" }, func(Options) (*Files, Problems) { return &Files{}, nil })
		}()
		if got := <-told; got != "changed" {
			t.Error(got)
		}
		cancel()
	})
}

// With a real folder: made, changed, broken, mended, beside a busy home.
func TestWatchFolder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, "config")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	changed, broken, ready := make(chan *Files, 10), make(chan Problems, 10), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, WatchOptions{
			Options: Options{Dir: dir, Settings: filepath.Join(home, "settings.json"), Env: env(nil)},
			Changed: func(f *Files) { changed <- f }, Broken: func(p Problems) { broken <- p },
			Settle: time.Millisecond, Rescan: 20 * time.Millisecond, Ready: func() { close(ready) },
		})
	}()
	<-ready
	until := func(want int) {
		t.Helper()
		for {
			select {
			case f := <-changed:
				if b, problems := f.Bot(Ask{Bot: "a"}); problems.Err() == nil && b.MaxTokens == want {
					return
				}
			case <-ctx.Done():
				t.Fatalf("maxTokens: %d never came", want)
			}
		}
	}
	write(t, home, map[string]string{"chorus.db": "busy", "settings.json": `{"maxTokens": 1}`})
	until(1)
	write(t, dir, map[string]string{"shared.yaml": "maxTokens: 2\n"})
	until(2)
	write(t, dir, map[string]string{"bots/a.yaml": "maxTokens: 3\n"})
	until(3)
	write(t, dir, map[string]string{"bots/a.yaml": "maxTokens: [\n"})
	select {
	case p := <-broken:
		if !strings.Contains(p.Error(), "bots/a.yaml:1:") {
			t.Error(p)
		}
	case <-ctx.Done():
		t.Fatal("nobody said that the file is broken")
	}
	write(t, dir, map[string]string{"bots/a.yaml": "maxTokens: 4\n"})
	until(4)
	if err := os.Remove(filepath.Join(dir, "bots/a.yaml")); err != nil {
		t.Fatal(err)
	}
	until(2)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The file system tells: no rescan is needed once the folder is there.
func TestWatchIsTold(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"shared.yaml": "maxTokens: 1\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	changed, ready, done := make(chan *Files, 10), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Watch(ctx, WatchOptions{Options: Options{Dir: dir, Env: env(nil)}, Changed: func(f *Files) { changed <- f }, Broken: func(Problems) {},
			Settle: time.Millisecond, Rescan: time.Hour, Ready: func() { close(ready) }})
	}()
	<-ready
	write(t, dir, map[string]string{"shared.yaml": "maxTokens: 2\n"})
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("nobody told")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
