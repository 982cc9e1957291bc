package docsite

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

//go:embed static/docs.css static/search.js
var assets embed.FS

// frame renders a whole page. root is the relative path to the root of the site.
func (s *Site) frame(root, title, query, main, current string, script bool) string {
	var b strings.Builder
	write := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
	}
	write("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
		html.EscapeString(title), " · Chorus</title>\n<link rel=\"stylesheet\" href=\"", root, "docs.css\">\n")
	if script {
		write("<script type=\"module\" src=\"", root, "search.js\"></script>\n")
	}
	write("</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n<header><a class=\"brand\" href=\"", root, "index.html\">Chorus</a>",
		"<form role=\"search\" action=\"", root, "search.html\"><input type=\"search\" name=\"q\" value=\"", html.EscapeString(query), "\" placeholder=\"Search the guides\" aria-label=\"Search the guides\"></form></header>\n",
		"<div class=\"body\">\n<nav aria-label=\"All pages\">\n")
	group := ""
	for _, p := range s.Pages {
		if p.Group != group {
			if group != "" {
				write("</ul>\n")
			}
			group = p.Group
			write("<h2>", html.EscapeString(group), "</h2>\n<ul>")
		}
		mark := ""
		if p.Path == current {
			mark = ` aria-current="page"`
		}
		write("<li><a href=\"", root, p.Href(), "\"", mark, ">", html.EscapeString(p.Title), "</a></li>\n")
	}
	write("</ul>\n</nav>\n<main id=\"main\">\n", main, "</main>\n</div>\n</body>\n</html>\n")
	return b.String()
}

// index is the start page.
func (s *Site) index() string {
	var b strings.Builder
	b.WriteString("<h1>Chorus</h1>\n<p class=\"lead\">One program that puts AI agents where people talk and lets them do real work that you can trust. New here? Start with the tutorial that fits you.</p>\n")
	group := ""
	for _, p := range s.Pages {
		if p.Group != group {
			if group != "" {
				b.WriteString("</dl>\n")
			}
			group = p.Group
			fmt.Fprintf(&b, "<h2>%s</h2>\n<dl>", html.EscapeString(group))
		}
		fmt.Fprintf(&b, "<dt><a href=\"%s\">%s</a></dt><dd>%s</dd>\n", p.Href(), html.EscapeString(p.Title), html.EscapeString(p.Summary))
	}
	b.WriteString("</dl>\n")
	return b.String()
}

// results renders the page of a search.
func (s *Site) results(query string) string {
	var b strings.Builder
	b.WriteString("<h1>Search</h1>\n<div id=\"results\">")
	hits, meant := s.Search(query)
	switch {
	case strings.TrimSpace(query) == "":
		b.WriteString("<p>Enter a word above.</p>")
	case len(hits) == 0:
		fmt.Fprintf(&b, "<p>No matches for “%s”. Try fewer or different words.</p>", html.EscapeString(query))
	default:
		if meant != "" {
			fmt.Fprintf(&b, "<p>No matches for “%s”. Showing matches for “%s”:</p>", html.EscapeString(query), html.EscapeString(meant))
		}
		b.WriteString("<ol>")
		for _, h := range hits {
			b.WriteString(h.html())
		}
		b.WriteString("</ol>")
	}
	b.WriteString("</div>\n")
	return b.String()
}

func (h Hit) html() string {
	where := h.Page.Title
	if h.Section.Title != h.Page.Title {
		where += " › " + h.Section.Title
	}
	return fmt.Sprintf("<li><a href=\"%s#%s\">%s</a><p>%s</p></li>\n", h.Page.Href(), html.EscapeString(h.Section.ID), html.EscapeString(where), html.EscapeString(h.Excerpt))
}

// ServeHTTP serves the site.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only pages can be read here", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/html; charset=utf-8")
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch name {
	case "", "index.html":
		fmt.Fprint(w, s.frame("", "Guides", "", s.index(), "", false))
	case "search.html":
		query := r.URL.Query().Get("q")
		fmt.Fprint(w, s.frame("", "Search", query, s.results(query), "", false))
	case "docs.css":
		h.Set("Content-Type", "text/css; charset=utf-8")
		data, _ := assets.ReadFile("static/docs.css") // the file is embedded
		_, _ = w.Write(data)
	default:
		for _, p := range s.Pages {
			if p.Href() == name {
				fmt.Fprint(w, s.frame(up(p.Path), p.Title, "", p.html, p.Path, false))
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, s.frame(up(name), "Not found", "", "<h1>Page not found</h1><p>Search for it above, or look in the list.</p>", "", false))
	}
}

// found is an entry of the index that search.js reads.
type found struct {
	Href    string `json:"href"`
	Page    string `json:"page"`
	Section string `json:"section"`
	Text    string `json:"text"`
}

// Write writes the site as files below dir, which it creates. It overwrites earlier output and touches nothing else.
func (s *Site) Write(dir string) error {
	files := map[string]string{
		"index.html":  s.frame("", "Guides", "", s.index(), "", true),
		"search.html": s.frame("", "Search", "", s.results(""), "", true),
	}
	index := []found{}
	for _, p := range s.Pages {
		files[p.Href()] = s.frame(up(p.Path), p.Title, "", p.html, p.Path, false)
		for _, section := range p.Sections {
			index = append(index, found{p.Href() + "#" + section.ID, p.Title, section.Title, section.Text})
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	files["search.json"] = string(data)
	for _, name := range []string{"docs.css", "search.js"} {
		data, err := assets.ReadFile("static/" + name)
		if err != nil {
			return err
		}
		files[name] = string(data)
	}
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
	}
	return nil
}
