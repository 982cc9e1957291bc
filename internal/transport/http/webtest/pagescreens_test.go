package webtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// pageScreens is where the pictures of all pages are.
const pageScreens = screensDir + "/pages"

// How alike two pictures must be. Fonts differ between machines: their letters are elsewhere by a few points, and what is compared is coarse enough not to see it.
const (
	cellSize   = 16   // points; a picture is compared by squares of this size
	cellInk    = 24   // how much brightness differs within a square that holds something
	maxMissing = 0.12 // share of the squares with something in one picture that have nothing near them in the other
	maxTone    = 14.0 // difference of the brightness, of 255, on average
)

// Every page looks as it did, in both themes, on a desktop and on a phone. A text that vanished, a shifted layout or an empty page fails; make screens takes the
// pictures anew.
func TestScreensOfPages(t *testing.T) {
	h := newServer(t, "prices:", "  demo/script: {input: 3, output: 15}")
	h.inWindows()
	p := h.signedIn()
	pages := h.pagesWithSomething()
	p.visit("/approvals")
	p.until(`document.querySelector("form.verdict")`) // the agent has asked
	p.visit("/skills")
	pages = append(pages, namedPage{"skill", p.text(`document.querySelector("table.list a").getAttribute("href")`)})
	p.visit("/approvals")
	pages = append(pages, namedPage{"always", p.text(`document.querySelector("a.always").getAttribute("href")`)})
	stranger := h.open()
	for _, page := range pages {
		p := p
		if page.name == "sign-in" || page.name == "shared" {
			p = stranger
		}
		p.desktop()
		p.visit(page.path)
		p.until(`document.readyState === "complete"`)
		if page.name == "doctor" {
			p.until(`document.querySelector(".checks")`)
		}
		p.eval(still)
		for _, dark := range []string{"light", "dark"} {
			p.eval(fmt.Sprintf(`document.documentElement.dataset.theme = %q`, dark))
			for _, width := range []int{1280, 390} {
				if (width == 390) != (dark == "dark") && !*screens && os.Getenv("SCREENS") != "all" {
					continue // half of them fit into every run of the tests
				}
				if width == 390 {
					p.phone()
				} else {
					p.desktop()
				}
				p.until(fmt.Sprintf(`innerWidth === %d`, width))
				if width == 390 {
					p.fits(page.path)
					p.showsCards(page.path)
				}
				p.comparePicture(fmt.Sprintf("%s-%d-%s", page.name, width, dark))
			}
		}
	}
}

// still holds what depends on the time and on the machine: how long ago something was and how long it took, the bars of a timeline, what was found here.
const still = `const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = texts.nextNode()); ) n.data = n.data.replace(/\d+ (second|minute)s? ago/, "just now").replace(/in \d+ (hours|minutes)/, "in 23 hours")
		.replace(/^(\d+(\.\d+)? m?s|no time)$/, "4 ms").replace(/ \d+(\.\d+)? m?s$/, " 4 ms");
	document.querySelector(".small-screen:has(.spans) + p.meta")?.remove();
	document.querySelectorAll(".spans .axis, .spans .break, .spans .tick").forEach((e) => e.remove());
	document.querySelectorAll(".checks tr").forEach((tr, i) => { // what a machine has
		if (i > 12) return tr.remove();
		const [dot, name, detail] = tr.children;
		if (detail) [name.textContent, detail.textContent] = ["check", "it is there"];
	});
	document.querySelectorAll(".spans g").forEach((e, i) => { const r = e.querySelector("rect"); r.setAttribute("x", r.closest(".big-screen") ? 260 : 10); r.setAttribute("width", 80) })`

// namedPage is a page with the name of its pictures.
type namedPage struct{ name, path string }

