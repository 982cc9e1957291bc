package docsite

import (
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"chorus/docs"
)

func load(t *testing.T) *Site {
	t.Helper()
	s, err := Load(docs.Pages)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(s *Site, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// Every link of every page leads to a page that is there and, where it names a section, to that section. What is linked outside of the
// site is in the repository.
func TestLinksHold(t *testing.T) {
	t.Parallel()
	s := load(t)
	if len(s.Pages) < 35 {
		t.Fatalf("only %d pages", len(s.Pages))
	}
	links, hrefs := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile(`href="([^"]+)"`)
	checked := 0
	for _, p := range s.Pages {
		for _, m := range links.FindAllStringSubmatch(withoutFences(p.Source), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || target == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join("../../docs", filepath.Dir(p.Path), target)); err != nil {
				t.Errorf("%s links to %s: %v", p.Path, m[1], err)
			}
		}
		page := get(s, "/"+p.Href())
		if page.Code != 200 {
			t.Errorf("%s: %d", p.Href(), page.Code)
		}
		for _, m := range hrefs.FindAllStringSubmatch(page.Body.String(), -1) {
			if strings.Contains(m[1], "://") || strings.HasSuffix(m[1], "docs.css") {
				continue
			}
			checked++
			file, fragment, _ := strings.Cut(m[1], "#")
			to := "/" + p.Href()
			if file != "" {
				to = "/" + filepath.ToSlash(filepath.Join(filepath.Dir(p.Href()), file))
			}
			there := get(s, to)
			if there.Code != 200 {
				t.Errorf("%s: the link %s leads nowhere", p.Href(), m[1])
			}
			if fragment != "" && !strings.Contains(there.Body.String(), ` id="`+fragment+`"`) {
				t.Errorf("%s: %s has no section %s", p.Href(), to, fragment)
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d links were looked at", checked)
	}
}

func withoutFences(source string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(source) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Every page has a title and a summary, and is as safe as its source is strange.
func TestPages(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, p := range s.Pages {
		if p.Title == "" || p.Summary == "" || len(p.Sections) == 0 || p.Sections[0].ID == "" {
			t.Errorf("%s: title %q, summary %q, %d sections", p.Path, p.Title, p.Summary, len(p.Sections))
		}
		if strings.Contains(p.html, "<script") {
			t.Errorf("%s holds a script", p.Path)
		}
	}
	if w := get(s, "/search.html?q=%22%3E%3Cscript%3E"); strings.Contains(w.Body.String(), "<script") {
		t.Error("a search shows what was typed as markup")
	}
	if w := get(s, "/nowhere.html"); w.Code != 404 {
		t.Errorf("a page that is not there: %d", w.Code)
	}
	if w := get(s, "/../../etc/passwd"); w.Code != 404 {
		t.Errorf("outside: %d", w.Code)
	}
}

// The section whose heading has the word comes first, and all words must be there.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := load(t)
	for query, want := range map[string]string{"discord": "guides/discord.md", "backup": "guides/backup.md", "SYSTEMD": "guides/systemd.md", "three machines": "tutorials/operator.md"} {
		hits, _ := s.Search(query)
		if len(hits) == 0 || hits[0].Page.Path != want {
			got := "nothing"
			if len(hits) > 0 {
				got = hits[0].Page.Path
			}
			t.Errorf("%s found %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"", "   ", "discord xyzzyplugh", strings.Repeat("ä", 5000)} {
		if hits, _ := s.Search(query); len(hits) > 0 {
			t.Errorf("%.20q found %s", query, hits[0].Page.Path)
		}
	}
}

// A slip of the fingers and another ending still find what is meant, and the page says so.
func TestSearchOfNearWords(t *testing.T) {
	t.Parallel()
	s := load(t)
	for query, want := range map[string]string{"discrod": "discord", "shedule": "schedule", "Aproval": "approval", "systemdd": "systemd", "scheduling": "schedul", "discord chanels": "discord channels"} {
		hits, meant := s.Search(query)
		if len(hits) == 0 || meant != want {
			t.Errorf("%s: %d hits about %q, want some about %q", query, len(hits), meant, want)
		}
	}
	for _, query := range []string{"discord", "sched", "xyzzyplugh", "botx", "discord xyzzyplugh"} {
		if _, meant := s.Search(query); meant != "" {
			t.Errorf("%s was taken for %s", query, meant)
		}
	}
	if page := get(s, "/search.html?q=shedule").Body.String(); !strings.Contains(page, "No matches for “shedule”. Showing matches for “schedule”:") {
		t.Error("the page does not say what it looked for instead")
	}
	for pair, want := range map[[2]string]bool{{"guide", "guides"}: true, {"giude", "guide"}: true, {"quide", "guide"}: true, {"guide", "guide"}: false, {"gudie", "guides"}: false, {"abcde", "abdcf"}: false} {
		if oneSlip(pair[0], pair[1]) != want || oneSlip(pair[1], pair[0]) != want {
			t.Errorf("%v: one slip is not %v", pair, want)
		}
	}
}

// The site as files has every page, and its index every section.
func TestWrite(t *testing.T) {
	t.Parallel()
	s, dir := load(t), t.TempDir()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "search.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Pages {
		if _, err := fs.Stat(os.DirFS(dir), p.Href()); err != nil {
			t.Error(err)
		}
		for _, section := range p.Sections {
			if !strings.Contains(string(index), `"`+p.Href()+"#"+section.ID+`"`) {
				t.Errorf("the index lacks %s#%s", p.Href(), section.ID)
			}
		}
	}
}
