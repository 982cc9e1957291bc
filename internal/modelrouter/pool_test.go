package modelrouter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// keyedProvider is a provider that many keys lead to: what it answers depends on the key.
type keyedProvider struct {
	mu     sync.Mutex
	asked  []string                         // the keys, in the order they were used
	made   int                              // models that were made
	answer func(key string, n int) answered // n counts the calls with this key from 1
	models func(key string) ([]string, error)
}

// answered is one answer: chunks, then an error or the end.
type answered struct {
	text string
	err  *model.Error
}

func (d *keyedProvider) make(_ Vendor, a Account) (model.Model, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made++
	return &line{d, a.Key}, nil
}

func (d *keyedProvider) keys() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.asked, " ")
}

type line struct {
	keyedProvider *keyedProvider
	key           string
}

func (l *line) Prepare(r model.Request) (model.Prepared, error) {
	return model.Prepared{Model: r.Model, Body: []byte(r.Model)}, nil
}

func (l *line) Models(context.Context) ([]string, error) { return l.keyedProvider.models(l.key) }

func (l *line) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		l.keyedProvider.mu.Lock()
		l.keyedProvider.asked = append(l.keyedProvider.asked, l.key)
		n := 0
		for _, k := range l.keyedProvider.asked {
			if k == l.key {
				n++
			}
		}
		l.keyedProvider.mu.Unlock()
		a := l.keyedProvider.answer(l.key, n)
		if a.text != "" && !yield(model.TextDelta{Text: a.text}, nil) {
			return
		}
		if a.err != nil {
			e := *a.err
			e.Provider, e.Model = "sim", p.Model
			e.Message += " for " + l.key // a provider that says too much
			yield(nil, &e)
			return
		}
		yield(model.Done{Blocks: chat.TextBlocks(a.text), Stop: chat.StopEnd}, nil)
	}
}

func pool(t *testing.T, d *keyedProvider, keys string) *Pool {
	t.Helper()
	return poolOf(t, d, Vendor{Name: "work", Kind: "anthropic", Declared: true, Config: func(key string) (string, error) {
		if key == "anthropic_api_key" {
			return keys, nil
		}
		return "", nil
	}})
}

func poolOf(t *testing.T, d *keyedProvider, v Vendor) *Pool {
	t.Helper()
	p, err := Open(v, d.make)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// say asks once and gives back what was shown and how it ended.
func say(ctx context.Context, p *Pool) (string, *model.Error) {
	text := ""
	for chunk, err := range p.Stream(ctx, model.Prepared{Model: "m"}) {
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) {
				panic("not a model's failure: " + err.Error())
			}
			return text, e
		}
		if d, ok := chunk.(model.TextDelta); ok {
			text += d.Text
		}
	}
	return text, nil
}

var (
	tooFast = &model.Error{Kind: model.RateLimited, Status: 429, Message: "slow down"}
	refused = &model.Error{Kind: model.Auth, Status: 401, Message: "invalid key"}
	busy    = &model.Error{Kind: model.Overloaded, Status: 529}
)

func TestTheNextKeyIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		keys   string
		answer func(key string, n int) answered
		text   string
		kind   model.ErrorKind // "": an answer
		asked  string
	}{
		{"the first is well", "test-a,test-b", func(string, int) answered { return answered{text: "hi"} }, "hi", "", "test-a"},
		{"the first is too fast", "test-a,test-b", func(k string, _ int) answered {
			if k == "test-a" {
				return answered{err: tooFast}
			}
			return answered{text: "hi"}
		}, "hi", "", "test-a test-b"},
		{"all are too fast", "test-a,test-b", func(string, int) answered { return answered{err: tooFast} }, "", model.RateLimited, "test-a test-b"},
		{"too fast in the middle of an answer", "test-a,test-b", func(string, int) answered { return answered{text: "half", err: tooFast} }, "half", model.RateLimited, "test-a"},
		{"not accepted in the middle of an answer", "test-a,test-b", func(string, int) answered { return answered{text: "half", err: refused} }, "half", model.Auth, "test-a"},
		{"two revoked", "test-a,test-b,test-c", func(k string, _ int) answered {
			if k != "test-c" {
				return answered{err: refused}
			}
			return answered{text: "hi"}
		}, "hi", "", "test-a test-b test-c"},
		{"overloaded is not the key's fault", "test-a,test-b", func(string, int) answered { return answered{err: busy} }, "", model.Overloaded, "test-a"},
		{"one key, too fast", "test-a", func(string, int) answered { return answered{err: tooFast} }, "", model.RateLimited, "test-a"},
		{"one key, not accepted and not changed", "test-a", func(string, int) answered { return answered{err: refused} }, "", model.Auth, "test-a"},
	} {
		d := &keyedProvider{answer: c.answer}
		text, err := say(t.Context(), pool(t, d, c.keys))
		kind := model.ErrorKind("")
		if err != nil {
			kind = err.Kind
			if strings.Contains(err.Error(), "test-a") || strings.Contains(err.Error(), "test-b") {
				t.Errorf("%s: %v holds a key", c.name, err)
			}
		}
		if text != c.text || kind != c.kind || d.keys() != c.asked {
			t.Errorf("%s: %q %v, asked %s", c.name, text, err, d.keys())
		}
	}
}

func TestRestingKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		well := map[string]bool{}
		d := &keyedProvider{answer: func(k string, _ int) answered {
			if well[k] {
				return answered{text: k}
			}
			e := *tooFast
			if k == "test-b" {
				e.RetryAfter = 5 * time.Second
			}
			return answered{err: &e}
		}}
		p := pool(t, d, "test-a, test-b")
		ctx := t.Context()
		if _, err := say(ctx, p); err == nil || err.RetryAfter != 5*time.Second || err.Kind != model.RateLimited {
			t.Fatalf("both were refused: %v, wait %v", err, err.RetryAfter)
		}
		// Nobody is asked while all rest, and the wait grows shorter.
		time.Sleep(2 * time.Second)
		_, err := say(ctx, p)
		if err == nil || err.RetryAfter != 3*time.Second || d.keys() != "test-a test-b" {
			t.Fatalf("both rest: %v, wait %v, asked %s", err, err.RetryAfter, d.keys())
		}
		if pause, again := (model.Backoff{}).Pause(1, err, 0); pause != 3*time.Second || !again {
			t.Errorf("the back-off waits %v, %v", pause, again)
		}
		// Exactly after the wait the second is asked, not the first, which rests for a minute.
		time.Sleep(err.RetryAfter)
		well["test-a"], well["test-b"] = true, true
		if text, err := say(ctx, p); text != "test-b" {
			t.Fatalf("%q %v", text, err)
		}
		time.Sleep(55*time.Second - time.Nanosecond)
		if text, _ := say(ctx, p); text != "test-b" {
			t.Errorf("the first rests for a minute; %q", text)
		}
		time.Sleep(time.Nanosecond)
		if text, _ := say(ctx, p); text != "test-a" {
			t.Errorf("the first is well again; %q", text)
		}
	})
}

func TestRestDoublesToTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &keyedProvider{answer: func(string, int) answered { return answered{err: tooFast} }}
		p := pool(t, d, "test-a,test-b")
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			_, err := say(t.Context(), p)
			if err == nil || err.RetryAfter != want*time.Minute {
				t.Fatalf("%v, want %d minutes", err.RetryAfter, want)
			}
			time.Sleep(err.RetryAfter)
		}
		d.answer = func(string, int) answered { return answered{text: "hi"} }
		if text, err := say(t.Context(), p); text != "hi" {
			t.Fatal(err)
		}
		// A key that worked begins anew.
		d.answer = func(string, int) answered { return answered{err: tooFast} }
		if _, err := say(t.Context(), p); err.RetryAfter != time.Minute {
			t.Errorf("%v", err.RetryAfter)
		}
	})
}