// pagesWithSomething are all pages, with something on each.
func (h *server) pagesWithSomething() []namedPage {
	h.Helper()
	ops := h.app.Service.Operations()
	must := func(_ any, err error) {
		h.Helper()
		if err != nil {
			h.Fatal(err)
		}
	}
	work := h.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		h.Fatal(err)
	}
	must(operations.EditMemory.Call(h.Context(), ops, h.owner, operations.MemoryEdit{Path: "global", Text: "- the team ships on Fridays"}))
	must(operations.CreateProject.Call(h.Context(), ops, h.owner, operations.NewProject{Name: "Site"}))
	must(operations.PauseProject.Call(h.Context(), ops, h.owner, operations.ProjectRef{ID: "site"})) // its task stays what it is
	task, err := operations.CreateTask.Call(h.Context(), ops, h.owner, operations.NewTask{Project: "site", Title: "Write the page", Description: "All of it"})
	must(task, err)
	must(operations.CreateTask.Call(h.Context(), ops, h.owner, operations.NewTask{Project: "site", Title: "Check the page", Needs: []string{task.ID}}))
	times, err := operations.AddSchedule.Call(h.Context(), ops, h.owner, operations.NewSchedule{When: "0 9 1 1 *", Text: "What is new?"})
	must(times, err)
	hook, err := operations.CreateHook.Call(h.Context(), ops, h.owner, operations.NewHook{Name: "Broken build", Trigger: operation.JSON{Raw: []byte(`"webhook"`)}, Prompt: "What broke? {{step_0}}", Steps: operation.JSON{Raw: []byte(`[{"type":"shell","command":"make test"}]`)}, Approve: true})
	must(hook, err)
	h.file("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships it\n---\nShip.\n")
	talk := h.session(operations.NewSession{Title: "Make the greeting friendlier", WorkspacePath: work, Permissions: "open"})
	h.prompt(talk, "usage in=4200 out=300\nthink first\ncall edit {\"path\":\"greet.txt\",\"old_string\":\"two\",\"new_string\":\"2\"}\nend\nsay # Done\\n\\n| a | b |\\n|---|--:|\\n| `x` | 1 |\\n\\n```go\\nfunc x() {} // it\\n```")
	failed := h.session(operations.NewSession{Title: "Why is the build red?"})
	h.prompt(failed, "fail refused")
	asks := h.session(operations.NewSession{Title: "Clean up", Permissions: "standard"})
	h.requestApprovalIn(asks, "cd src && touch x && rm -rf build")
	shared, err := operations.CreateShare.Call(h.Context(), ops, h.owner, operations.NewShare{ID: talk})
	must(shared, err)
	sent, err := operations.Requests.Call(h.Context(), ops, h.owner, operations.EventRange{ID: talk, Limit: 10})
	if must(sent, err); len(sent.Items) == 0 {
		h.Fatal("nothing was sent")
	}
	return []namedPage{{"overview", "/"}, {"new", "/new"}, {"conversation", "/s/" + talk}, {"failed", "/s/" + failed}, {"approval", "/s/" + asks}, {"run", "/s/" + talk + "/runs/9999"}, {"journal", "/s/" + talk + "/journal"},
		{"approvals", "/approvals"}, {"work", "/work"}, {"projects", "/projects"}, {"project", "/projects/site"}, {"graph", "/projects/site/graph"}, {"workers", "/workers"}, {"agents", "/agents"}, {"agent", "/agents/chorus"},
		{"schedules", "/schedules"}, {"hooks", "/hooks"}, {"hook-new", "/hooks/new"}, {"processes", "/processes"}, {"skills", "/skills"}, {"servers", "/servers"}, {"memory", "/memory"}, {"costs", "/costs"}, {"audit", "/audit"},
		{"settings", "/settings"}, {"search", "/search"}, {"task", "/work/" + task.ID}, {"schedule", "/schedules/" + times.ID}, {"hook", "/hooks/" + hook.ID}, {"permissions", "/permissions"}, {"profile", "/permissions/standard"},
		{"agent-edit", "/agents/chorus/edit"}, {"request", fmt.Sprintf("/s/%s/requests/%d", talk, sent.Items[len(sent.Items)-1].Seq)}, {"doctor", "/doctor"}, {"share", "/s/" + talk + "/share"}, {"shared", shared.Path}, {"delete", "/s/" + talk + "/delete"}, {"sign-in", "/sign-in"}}
}

