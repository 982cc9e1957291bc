package webtest

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// picture is a small PNG.
func picture(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 120, 60))
	for x := range 120 {
		for y := range 60 {
			img.Set(x, y, color.RGBA{uint8(2 * x), uint8(4 * y), 120, 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAttachForkAndSearch(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	file := filepath.Join(t.TempDir(), "colours.png")
	if err := os.WriteFile(file, picture(t), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{file}))
	p.waitForText("colours.png")
	p.say("say What a fine marmalade picture")
	p.waitUntilIdle()
	p.until(`document.querySelector(".said.user .files img")?.naturalWidth === 120`)
	p.until(`document.getElementById("chosen").children.length === 0`) // the list of chosen files is empty again
	h.prompt(id, "say a second answer")
	p.waitForText("a second answer")

	p.do(chromedp.Focus(chromedp.CSS(".said.agent .fork button")))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname !== "/s/` + id + `"`)
	p.waitForText("marmalade picture")
	if strings.Contains(p.visibleText(), "a second answer") {
		t.Error("the fork has what came after it")
	}
	p.say("say a third way")
	p.waitForText("a third way")

	p.visit("/")
	p.write(".search input", "marmalade\r")
	p.until(`document.querySelector("mark")`)
	p.click(`td.main a[href*="#e"]`)
	p.until(`location.pathname.startsWith("/s/") && location.hash.startsWith("#e")`)
	p.waitForText("marmalade")
}

func TestTheOtherPages(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Permissions: "open"})
	h.prompt(id, "usage in=1200 out=80 read=0 write=1000\ncall bash {\"command\":\"echo hello\"}\nend\nusage in=1400 out=30 read=1000\nsay all done")
	p := h.signedIn()
	p.waitForText("Overview")
	for _, href := range value[[]string](p, `[...document.querySelectorAll(".tiles a")].map((a) => a.getAttribute("href"))`) {
		if strings.HasPrefix(href, "#") {
			continue
		}
		p.visit(href)
		p.until(`document.querySelector("h1")`)
	}

	p.visit("/s/" + id + "/journal")
	p.waitForText("Decisions about calls")
	p.waitForText("echo hello")
	p.eval(`[...document.querySelectorAll(".timeline a")].at(-1).click()`)
	p.waitForText("matches the journal")
	p.until(`document.querySelector(".fragment.cached")`)
	if cached, plain := p.text(`getComputedStyle(document.querySelector(".fragment.cached")).backgroundColor`), p.text(`getComputedStyle(document.querySelector(".fragment:not(.cached)")).backgroundColor`); cached == plain {
		t.Error("cached fragments look like others")
	}

	p.visit("/audit")
	p.click("button[name=verify]")
	p.waitForText("The audit log is intact")

	p.visit("/settings")
	p.write("input[name=name]", "for a reader")
	p.click(`input[name=scopes][value=read]`)
	p.click(`form[action="/settings/tokens"] .button`)
	p.waitForText("Copy it now")
	token := p.text(`document.querySelector("pre.command").textContent.trim()`)
	reader := h.open()
	reader.visit("/sign-in")
	reader.write("input[name=token]", token+"\r")
	reader.waitForText("Overview")
	reader.expectError("404")
	reader.visit("/s/" + id)
	reader.waitForText("Back to overview") // it belongs to another token
	p.visit("/settings")
	p.eval(`[...document.querySelectorAll("tr")].find((r) => r.textContent.includes("for a reader")).querySelector("button").click()`)
	p.waitForText("revoked")
	reader.expectError("401")
	reader.visit("/")
	reader.waitForText("Sign in")

	p.visit("/doctor")
	p.waitForText("This machine")
	p.waitForText("sandboxes") // loaded after the page

	p.expectError("404")
	p.visit("/s/no-such-conversation")
	p.waitForText("Back to overview")
	p.visit("/agents")
	p.visit("/agents/chorus")
	p.waitForText("Tools")
}

// A schedule is shown with its dates before it is kept, and can be paused, resumed and removed.
func TestSchedules(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.visit("/schedules")
	p.waitForText("No schedules yet")
	p.write("input[name=when]", "every blue moon")
	p.write("textarea[name=text]", "What is new?")
	p.click("form.form .button")
	p.waitForText("is not understood from")
	p.eval(`document.querySelector("input[name=when]").value = ""`)
	p.write("input[name=when]", "every weekday at 9")
	p.write("input[name=zone]", "Europe/Berlin")
	p.click("form.form .button")
	p.until(`document.querySelectorAll(".ask li").length === 5`)
	p.click(".ask .button")
	p.until(`document.querySelectorAll("table.list tbody tr a").length === 1`)
	p.click("table.list tbody a")
	p.waitForText("No runs yet")
	p.click("button[value=pause]")
	p.waitForText("It is paused")
	p.click("button[value=resume]")
	p.until(`document.querySelector("button[value=pause]")`)
	p.click("button[value=remove]")
	p.waitForText("No schedules yet")
}

// A skill is shown with all that would be approved, approved as shown, and can be switched off.
func TestSkills(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	dir := filepath.Join(h.app.Home.Dir(), "skills", "deploy")
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("SKILL.md", "---\nname: deploy\ndescription: Release <b>it</b>\nallowed-tools: Bash(x)\n---\nRun go.sh\n")
	write("go.sh", "echo one\n")
	p := h.signedIn()
	p.visit("/skills")
	p.waitForText("Release <b>it</b>")
	p.click("table.list tbody a")
	p.waitForText("What you would approve")
	p.waitForText("+echo one")
	p.waitForText("This grants no rights")
	p.click("button[value=approve]")
	p.until(`[...document.querySelectorAll("table.list tbody tr")].some(r => r.textContent.includes("on"))`)
	write("go.sh", "echo two\n")
	p.visit("/skills")
	p.waitForText("Needs approval")
	p.click("table.list tbody a")
	p.waitForText("What changed since it was approved")
	p.waitForText("+echo two")
	p.click("button[value=disable]")
	p.waitForText("off")
}

func TestCopyingCode(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{})
	for _, name := range []string{"clipboard-write", "clipboard-read"} {
		_, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: name},
			Setting: browser.PermissionSettingGranted, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.say("say ```sh\\necho <b> && ls\\n```")
	p.waitUntilIdle()
	p.eval(`document.querySelector(".said.agent figure.code").focus()`)
	p.eval(`new MutationObserver((changes) => { window.copied ||= changes.some((c) => c.target.textContent === "Copied") }).observe(document.querySelector("#log"), { subtree: true, childList: true })`)
	p.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	p.until(`window.copied`) // shown for a moment only
	if got := value[string](p, `navigator.clipboard.readText()`); strings.TrimSpace(got) != "echo <b> && ls" {
		t.Errorf("%q was copied", got)
	}
	// The text of a message, also of one that comes later.
	p.say("say Two words:\\n\\n- **one**\\n- two")
	p.waitForAnswer("Two words:")
	p.waitUntilIdle()
	p.eval(`const last = [...document.querySelectorAll(".said.agent")].at(-1); last.dispatchEvent(new PointerEvent("pointerover", { bubbles: true })); last.querySelector(".copy-text").click()`)
	p.until(`[...document.querySelectorAll(".copy-text")].some((b) => b.textContent === "Copied")`)
	if got := value[string](p, `navigator.clipboard.readText()`); got != "Two words:\n\n- **one**\n- two" { // as it was written
		t.Errorf("%q was copied", got)
	}
}

// A page that was signed out in another tab goes to the sign-in page.
func TestSignedOutElsewhere(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	p.expectError("401")
	p.expectError("net::ERR")
	other := p.second()
	other.visit("/settings")
	other.click(`form[action="/sign-out"] button`)
	other.waitForText("Sign in")
	h.restart() // ends the stream
	p.waitForText("Sign in")
	if got := p.text("location.search"); !strings.Contains(got, id) {
		t.Errorf("the path to return to is missing: %q", got)
	}
}

// Everything can be done with the keyboard alone.
func TestKeyboardOnly(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{})
	keys := func(text string) { p.do(chromedp.KeyEvent(text)) }
	p.until(`document.activeElement.name === "message"`)
	keys("first line")
	p.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(8))) // shift: a new line
	if got := p.text(`document.activeElement.value`); got != "first line\n" {
		t.Errorf("shift and enter gave %q", got)
	}
	p.eval(`document.activeElement.value = "say asking\ncall bash {\"command\":\"touch x\"}\nend\nsay after"`)
	keys(kb.Enter)
	p.until(`document.querySelector("form.verdict")`)
	p.eval(`document.querySelector("main").focus()`)
	for range 60 {
		keys(kb.Tab)
		if p.text(`document.activeElement.value`) == "deny" {
			break
		}
	}
	if ring := p.text(`getComputedStyle(document.activeElement).outlineStyle`); p.text(`document.activeElement.value`) != "deny" || ring == "none" {
		t.Fatalf("the button Deny cannot be reached with Tab, or its focus is invisible (%s)", ring)
	}
	keys(kb.Enter)
	p.waitForText("Denied")
	p.waitUntilIdle()
	p.eval(`document.querySelector("#say textarea").focus(); document.activeElement.value = "wait"`)
	keys(kb.Enter)
	p.until(`!document.getElementById("stop").hidden`)
	keys(kb.Escape)
	p.waitForText("aborted")
	p.visit("/")
	keys(kb.Tab)
	if p.text(`document.activeElement.className`) != "skip" {
		t.Error("the first focus is not the skip link")
	}
	keys(kb.Enter)
	p.until(`document.activeElement.id === "main"`)
	bare := value[[]string](p, `[...document.querySelectorAll("a, button, input, select, textarea")].filter((e) => e.type !== "hidden" && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length || e.title)).map((e) => e.outerHTML)`)
	if len(bare) > 0 {
		t.Errorf("elements without an accessible name: %q", bare)
	}
}

func TestLightAndDark(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	ground := func() string { return p.text(`getComputedStyle(document.body).backgroundColor`) }
	light := ground()
	p.dark()
	if ground() == light {
		t.Error("the dark theme of the system is ignored")
	}
	p.click("#theme")
	if ground() != light {
		t.Error("the theme button does nothing")
	}
	p.do(reload())
	if ground() != light {
		t.Error("the chosen theme is not kept")
	}
	for _, wish := range []string{"light", "dark"} {
		p.eval(`document.documentElement.dataset.theme = "` + wish + `"`)
		for _, pair := range []string{"ink ground", "soft ground", "soft paper", "soft sunk", "link ground", "accent-ink accent", "good paper", "bad paper", "warn paper", "paper warn", "paper good", "ink you", "bad bad-ground", "ink warn-ground", "soft warn-ground"} {
			if ratio := p.number(contrast(pair)); ratio < 4.5 {
				t.Errorf("%s: %s has the contrast %.2f", wish, pair, ratio)
			}
		}
	}
}

// contrast is a script for the contrast of two named colours.
func contrast(pair string) string {
	a, b, _ := strings.Cut(pair, " ")
	return `(() => { const probe = document.createElement("i"); document.body.append(probe);
		const lum = (name) => { probe.style.color = "var(--" + name + ")";
			const c = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 });
			return .2126 * c[0] + .7152 * c[1] + .0722 * c[2] };
		const [x, y] = [lum("` + a + `"), lum("` + b + `")].sort((p, q) => q - p); probe.remove(); return (x + .05) / (y + .05) })()`
}

// Without scripts everything can be read, and a message can be sent.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say **bold** words")
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.unscripted = true
	for _, path := range []string{"/", "/approvals", "/agents", "/costs", "/work", "/schedules", "/hooks", "/skills", "/servers", "/memory", "/audit", "/settings", "/doctor", "/search?q=bold", "/s/" + id + "/journal", "/s/" + id} {
		p.visit(path)
		p.until(`document.querySelector("h1")?.innerText`)
	}
	p.until(`document.querySelector(".said strong")?.innerText === "bold"`)
	p.waitForText("needs JavaScript")
	p.eval(`document.querySelector("textarea").value = "say sent without a script"; document.getElementById("send").click()`)
	p.until(`document.querySelectorAll(".said.user").length === 2`)
}

// The first page is small and fast.
func TestFirstPageIsLight(t *testing.T) {
	h := newServer(t)
	for range 12 {
		h.prompt(h.session(operations.NewSession{}), "say hello")
	}
	p := h.signedIn()
	call(p, network.Enable, network.EnableParams{})
	call(p, network.ClearBrowserCache, struct{}{})
	p.visit("/")
	p.until(`document.readyState === "complete"`)
	sizes := int64(p.number(`performance.getEntriesByType("navigation")[0].transferSize + performance.getEntriesByType("resource").reduce((n, e) => n + e.transferSize, 0)`))
	if sizes <= 0 || sizes > 100_000 {
		t.Errorf("the first page takes %d bytes", sizes)
	}
	var best, least float64
	for round := range 6 { // a busy machine may need another try
		var paints []float64
		for range 10 {
			p.visit("/")
			p.until(`performance.getEntriesByName("first-contentful-paint").length`)
			paints = append(paints, p.number(`performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		}
		slices.Sort(paints)
		if middle := paints[len(paints)/2]; round == 0 || middle < best {
			best = middle
		}
		if round == 0 || paints[0] < least {
			least = paints[0]
		}
		if best < 200 {
			break
		}
	}
	t.Logf("first page: %d bytes, first paint after %.0f ms (median of 10 warm loads), %.0f ms at best", sizes, best, least)
	if least > 200*raceFactor { // the best try: the others depend on the machine
		t.Errorf("first paint after %.0f ms", least)
	}
}
