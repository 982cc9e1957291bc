package webtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"chorus/internal/sandbox/isolate"
)

// patience bounds every wait for the browser; a loaded machine may need much of it.
const patience = 90 * time.Second

// chrome is the one Chromium of all tests, in which each has a profile of its own.
var chrome struct {
	sync.Once
	ctx  context.Context
	stop []context.CancelFunc
	err  error
}

func TestMain(m *testing.M) {
	if code, ours := isolate.LaunchSandboxed(os.Args[1:]); ours { // commands behind walls are started by us
		os.Exit(code)
	}
	if home := os.Getenv("WEBTEST_HOME"); home != "" {
		os.Exit(serveHere(home, os.Getenv("WEBTEST_ADDR")))
	}
	code := m.Run()
	for _, stop := range chrome.stop {
		stop()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// chromium is where the browser is.
func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no chromium on this machine")
}

func startBrowser() {
	path, err := chromium()
	if err != nil {
		chrome.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 860),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	chrome.stop = append(chrome.stop, stop)
	chrome.ctx, stop = chromedp.NewContext(ctx)
	chrome.stop = append([]context.CancelFunc{stop}, chrome.stop...)
	chrome.err = chromedp.Do(chrome.ctx)
}

// tab is a page in the browser, with everything it complained about.
type tab struct {
	*testing.T
	house *house
	ctx   context.Context

	mu     sync.Mutex
	heard  []string
	expect []string // complaints that are meant to come
}

// open gives a tab of a fresh profile, not signed in.
func (h *house) open(options ...chromedp.ContextOption) *tab {
	h.Helper()
	chrome.Do(startBrowser)
	if chrome.err != nil {
		if os.Getenv("CI") == "true" {
			h.Fatalf("with CI=true nothing is skipped: %v", chrome.err)
		}
		h.Skipf("!!! %v: what the pages do in a browser is NOT TESTED; install chromium", chrome.err)
	}
	return h.attach(chrome.ctx, append(options, chromedp.WithNewBrowserContext())...)
}

// second is another tab of the same person.
func (t *tab) second() *tab {
	t.Helper()
	return t.house.attach(t.ctx)
}

func (h *house) attach(parent context.Context, options ...chromedp.ContextOption) *tab {
	h.Helper()
	ctx, stop := chromedp.NewContext(parent, options...)
	t := &tab{T: h.T, house: h, ctx: ctx}
	var ears sync.WaitGroup
	h.Cleanup(func() {
		t.calm()
		stop()
		ears.Wait()
	})
	// The first run makes the tab, which lives as long as the context that it is given.
	if err := chromedp.Do(ctx); err != nil {
		h.Fatal(err)
	}
	listen(ctx, &ears, log.EntryAdded, func(e log.EventEntryAdded) {
		if e.Entry.Level == log.EntryLevelError || strings.Contains(e.Entry.Text, "Content Security Policy") {
			t.hear(fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL))
		}
	})
	listen(ctx, &ears, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		t.hear(fmt.Sprint("an exception: ", (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()))
	})
	listen(ctx, &ears, page.JavascriptDialogOpening, func(e page.EventJavascriptDialogOpening) { t.hear("a dialog opened: " + e.Message) })
	call(t, log.Enable, cdp.Empty{})
	call(t, runtime.Enable, cdp.Empty{})
	call(t, page.Enable, page.EnableParams{})
	call(t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return t
}

// listen hears events of a tab until it is closed.
func listen[E any](ctx context.Context, ears *sync.WaitGroup, event cdp.Event[E], hear func(E)) {
	events := chromedp.Events(ctx, event)
	ears.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			hear(e)
		}
	})
}

// call gives the browser an order.
func call[P, R any](t *tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	got, err := chromedp.Call(ctx, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// hear keeps what a page complains about: errors of scripts, of the policy, of loads.
func (t *tab) hear(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = append(t.heard, text)
}

// calm fails when the page complained about something that was not to be expected.
func (t *tab) calm() {
	t.mu.Lock()
	defer t.mu.Unlock()
next:
	for _, text := range t.heard {
		for _, want := range t.expect {
			if strings.Contains(text, want) {
				continue next
			}
		}
		t.Errorf("the page complained: %s", text)
	}
}

// expects names a complaint that is meant to come.
func (t *tab) expects(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expect = append(t.expect, text)
}

// do runs actions in the page, within our patience.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%v\nthe page: %s", err, t.glimpse())
	}
}

// value is what an expression gives.
func value[T any](t *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v\nthe page: %s", expression, err, t.glimpse())
	}
	return got
}

// glimpse is what stands on the page, to see why something did not come.
func (t *tab) glimpse() string {
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + "\n" + document.body.innerText.slice(0, 3000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// visit loads a page of the house.
func (t *tab) visit(path string) {
	t.Helper()
	t.do(chromedp.Navigate(t.house.url + path))
}

// until waits for an expression to be true, also across pages.
func (t *tab) until(expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ok {
			return
		}
		select {
		case <-again.C: // an error too: the page may just be changing
		case <-ctx.Done():
			t.Fatalf("never came true: %s (%v)\nthe page: %s", expression, err, t.glimpse())
		}
	}
}

// says waits for a text to stand on the page.
func (t *tab) says(text string) {
	t.Helper()
	t.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// answers waits for the agent to have said something.
func (t *tab) answers(text string) {
	t.Helper()
	t.until(fmt.Sprintf("[...document.querySelectorAll('.said.agent')].some((e) => e.innerText.includes(%q))", text))
}

// text is what an expression gives, as text; number as a number.
func (t *tab) text(expression string) string {
	t.Helper()
	return value[string](t, "String("+expression+")")
}

func (t *tab) number(expression string) float64 {
	t.Helper()
	return value[float64](t, "Number("+expression+")")
}

// eval runs a script, and waits for it where it gives a promise.
func (t *tab) eval(script string) {
	t.Helper()
	value[bool](t, "(async () => { "+script+"; return true })()")
}

func (t *tab) click(selector string) {
	t.Helper()
	t.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// write types into a field.
func (t *tab) write(selector, text string) {
	t.Helper()
	t.do(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// say sends a message on the page of a conversation, whatever lines it has.
func (t *tab) say(text string) {
	t.Helper()
	t.eval(fmt.Sprintf("document.querySelector('#say textarea').value = %q", text))
	t.click("#send")
}

// idle waits for the end of what the agent does.
func (t *tab) idle() {
	t.Helper()
	t.until(`document.getElementById("status")?.dataset.status === "idle" && document.querySelector("#log .end")`)
}

func reload() chromedp.Action[chromedp.Void] { return chromedp.Reload() }

// phone makes the window as small as a phone's.
func (t *tab) phone() {
	t.Helper()
	t.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1), chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// dark makes the machine one that likes it dark.
func (t *tab) dark() {
	t.Helper()
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
}
