package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/browser"
	"chorus/docs"
	"chorus/internal/docsite"
	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/usage"
)

// docsAddr uses the port next to the server's.
const docsAddr = "127.0.0.1:8421"

func (c *program) docsCommand() *cobra.Command {
	addr, out, find, noBrowser := docsAddr, "", "", false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "docs [PAGE]", Short: "Read the guides, here or in a browser", Args: between(0, 1),
		Long: `Serves the guides and tutorials of this version in your browser, with a search that works
without JavaScript. With the name of a page it prints that page; --search searches all pages.`,
		Example: `  chorus docs                    open in a browser
  chorus docs models             print a page
  chorus docs --search budget
  chorus docs --json             list the pages
  chorus docs --out site         write them as files, for any web server`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return pageNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			site, err := docsite.Load(docs.Pages)
			switch {
			case err != nil:
				return err
			case len(args) == 1:
				return c.showPage(site, args[0])
			case find != "":
				return c.searchPages(site, find)
			case out != "":
				if err := site.Write(out); err != nil {
					return err
				}
				if c.json {
					return c.printJSON(map[string]any{"dir": out, "pages": len(site.Pages)})
				}
				fmt.Fprintf(c.out(), "wrote %d pages to %s; any web server can serve them\n", len(site.Pages), out)
				return nil
			case c.json:
				list := []page{}
				for _, p := range site.Pages {
					list = append(list, page{Name: p.Name(), Title: p.Title, Summary: p.Summary})
				}
				return c.printJSON(list)
			}
			return c.serveDocs(cmd.Context(), site, addr, noBrowser)
		},
	})
	f := cmd.Flags()
	f.StringVar(&addr, "addr", addr, "where to listen")
	f.StringVar(&out, "out", "", "write the pages into this folder instead")
	f.StringVar(&find, "search", "", "list the sections that hold these words")
	f.BoolVar(&noBrowser, "no-browser", false, "do not open a browser (or set "+browser.Off+"=1)")
	return cmd
}

// page is a page of the guides, or a search result in one, in JSON.
type page struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Section string `json:"section,omitempty"`
	Summary string `json:"summary,omitempty"`
	Excerpt string `json:"excerpt,omitempty"`
	Text    string `json:"text,omitempty"` // Markdown
}

func pageNames() []string {
	site, err := docsite.Load(docs.Pages)
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range site.Pages {
		names = append(names, p.Name())
	}
	return names
}

// showPage prints a page.
func (c *program) showPage(site *docsite.Site, name string) error {
	p := site.Find(name)
	if p == nil {
		return &usage.Error{Err: fmt.Errorf("there is no page %q; choose one of %s", name, strings.Join(pageNames(), ", "))}
	}
	if c.json {
		return c.printJSON(page{Name: p.Name(), Title: p.Title, Text: p.Source})
	}
	if !c.console.OutTTY {
		_, err := fmt.Fprint(c.out(), p.Source)
		return err
	}
	width := 80
	if c.console.Size != nil {
		width, _ = c.console.Size()
	}
	lines, look := markdown.Wrap(p.Source, min(width-1, 110)), c.look()
	if look.Colored() {
		lines = markdown.Render(p.Source, min(width, 110), look)
	}
	for _, line := range lines {
		fmt.Fprintln(c.styled(), line)
	}
	return nil
}

func (c *program) searchPages(site *docsite.Site, words string) error {
	hits, meant := site.Search(words)
	if len(hits) == 0 {
		return fmt.Errorf("nothing found for %q; try fewer or different words", words)
	}
	if c.json {
		list := []page{}
		for _, h := range hits {
			list = append(list, page{Name: h.Page.Name(), Title: h.Page.Title, Section: h.Section.Title, Excerpt: h.Excerpt})
		}
		return c.printJSON(list)
	}
	if meant != "" {
		fmt.Fprintf(c.out(), "nothing found for %q; showing results for %q:\n\n", words, meant)
	}
	for _, h := range hits[:min(len(hits), 12)] {
		fmt.Fprintf(c.out(), "%-22s %s\n", h.Page.Name(), h.Section.Title)
		for _, line := range text.WrapWords(h.Excerpt, c.width()-5, markdown.Width) {
			fmt.Fprintf(c.out(), "    %s\n", line)
		}
	}
	fmt.Fprintln(c.out(), "\nread a page with `chorus docs NAME`")
	return nil
}

// serveDocs serves the site until interrupted.
func (c *program) serveDocs(ctx context.Context, site *docsite.Site, addr string, noBrowser bool) error {
	ctx, stop := twoSignals(ctx, c, "")
	defer stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --addr", err)
	}
	server := &http.Server{Handler: site, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	url := "http://" + listener.Addr().String()
	fmt.Fprintf(c.out(), "the guides are at %s (Ctrl-C stops)\n", url)
	if !noBrowser {
		c.openBrowser(url)
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	err = server.Shutdown(ctx)
	if <-ended; errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
