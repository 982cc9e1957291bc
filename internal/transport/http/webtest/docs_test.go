package webtest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chorus/docs"
	"chorus/internal/docsite"
)

// The guides as files, behind any web server, are searched by a script. What it shows of a section begins and ends with whole words.
func TestGuidesAsFilesAreSearched(t *testing.T) {
	t.Parallel()
	site, err := docsite.Load(docs.Pages)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := site.Write(dir); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/favicon.ico" { // browsers ask for it, and would complain
			w.WriteHeader(http.StatusNoContent)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p := (&server{T: t, url: s.URL}).open()
	p.visit("/search.html?q=budget")
	p.until(`document.querySelectorAll("#results li").length > 3`)
	shown := strings.Split(p.text(`[...document.querySelectorAll("#results p")].map((e) => e.textContent).join("\n")`), "\n")
	for _, excerpt := range shown {
		words := " " + strings.TrimSuffix(strings.TrimPrefix(excerpt, "… "), " …") + " "
		if !slices.ContainsFunc(site.Pages, func(page *docsite.Page) bool {
			return slices.ContainsFunc(page.Sections, func(section docsite.Section) bool { return strings.Contains(" "+section.Text+" ", words) })
		}) {
			t.Errorf("a word is cut in %q", excerpt)
		}
	}
	// What is misspelt or has another ending is found by the same rule as on a server.
	for _, query := range []string{"shedule", "scheduling", "discrod", "xyzzyplugh"} {
		want := "Try fewer or different words."
		if _, meant := site.Search(query); meant != "" {
			want = "Showing matches for “" + meant + "”:"
		}
		p.visit("/search.html?q=" + query)
		p.until(`document.getElementById("results").textContent.includes(` + strconv.Quote(want) + `)`)
	}
	p.visit("/search.html?q=budget")
	p.phone()
	p.until(`innerWidth < 1280`)
	p.fits("what was found")
	// A name in a table stays whole, and the page stays as wide as the phone.
	p.visit("/guides/models.html")
	p.until(`document.querySelectorAll("td code").length > 10`)
	if broken := p.text(`[...document.querySelectorAll("td code")].filter((e) => !/\s/.test(e.textContent) && e.getClientRects().length > 1).map((e) => e.textContent).join()`); broken != "" {
		t.Errorf("broken in the middle: %s", broken)
	}
	p.fits("a guide with tables")
	// A row of many columns is a list of what is in them.
	p.visit("/comparison.html")
	p.until(`document.querySelectorAll(".table.wide td").length > 10`)
	if beside := p.text(`[...document.querySelectorAll(".table.wide td:not(:first-child)")].filter((e) => e.offsetTop <= e.previousElementSibling.offsetTop).map((e) => e.textContent).join()`); beside != "" {
		t.Errorf("beside each other: %s", beside)
	}
	if label := p.text(`getComputedStyle(document.querySelector(".table.wide td:nth-child(2)"), "::before").content`); !strings.Contains(label, "Chorus") {
		t.Errorf("a cell is labelled %s", label)
	}
	p.fits("a table with many columns")
	p.look("comparison-390")
}
