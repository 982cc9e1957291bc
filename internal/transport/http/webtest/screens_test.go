package webtest

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"chorus/internal/operations"
)

var screens = flag.Bool("screens", false, "take the pictures under testdata/screens anew")

// screensDir is where the screenshots are.
const screensDir = "../../../../testdata/screens"

// TestScreens takes the screenshots of the pages. It checks nothing: people look at them.
func TestScreens(t *testing.T) {
	if !*screens {
		t.Skip("the pictures are taken by: make screens")
	}
	h := newServer(t, "prices:", "  demo/script: {input: 3, output: 15}")
	h.inWindows()
	p := h.open()
	p.desktop()
	p.visit("/sign-in")
	p.screenshot("sign-in")
	p.visit(h.signIn[len(h.url):])
	p.waitForText("none is running on this machine")
	p.screenshot("welcome")
	h.prompt(h.session(operations.NewSession{Title: "What changed since the last release?"}), "usage in=52000 out=1800\nsay Three things.")
	h.prompt(h.session(operations.NewSession{Title: "Why is the build red?"}), "usage in=8200 out=900\nfail bad_request")
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "main.go"), []byte("package main\n\nfunc main() {\n\tprintln(\"hi\")\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := h.session(operations.NewSession{Title: "Make the greeting friendlier", WorkspacePath: work, Permissions: "open"})
	h.prompt(id, greeting)
	asking := h.session(operations.NewSession{Title: "Add a test for the greeting", WorkspacePath: work})
	p.visit("/s/" + asking)
	p.say(asks)
	p.until(`document.querySelector("form.verdict")`)
	p.eval(`document.querySelectorAll(".said.user .text").forEach((e) => (e.textContent = "Add a test for the greeting."));
		document.querySelector(".head .meta [title]").textContent = "~/src/greeter"`)
	p.screenshot("approval")
	p.phone()
	p.until(`innerWidth === 390`)
	p.eval(`scrollTo(0, document.documentElement.scrollHeight)`)
	p.screenshot("approval-phone")
	p.desktop()
	p.visit("/s/" + id)
	p.eval(`document.querySelectorAll(".said.user .text").forEach((e) => (e.textContent = "Make the greeting friendlier, and say what you did."));
		document.querySelector(".head .meta [title]").textContent = "~/src/greeter"; scrollTo(0, 0)`)
	p.screenshot("conversation")
	p.eval(`document.documentElement.dataset.theme = "dark"; scrollTo(0, 0)`)
	p.screenshot("conversation-dark")
	p.phone()
	p.until(`innerWidth === 390`)
	p.eval(`scrollTo(0, 0)`)
	p.screenshot("conversation-phone-dark")
	p.desktop()
	for _, page := range []struct{ path, name string }{{"/", "overview"}, {"/costs", "costs"}, {"/s/" + id + "/journal", "journal"}, {"/audit", "audit"},
		{"/settings", "settings"}, {"/agents/chorus", "agent"}} {
		p.visit(page.path)
		p.screenshot(page.name)
	}
	p.visit("/s/" + id + "/journal")
	p.eval(`[...document.querySelectorAll(".timeline a")].at(-1).click()`)
	p.until(`document.querySelector(".fragment")`)
	p.screenshot("request")
	p.visit("/")
	p.phone()
	p.until(`innerWidth === 390`)
	p.screenshot("overview-phone")
}

// TestDemoScreens takes the picture of the README from the running demo of bin/chorus: two workers on tasks that needed the same one.
func TestDemoScreens(t *testing.T) {
	if !*screens {
		t.Skip("the pictures are taken by: make screens")
	}
	const root = "../../../.."
	bin, err := filepath.Abs(root + "/bin/chorus")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", root+"/docs/demo-work.sh")
	cmd.Env = append(os.Environ(), "CHORUS="+bin, "PAUSE=1", "SLOW=600ms", "TMPDIR="+t.TempDir())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its server
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it was interrupted
	h := &server{T: t, browser: &windowed}
	lines := bufio.NewScanner(out)
	for h.signIn == "" && lines.Scan() {
		if before, _, ok := strings.Cut(lines.Text(), "/sign-in?"); ok {
			h.url, h.signIn = before, lines.Text()
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // or it would stand still
	p := h.open()
	p.desktop()
	p.visit(h.signIn[len(h.url):])
	p.visit("/work")
	p.until(`document.querySelectorAll("[data-column=progress] .tag.in_progress").length === 2`)
	p.visit("/work?project=demo-site")
	p.screenshot("work")
	p.visit("/projects/demo-site/graph")
	p.until(`document.querySelectorAll(".big-screen .graph .node").length === 4`)
	p.screenshot("work-graph")
	p.visit("/work")
	p.until(`document.querySelector("[data-column=asking] .tag.awaiting_approval")`)
	p.click("[data-column=asking] .card h3 a")
	p.until(`document.querySelector(".difftable")`)
	p.screenshot("work-task")
}

const greeting = `usage in=4200 out=300
think The greeting is in main.go.
say I will look at the file first.
call bash {"command":"cat main.go"}
end
usage in=4600 out=500 read=4100
say The program now greets by name:\n
say ` + "```go" + `
say func greet(name string) string {\n    if name == "" {\n        name = "friend" // no name given\n    }\n    return "Good to see you, " + name + "!"\n}
say ` + "```" + `\n
say What I changed:\n
say | File | Change |
say |---|---|
say | main.go | a function ` + "`greet`" + ` |
say | main_test.go | two cases |\n
say - All tests pass.
say - Nothing else was **touched**.`

const asks = "say The tests need one more file. I would like to write it:\ncall bash {\"command\":\"touch main_test.go && go test ./...\"}\nend\nsay done"

// desktop emulates the screen of a desktop.
func (t *tab) desktop() {
	t.Helper()
	t.do(chromedp.EmulateViewport(1280, 800))
}

// screenshot stores what the window shows, with few colours so that the file stays small.
func (t *tab) screenshot(name string) {
	t.Helper()
	t.eval(`document.activeElement?.blur(); await document.fonts.ready; await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduceColours(img)); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 100_000 {
		t.Errorf("%s takes %d bytes", name, out.Len())
	}
	if err := os.MkdirAll(screensDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(screensDir, name+".png"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reduceColours keeps the 256 most frequent colours of an image.
func reduceColours(img image.Image) image.Image {
	seen := map[color.RGBA]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			seen[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	all := make([]color.RGBA, 0, len(seen))
	for c := range seen {
		all = append(all, c)
	}
	sort.Slice(all, func(i, j int) bool {
		if seen[all[i]] != seen[all[j]] {
			return seen[all[i]] > seen[all[j]]
		}
		a, b := all[i], all[j]
		return uint32(a.R)<<16|uint32(a.G)<<8|uint32(a.B) < uint32(b.R)<<16|uint32(b.G)<<8|uint32(b.B)
	})
	palette := color.Palette{}
	for _, c := range all[:min(256, len(all))] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(b, palette)
	draw.Draw(out, b, img, b.Min, draw.Src)
	return out
}
