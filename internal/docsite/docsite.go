// Package docsite renders the documentation as pages: served with a search that works without JavaScript, or written as
// static files with an index that a small script searches. All links are relative, so both look the same.
package docsite

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"chorus/internal/markdown"
)

// Site holds all pages. It does not change after Load.
type Site struct {
	Pages []*Page // in the order of the list
	files fs.FS
}

// Page is one document.
type Page struct {
	Path     string // of its source, such as guides/models.md
	Group    string
	Title    string
	Summary  string // its first sentences, as plain text
	Source   string
	Sections []Section
	html     string
}

// Section is a part of a page that a search can find.
type Section struct {
	ID, Title, Text string
}

// Href is the page's address on the site.
func (p *Page) Href() string { return strings.TrimSuffix(p.Path, ".md") + ".html" }

// Name is the short name for people, such as models.
func (p *Page) Name() string { return strings.TrimSuffix(path.Base(p.Path), ".md") }

// groups are the headings of the list in order, with the pages below them.
var groups = []struct {
	name   string
	belong func(string) bool
}{
	{"Begin", func(p string) bool { return strings.HasPrefix(p, "tutorials/") || p == "comparison.md" }},
	{"Change Chorus itself", func(p string) bool { return strings.HasPrefix(p, "guides/add-") }},
	{"Guides", func(string) bool { return true }},
}

// groupOrder and firstPages are listed first; the rest follows by title.
var (
	groupOrder = []string{"Begin", "Guides"}
	firstPages = []string{"repository", "community", "team", "operator"}
)

func rank(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

func groupOf(p string) string {
	for _, g := range groups {
		if g.belong(p) {
			return g.name
		}
	}
	return ""
}

// Load reads every page of a file system.
func Load(files fs.FS) (*Site, error) {
	s := &Site{files: files}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		s.Pages = append(s.Pages, s.page(name, string(source)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the documentation: %w", err)
	}
	slices.SortStableFunc(s.Pages, func(a, b *Page) int {
		if d := rank(groupOrder, a.Group) - rank(groupOrder, b.Group); d != 0 {
			return d
		}
		if d := rank(firstPages, a.Name()) - rank(firstPages, b.Name()); d != 0 {
			return d
		}
		return strings.Compare(a.Title, b.Title)
	})
	return s, nil
}

func (s *Site) page(name, source string) *Page {
	p := &Page{Path: name, Group: groupOf(name), Source: source}
	var headings []markdown.Heading
	p.html, headings = markdown.Document(source, func(target string) string { return s.resolve(name, target) })
	if len(headings) > 0 {
		p.Title = headings[0].Text
	}
	p.Sections = sections(source, headings)
	if len(p.Sections) > 0 {
		p.Summary = firstSentences(p.Sections[0].Text)
	}
	return p
}

// resolve returns where a link of a page leads on the site, or "" if its target is a file that is not part of it.
func (s *Site) resolve(from, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") || strings.HasPrefix(target, "#") {
		return target
	}
	file, fragment, marked := strings.Cut(target, "#")
	at := path.Join(path.Dir(from), file)
	if _, err := fs.Stat(s.files, at); err != nil || path.Ext(at) != ".md" {
		return ""
	}
	out := up(from) + strings.TrimSuffix(at, ".md") + ".html"
	if marked {
		out += "#" + fragment
	}
	return out
}

// up is the relative path from a page to the root of the site.
func up(from string) string { return strings.Repeat("../", strings.Count(from, "/")) }

// Find returns the page with a name, such as models or guides/models.
func (s *Site) Find(name string) *Page {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".md"), ".html")
	for _, p := range s.Pages {
		if p.Name() == name || strings.TrimSuffix(p.Path, ".md") == name {
			return p
		}
	}
	return nil
}

// sections splits a source at its headings. It ignores headings in code fences.
func sections(source string, headings []markdown.Heading) []Section {
	var out []Section
	fenced := false
	for line := range strings.Lines(source) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced && strings.HasPrefix(line, "#") && len(out) < len(headings) {
			h := headings[len(out)]
			out = append(out, Section{ID: h.ID, Title: h.Text})
			continue
		}
		if len(out) > 0 && strings.Trim(line, "|-: \n") != "" { // not the line below the head of a table
			out[len(out)-1].Text += line
		}
	}
	for i := range out {
		out[i].Text = plain(out[i].Text)
	}
	return out
}

// plain removes Markdown syntax.
func plain(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '`' || c == '*' || c == '[' || c == '|':
		case c == ']' && i+1 < len(text) && text[i+1] == '(':
			if end := strings.IndexByte(text[i:], ')'); end >= 0 {
				i += end
			}
		default:
			out.WriteByte(c)
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

const summaryLength = 180

// firstSentences returns the start of a text, up to the end of a sentence if one is near.
func firstSentences(text string) string {
	if len(text) <= summaryLength {
		return text
	}
	cut := strings.LastIndexAny(text[:summaryLength], ".:;")
	if cut < summaryLength/3 {
		cut = strings.LastIndexByte(text[:summaryLength], ' ')
		return text[:max(cut, 0)] + " …"
	}
	return strings.TrimRight(text[:cut], ".:;") + "."
}