// settleTime is how long a page may take to look as it did: what comes by its stream may arrive, and scroll it, when everything else is there.
const settleTime = 5 * time.Second

// comparePicture compares what the window shows with the picture of that name, or takes that anew.
func (t *tab) comparePicture(name string) {
	t.Helper()
	file := filepath.Join(pageScreens, name+".png")
	if *screens {
		_, now := t.picture()
		t.keepPicture(file, now)
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v; take it with: make screens", err)
		return
	}
	before, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for deadline := time.Now().Add(settleTime); ; {
		raw, now := t.picture()
		why := pictureDiffers(before, now)
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			kept := filepath.Join(t.ArtifactDir(), name+".png")
			_ = os.WriteFile(kept, raw, 0o600) // to be looked at
			t.Errorf("%s: %s; it looks like %s now. If it should: make screens", name, why, kept)
			return
		}
	}
}

// picture takes a picture of the beginning of a page.
func (t *tab) picture() (raw []byte, now image.Image) {
	t.Helper()
	const frames = `await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));`
	t.eval(`document.activeElement?.blur(); await document.fonts.ready; ` + frames + `scrollTo(0, 0);` + frames) // a conversation goes to its end by itself
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if now, err = png.Decode(bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	return raw, now
}

// keepPicture writes a picture that others are compared with.
func (t *tab) keepPicture(file string, now image.Image) {
	t.Helper()
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduceColours(now)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, out.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// pictureDiffers says how two pictures differ for somebody who looks; "": they do not.
func pictureDiffers(before, now image.Image) string {
	if before.Bounds() != now.Bounds() {
		return fmt.Sprintf("its size was %v and is %v", before.Bounds().Size(), now.Bounds().Size())
	}
	a, b := cellsOf(before), cellsOf(now)
	gone, come, tone, all := missing(a, b), missing(b, a), 0.0, 0.0
	for y := range a {
		for x := range a[y] {
			tone += max(a[y][x].mean-b[y][x].mean, b[y][x].mean-a[y][x].mean)
			all++
		}
	}
	var why []string
	if gone > maxMissing {
		why = append(why, fmt.Sprintf("%.0f %% of what was there is gone or elsewhere", gone*100))
	}
	if come > maxMissing {
		why = append(why, fmt.Sprintf("%.0f %% of what is there was not, or was elsewhere", come*100))
	}
	if tone/all > maxTone {
		why = append(why, fmt.Sprintf("its brightness differs by %.0f of 255", tone/all))
	}
	return strings.Join(why, ", ")
}

// pictureCell is a square of a picture.
type pictureCell struct {
	mean float64
	ink  bool // there is something in it
}

func cellsOf(img image.Image) [][]pictureCell {
	b := img.Bounds()
	var out [][]pictureCell
	for y := b.Min.Y; y < b.Max.Y; y += cellSize {
		var row []pictureCell
		for x := b.Min.X; x < b.Max.X; x += cellSize {
			low, high, sum, n := 255.0, 0.0, 0.0, 0.0
			for dy := 0; dy < cellSize && y+dy < b.Max.Y; dy += 2 { // every second point is enough
				for dx := 0; dx < cellSize && x+dx < b.Max.X; dx += 2 {
					r, g, bl, _ := img.At(x+dx, y+dy).RGBA()
					v := (0.3*float64(r) + 0.59*float64(g) + 0.11*float64(bl)) / 257
					low, high, sum, n = min(low, v), max(high, v), sum+v, n+1
				}
			}
			row = append(row, pictureCell{sum / n, high-low > cellInk})
		}
		out = append(out, row)
	}
	return out
}

// missing is the share of the squares of a picture that hold something and have nothing near them in another one.
func missing(of, in [][]pictureCell) float64 {
	filled, lost := 0, 0
	for y := range of {
		for x := range of[y] {
			if !of[y][x].ink {
				continue
			}
			filled++
			if !inkNear(in, x, y) {
				lost++
			}
		}
	}
	return float64(lost) / float64(max(filled, 1))
}

func inkNear(in [][]pictureCell, x, y int) bool {
	for ny := max(y-1, 0); ny <= min(y+1, len(in)-1); ny++ {
		for nx := max(x-1, 0); nx <= min(x+1, len(in[ny])-1); nx++ {
			if in[ny][nx].ink {
				return true
			}
		}
	}
	return false
}

// The comparison sees what people would, and no more: a page that turned white, text that vanished and a layout that moved, but not letters that are a little elsewhere.
func TestComparisonOfPictures(t *testing.T) {
	h := newServer(t)
	p := h.signedIn()
	p.desktop()
	p.visit("/settings")
	picture := func(change string) image.Image {
		t.Helper()
		p.visit("/settings")
		p.eval(change + `; await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
		ctx, cancel := context.WithTimeout(p.ctx, timeout)
		defer cancel()
		raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	style := func(css string) string {
		return fmt.Sprintf(`const s = new CSSStyleSheet(); s.replaceSync(%q); document.adoptedStyleSheets = [s]`, css)
	}
	whole := picture("")
	for name, c := range map[string]struct {
		change string
		same   bool
	}{
		"nothing":         {"", true},
		"another font":    {style(`body { font-family: "DejaVu Serif", serif !important; }`), true},
		"a little larger": {style(`body { font-size: 15.3px !important; }`), true},
		"white":           {`document.body.hidden = true`, false},
		"no text":         {style(`main * { color: transparent !important; fill: transparent !important; }`), false},
		"moved":           {style(`main { translate: 0 90px; }`), false},
		"no style":        {`document.querySelectorAll("link[rel=stylesheet]").forEach((e) => e.remove())`, false},
		"the other theme": {`document.documentElement.dataset.theme = "dark"`, false},
	} {
		if why := pictureDiffers(whole, picture(c.change)); (why == "") != c.same {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// maxFirstPage is how much a browser loads for the first page, and maxFirstPaint how soon a page shows something, on this machine.
const (
	maxFirstPage  = 150 << 10
	maxFirstPaint = 300 * raceFactor // ms
)

// The first page is light: what a browser that has nothing yet loads for it, as it is sent. It, the list of conversations and a long conversation show something
// soon.
func TestWeightOfTheFirstPage(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	for i := range 40 { // more than the list beside it shows
		h.session(operations.NewSession{Title: fmt.Sprintf("A conversation with a title of some length, number %d", i)})
	}
	long := h.session(operations.NewSession{Title: "A long one"})
	for range 8 {
		h.prompt(long, strings.Repeat("say ## A heading\\n\\nSome **words** about `code` and more of them.\\n\\n```go\\nfunc main() { println(1) }\\n```\\n\\n\n", 12))
	}
	p := h.signedIn()
	p.eval(`await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
	sent := p.number(`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((n, e) => n + e.transferSize, 0)`)
	files := p.text(`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].map((e) => new URL(e.name).pathname + " " + e.transferSize).join(", ")`)
	if sent > maxFirstPage || sent < 2000 {
		t.Errorf("the first page is %.0f bytes: %s", sent, files)
	}
	for _, path := range []string{"/", "/search", "/s/" + long} {
		if best := p.firstPaint(path); best > maxFirstPaint {
			t.Errorf("%s shows something after %.0f ms", path, best)
		} else {
			t.Logf("%s shows something after %.0f ms", path, best)
		}
	}
	t.Logf("%.0f bytes: %s", sent, files)
}

// firstPaint is how soon a page shows something: the best of three, and of some more while the machine does other things.
func (t *tab) firstPaint(path string) float64 {
	t.Helper()
	best := math.Inf(1)
	for look := 0; look < 3 || look < 20 && best > maxFirstPaint; look++ {
		t.visit(path)
		t.until(`performance.getEntriesByName("first-contentful-paint").length`)
		best = min(best, t.number(`performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	}
	return best
}
