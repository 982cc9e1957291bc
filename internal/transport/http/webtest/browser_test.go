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
	"chorus/internal/sandbox/keep"
)

// timeout bounds every wait for the browser; a busy machine may need much of it.
const timeout = 90 * time.Second

// chromium is a browser that tests share; each test has its own profile.
type chromium struct {
	programs []string // the first that is there
	once     sync.Once
	ctx      context.Context
	stops    []context.CancelFunc
	err      error
}

// complete are the programs of a browser with windows.
var complete = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// Most tests have the Chromium without windows where there is one, which takes half of the processor's time: the windows of the other, which nobody sees, have
// processes of their own. It has no notifications, and not the fonts of the pictures.
var (
	windowless = chromium{programs: append([]string{"/usr/lib/chromium/chromium-headless-shell", "chrome-headless-shell"}, complete...)} // Debian's own start of it outlives us
	windowed   = chromium{programs: complete}
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:])               // a sandbox may start us as its process 1
	if len(os.Args) == 3 && os.Args[1] == keep.Arg { // a process that an agent left running has us look after it
		if keep.Main(os.Args[2], os.Stdin, os.Stdout, nil) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(shopServer) != "" { // an agent has us as an MCP server
		os.Exit(serveShop())
	}
	if home := os.Getenv("WEBTEST_HOME"); home != "" {
		os.Exit(serveHere(home, os.Getenv("WEBTEST_ADDR")))
	}
	code := m.Run()
	windowless.stop()
	windowed.stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// path is where the browser is.
func (c *chromium) path() (string, error) {
	for _, name := range c.programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no chromium on this machine")
}

func (c *chromium) start() {
	path, err := c.path()
	if err != nil {
		c.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 860),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(timeout))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	c.stops = append(c.stops, stop)
	c.ctx, stop = chromedp.NewContext(ctx)
	c.stops = append([]context.CancelFunc{stop}, c.stops...)
	c.err = chromedp.Do(c.ctx)
}

func (c *chromium) stop() {
	for _, stop := range c.stops {
		stop()
	}
}

// inWindows has the tabs of a server in a browser with windows.
func (h *server) inWindows() { h.browser = &windowed }

// tab is a tab of the browser, with the errors that it reported.
type tab struct {
	*testing.T
	server *server
	ctx    context.Context

	mu       sync.Mutex
	errors   []string
	expected []string // parts of errors that are expected

	unscripted bool // its pages run no scripts
}

// open opens a tab with a new profile, not signed in.
func (h *server) open(options ...chromedp.ContextOption) *tab {
	h.Helper()
	c := &windowless
	if h.browser != nil {
		c = h.browser
	}
	c.once.Do(c.start)
	if c.err != nil {
		if os.Getenv("CI") == "true" {
			h.Fatalf("with CI=true nothing is skipped: %v", c.err)
		}
		h.Skipf("!!! %v: what the pages do in a browser is NOT TESTED; install chromium", c.err)
	}
	return h.attach(c.ctx, append(options, chromedp.WithNewBrowserContext())...)
}

// second opens another tab with the same profile.
func (t *tab) second() *tab {
	t.Helper()
	return t.server.attach(t.ctx)
}

func (h *server) attach(parent context.Context, options ...chromedp.ContextOption) *tab {
	h.Helper()
	ctx, stop := chromedp.NewContext(parent, options...)
	t := &tab{T: h.T, server: h, ctx: ctx}
	var listeners sync.WaitGroup
	h.Cleanup(func() {
		t.checkErrors()
		stop()
		listeners.Wait()
	})
	// The first run makes the tab, which lives as long as its context.
	if err := chromedp.Do(ctx); err != nil {
		h.Fatal(err)
	}
	listen(ctx, &listeners, log.EntryAdded, func(e log.EventEntryAdded) {
		if e.Entry.Level == log.EntryLevelError || strings.Contains(e.Entry.Text, "Content Security Policy") {
			t.addError(fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL))
		}
	})
	listen(ctx, &listeners, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		t.addError(fmt.Sprint("an exception: ", (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()))
	})
	listen(ctx, &listeners, page.JavascriptDialogOpening, func(e page.EventJavascriptDialogOpening) { t.addError("a dialog opened: " + e.Message) })
	call(t, log.Enable, cdp.Empty{})
	call(t, runtime.Enable, cdp.Empty{})
	call(t, page.Enable, page.EnableParams{})
	call(t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return t
}

// listen calls a function for each event of a tab until it is closed.
func listen[E any](ctx context.Context, listeners *sync.WaitGroup, event cdp.Event[E], handle func(E)) {
	events := chromedp.Events(ctx, event)
	listeners.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			handle(e)
		}
	})
}