// TestAKeyFileThatChanges: after a 401 the file is read again and the call made once
// more, and no more than once.
func TestAKeyFileThatChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("test-old")
	valid := "test-old"
	d := &keyedProvider{answer: func(k string, _ int) answered {
		if k != valid {
			return answered{err: refused}
		}
		return answered{text: "hi"}
	}}
	p := poolOf(t, d, BuiltIn(env("ANTHROPIC_API_KEY_FILE", file))[0])
	steps := []struct {
		content, valid string
		kind           model.ErrorKind
		asked          string
	}{
		{"test-old", "test-old", "", "test-old"},
		{"test-new", "test-old", "", "test-old"}, // nobody looks while it works
		{"test-new", "test-new", "", "test-old test-new"},
		{"test-new", "test-new", "", "test-new"},
		{"test-newer", "test-newest", model.Auth, "test-new test-newer"},
		{"test-newer", "test-newest", model.Auth, "test-newer"},
		{"", "test-newest", model.Auth, "test-newer"}, // what the provider said counts, not the empty file
		{"test-newest", "test-newest", "", "test-newer test-newest"},
	}
	for i, s := range steps {
		write(s.content)
		d.asked, valid = nil, s.valid
		_, err := say(t.Context(), p)
		kind := model.ErrorKind("")
		if err != nil {
			kind = err.Kind
			if !strings.Contains(err.Error(), "check ANTHROPIC_API_KEY") || strings.Contains(err.Error(), "test-new") {
				t.Errorf("step %d: %v", i+1, err)
			}
		}
		if kind != s.kind || d.keys() != s.asked {
			t.Errorf("step %d: %v, asked %q, want %q", i+1, err, d.keys(), s.asked)
		}
	}
}

// TestCredentialsFromElsewhere: a kind that looks for its credentials itself is made
// anew and asked once more.
func TestCredentialsFromElsewhere(t *testing.T) {
	t.Parallel()
	d := &keyedProvider{answer: func(_ string, n int) answered { return answered{err: refused} }}
	p := poolOf(t, d, declare(t, "b", map[string]string{"aws_region": "eu-west-1"}))
	if _, err := say(t.Context(), p); err == nil || err.Kind != model.Auth || d.made != 2 || len(d.asked) != 2 {
		t.Errorf("%v: made %d, asked %d times", err, d.made, len(d.asked))
	}
	d.answer = func(_ string, n int) answered { return answered{text: "hi"} }
	if text, _ := say(t.Context(), p); text != "hi" || d.made != 2 {
		t.Errorf("%q, made %d", text, d.made)
	}
}

// TestNotAcceptedIsAskedAgain: a pool whose keys all were not accepted is not closed
// for ever; somebody may have paid.
func TestNotAcceptedIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		paid := false
		d := &keyedProvider{answer: func(string, int) answered {
			if paid {
				return answered{text: "hi"}
			}
			return answered{err: refused}
		}}
		p := pool(t, d, "test-a,test-b")
		if _, err := say(t.Context(), p); err == nil || err.Kind != model.Auth {
			t.Fatal(err)
		}
		paid = true
		if text, err := say(t.Context(), p); text != "hi" {
			t.Errorf("%v", err)
		}
	})
}

// TestCancelledIsNotTriedAgain: nobody waits for the second key.
func TestCancelledIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := &keyedProvider{answer: func(string, int) answered { cancel(); return answered{err: tooFast} }}
	if _, err := say(ctx, pool(t, d, "test-a,test-b")); err == nil || d.keys() != "test-a" {
		t.Errorf("%v, asked %s", err, d.keys())
	}
}

// TestListenersWhoLeave: breaking out of the loop ends it, whatever was tried.
func TestListenersWhoLeave(t *testing.T) {
	t.Parallel()
	d := &keyedProvider{answer: func(k string, _ int) answered {
		if k == "test-a" {
			return answered{err: tooFast}
		}
		return answered{text: "hi"}
	}}
	for range pool(t, d, "test-a,test-b").Stream(t.Context(), model.Prepared{}) {
		break
	}
	if d.keys() != "test-a test-b" {
		t.Errorf("asked %s", d.keys())
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &keyedProvider{answer: func(k string, n int) answered {
			if k == "test-a" {
				return answered{err: tooFast}
			}
			return answered{text: "hi"}
		}}
		p := pool(t, d, "test-a,test-b,test-c")
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if text, err := say(t.Context(), p); text != "hi" {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		// Calls that fail side by side are one strike: the rest is a minute, not ten.
		time.Sleep(time.Minute)
		if s := p.pick(nil); s == nil || s.account.Key != "test-a" {
			t.Errorf("%+v", s)
		}
	})
}

// TestPoolHolds: whatever the keys answer, no key is asked twice in one call, nothing
// is asked after something was shown, and a wait is only named when keys rest.
func TestPoolHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(r, "keys")
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf("test-key-%d", i))
		}
		moods := rapid.SliceOfN(rapid.SampledFrom([]string{"well", "fast", "auth", "busy", "half"}), n, n).Draw(r, "moods")
		d := &keyedProvider{answer: func(k string, _ int) answered {
			switch moods[slices.Index(keys, k)] {
			case "fast":
				return answered{err: tooFast}
			case "auth":
				return answered{err: refused}
			case "busy":
				return answered{err: busy}
			case "half":
				return answered{text: "half", err: tooFast}
			}
			return answered{text: "hi"}
		}}
		p, err := Open(Vendor{Name: "v", Kind: "anthropic", Config: func(k string) (string, error) {
			if k == "anthropic_api_key" {
				return strings.Join(keys, ","), nil
			}
			return "", nil
		}}, d.make)
		if err != nil {
			r.Fatal(err)
		}
		text, failed := say(context.Background(), p)
		slices.Sort(d.asked)
		if unique := len(slices.Compact(slices.Clone(d.asked))); unique != len(d.asked) {
			r.Fatalf("a key was asked twice: %v", d.asked)
		}
		for i, mood := range moods { // the first that is neither too fast nor refused decides
			switch mood {
			case "fast", "auth":
				continue
			case "well":
				if text != "hi" || failed != nil {
					r.Fatalf("%v: %q %v", moods, text, failed)
				}
			default:
				if failed == nil {
					r.Fatalf("%v: %q", moods, text)
				}
			}
			if len(d.asked) != i+1 {
				r.Fatalf("%v: asked %v", moods, d.asked)
			}
			return
		}
		if failed == nil || text != "" {
			r.Fatalf("%v: %q %v", moods, text, failed)
		}
	})
}

func TestPoolModels(t *testing.T) {
	t.Parallel()
	d := &keyedProvider{models: func(k string) ([]string, error) {
		if k == "test-a" {
			return nil, &model.Error{Kind: model.Auth, Provider: "sim", Message: "no " + k}
		}
		return []string{"m-" + k}, nil
	}}
	names, err := pool(t, d, "test-a,test-b,test-c").Models(t.Context())
	var some *SomeKeys
	if !errors.As(err, &some) || len(some.Failed) != 1 || some.Of != 3 || !slices.Equal(names, []string{"m-test-b"}) || strings.Contains(err.Error(), "test-a") {
		t.Errorf("%v %v", names, err)
	}
	if names, err := pool(t, d, "test-b").Models(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
	if names, err := pool(t, d, "test-a").Models(t.Context()); model.KindOf(err) != model.Auth || names != nil {
		t.Errorf("%v %v", names, err)
	}
	if _, err := Open(BuiltIn(none)[0], d.make); err == nil {
		t.Error("opened without a key")
	}
}

// A word that is too short to be a key is left where it stands.
func TestShortKeysGarbleNothing(t *testing.T) {
	t.Parallel()
	cause := errors.New("the message says so")
	for key, want := range map[string]string{"s": "this message for s", "test5": "this message for test5", "test-6": "this message for ***"} {
		d := &keyedProvider{answer: func(string, int) answered {
			return answered{err: &model.Error{Kind: model.BadRequest, Message: "this message", Err: cause}}
		}}
		_, err := say(t.Context(), pool(t, d, key))
		if err == nil || err.Message != want || !errors.Is(err, cause) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}