// call sends a command to the browser.
func call[P, R any](t *tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	got, err := chromedp.Call(ctx, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// addError records an error of a script, of the content security policy or of a request.
func (t *tab) addError(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors = append(t.errors, text)
}

// checkErrors fails the test if the page reported an error that was not expected.
func (t *tab) checkErrors() {
	t.mu.Lock()
	defer t.mu.Unlock()
next:
	for _, text := range t.errors {
		for _, want := range t.expected {
			if strings.Contains(text, want) {
				continue next
			}
		}
		t.Errorf("the page reported an error: %s", text)
	}
}

// expectError names a part of an error that is expected.
func (t *tab) expectError(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = append(t.expected, text)
}

// do runs actions in the page.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%v\nthe page: %s", err, t.visibleText())
	}
}

// value is the value of an expression.
func value[T any](t *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v\nthe page: %s", expression, err, t.visibleText())
	}
	return got
}

// visibleText is the text of the page, for error messages.
func (t *tab) visibleText() string {
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + "\n" + document.body.innerText.slice(0, 3000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// visit loads a page of the server.
func (t *tab) visit(path string) {
	t.Helper()
	t.do(chromedp.Navigate(t.server.url + path))
}

// until waits for an expression to be true, also across pages. The page itself looks again and again: to be asked each time costs it, and
// us, more than all that it shows.
func (t *tab) until(expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	look := fmt.Sprintf(`new Promise((tell) => {
		const since = performance.now();
		(function look() {
			let why = "false";
			try { if (%s) return tell(""); } catch (e) { why = String(e); }
			if (performance.now() - since > 1000) tell(why); else setTimeout(look, 15);
		})();
	})`, expression)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		why, err := t.looks(ctx, expression, look)
		if err == nil && why == "" {
			return
		}
		select {
		case <-again.C: // also after an error: the page may be loading
		case <-ctx.Done():
			t.Fatalf("never came true: %s (%s, %v)\nthe page: %s", expression, why, err, t.visibleText())
		}
	}
}

// looks says why an expression is not true for a second, or "". A page without scripts has no timers: it is asked once. So is one that
// does not tell, because it was left while it looked.
func (t *tab) looks(ctx context.Context, expression, look string) (why string, err error) {
	if !t.unscripted {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if why, err = chromedp.Run(within, chromedp.Evaluate[string](look, chromedp.EvalAwaitPromise)); within.Err() == nil || ctx.Err() != nil {
			return why, err
		}
	}
	return chromedp.Run(ctx, chromedp.Evaluate[string](`(`+expression+`) ? "" : "false"`))
}

// waitForText waits until the page shows a text.
func (t *tab) waitForText(text string) {
	t.Helper()
	t.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// waitForAnswer waits until an answer of the agent shows a text.
func (t *tab) waitForAnswer(text string) {
	t.Helper()
	t.until(fmt.Sprintf("[...document.querySelectorAll('.said.agent')].some((e) => e.innerText.includes(%q))", text))
}

// text is the value of an expression as text, number as a number.
func (t *tab) text(expression string) string {
	t.Helper()
	return value[string](t, "String("+expression+")")
}

func (t *tab) number(expression string) float64 {
	t.Helper()
	return value[float64](t, "Number("+expression+")")
}

// eval runs a script and waits for its promises.
func (t *tab) eval(script string) {
	t.Helper()
	value[bool](t, "(async () => { "+script+"; return true })()")
}

func (t *tab) click(selector string) {
	t.Helper()
	t.again(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// again does something to an element, and once more where the page has renewed itself meanwhile and has another one by now.
func (t *tab) again(action chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	for {
		err := chromedp.Do(ctx, action)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Could not find node") {
			t.Fatalf("%v\nthe page: %s", err, t.visibleText())
		}
	}
}

// write types into a field.
func (t *tab) write(selector, text string) {
	t.Helper()
	t.again(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// say sends a message, which may have several lines.
func (t *tab) say(text string) {
	t.Helper()
	t.eval(fmt.Sprintf("document.querySelector('#say textarea').value = %q", text))
	t.click("#send")
}

// waitUntilIdle waits until no run is active.
func (t *tab) waitUntilIdle() {
	t.Helper()
	t.until(`document.getElementById("status")?.dataset.status === "idle" && document.querySelector("#log .end")`)
}

func reload() chromedp.Action[chromedp.Void] { return chromedp.Reload() }

// phone emulates the screen of a phone.
func (t *tab) phone() {
	t.Helper()
	t.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1), chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// dark emulates a system with a dark theme.
func (t *tab) dark() {
	t.Helper()
	t.theme("dark")
}

// theme emulates a system with a theme, light or dark; an open page takes it on at once.
func (t *tab) theme(name string) {
	t.Helper()
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	t.until(fmt.Sprintf(`matchMedia("(prefers-color-scheme: %s)").matches`, name))
}
