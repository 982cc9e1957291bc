// Package pages is the web page of Chorus: what people look at and click.
//
// It promises that everything can be read without JavaScript, that nothing a model, a
// tool or a stranger wrote becomes anything but text, that a page shows what the journal
// holds and never asks a browser to remember it, and that no script, style, font or
// picture comes from anywhere but here.
//
// A page is a template; what moves on it arrives as fragments made by the same
// templates (live.go). It knows the house by command.Service alone.
package pages

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/command"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Options are what the pages are made of.
type Options struct {
	Service command.Service
	Log     *slog.Logger
	Version string
	// Still says why a reader who was let in would not be now: streams outlive tokens. May be nil.
	Still func(context.Context, command.Caller) error
	// Stopping is closed when the server goes down: streams end then.
	Stopping <-chan struct{}
	// Stirs has a value when something began, ended, waits or was answered, until the context ends. nil: nobody tells.
	Stirs func(context.Context) <-chan struct{}
	Now   func() time.Time
}

// Pages serves them. Make it with New.
type Pages struct {
	Options
	mux    *http.ServeMux
	looks  map[string]*template.Template
	pieces *template.Template
	static *statics
}

// New makes the pages.
func New(o Options) (*Pages, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Pages{Options: o, mux: http.NewServeMux()}
	var err error
	if p.static, err = loadStatics(); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	p.routes()
	return p, nil
}

// parse reads the templates. Every page is a copy of the layout and the fragments with its own "main".
func (p *Pages) parse() error {
	base, err := template.New("layout.html").Funcs(p.functions()).ParseFS(templateFiles, "templates/layout.html", "templates/pieces.html")
	if err != nil {
		return err
	}
	p.pieces, p.looks = base, map[string]*template.Template{}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return err
	}
	for _, name := range names {
		if base.Lookup(path.Base(name)) != nil {
			continue // the layout and the fragments themselves
		}
		page, err := base.Clone()
		if err != nil {
			return err
		}
		if p.looks[path.Base(name)], err = page.ParseFS(templateFiles, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pages) routes() {
	p.mux.Handle("GET /static/", p.static)
	p.page("GET /{$}", p.overview)
	p.page("GET /new", p.newSession)
	p.page("POST /new", p.createSession)
	p.page("GET /s/{id}", p.conversation)
	p.page("POST /s/{id}/say", p.say)
	p.page("POST /s/{id}/stop", p.stop)
	p.page("POST /s/{id}/fork", p.fork)
	p.page("POST /approvals/{id}", p.answer)
	p.page("GET /s/{id}/blob/{hash}", p.blob)
	p.mux.HandleFunc("GET /s/{id}/live", p.live)
	p.mux.HandleFunc("GET /moves", p.moves)
	p.more()
	p.page("/", func(http.ResponseWriter, *http.Request, command.Caller) error {
		return command.Errorf(command.NotFound, "page not found")
	})
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Open reports whether a path is for everybody.
func Open(path string) bool {
	return path == "/sign-in" || path == "/sign-out" || len(path) > 8 && path[:8] == "/static/"
}

// page serves one page; an error becomes a page of its own.
func (p *Pages) page(pattern string, serve func(http.ResponseWriter, *http.Request, command.Caller) error) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		by, ok := command.CallerOf(r.Context())
		if !ok {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		if err := serve(w, r, by); err != nil {
			p.fail(w, r, by, err)
		}
	})
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	status, ok := map[command.Kind]int{command.Invalid: 400, command.Unsigned: 401, command.Forbidden: 403, command.NotFound: 404,
		command.Conflict: 409, command.TooLarge: 413, command.Busy: 429, command.Unavailable: 503}[command.KindOf(err)]
	if !ok {
		return http.StatusInternalServerError
	}
	return status
}

// sentence is what people are told of an error; what is ours to mend goes to the log.
func (p *Pages) sentence(err error) string {
	var known *command.Error
	if errors.As(err, &known) {
		return known.Message
	}
	p.Log.Error("a page failed", "component", "web", "error", err)
	return "internal error; the server's log has the details"
}

// fail shows an error: to a script as a sentence, to people as a page.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, by command.Caller, err error) {
	status, text := statusOf(err), p.sentence(err)
	if fromScript(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
		return
	}
	frame := p.frame(r, by, http.StatusText(status))
	if rerr := p.render(w, status, "problem.html", map[string]any{"Frame": frame, "Text": text, "Status": status}); rerr != nil {
		p.Log.Error("the page for an error failed", "component", "web", "error", rerr)
	}
}

// fromScript reports whether one of our modules sent the request.
func fromScript(r *http.Request) bool { return r.Header.Get("X-Chorus") != "" }

// frame is what stands around every page.
type frame struct {
	Title    string
	Path     string
	Caller   command.Caller
	Sessions []command.Session // the latest, for the side
	Waiting  int               // questions that wait
	Version  string
	Plain    bool // nothing stands around it
	Script   string
}

// manyAtTheSide is how many conversations the side shows.
const manyAtTheSide = 30

func (p *Pages) frame(r *http.Request, by command.Caller, title string) frame {
	f := frame{Title: title, Path: r.URL.Path, Caller: by, Version: p.Version}
	if list, err := p.Service.ListSessions(r.Context(), by, command.SessionQuery{Limit: manyAtTheSide}); err == nil {
		f.Sessions = list.Items
	}
	if list, err := p.Service.Approvals(r.Context(), by, command.ApprovalQuery{Limit: 100}); err == nil {
		f.Waiting = len(list.Items)
	}
	return f
}

// names are what tokens are called, for whoever may know.
func (p *Pages) names(ctx context.Context, by command.Caller) map[string]string {
	if !by.May(command.Admin) {
		return nil
	}
	list, err := p.Service.ListTokens(ctx, by)
	if err != nil {
		return nil // they are shown by their numbers
	}
	out := map[string]string{}
	for _, t := range list.Items {
		out[t.ID] = t.Name
	}
	return out
}

// render writes a whole page, or nothing at all when its template fails.
func (p *Pages) render(w http.ResponseWriter, status int, name string, data any) error {
	var out bytes.Buffer
	if err := p.looks[name].ExecuteTemplate(&out, "layout.html", data); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(out.Bytes())
	return err
}

// piece renders a fragment.
func (p *Pages) piece(name string, data any) (string, error) {
	var out bytes.Buffer
	if err := p.pieces.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("fragment %s: %w", name, err)
	}
	return out.String(), nil
}

// SignIn shows the way in; the guard calls it.
func (p *Pages) SignIn(w http.ResponseWriter, _ *http.Request, status int, problem, next string) {
	data := map[string]any{"Frame": frame{Title: "Sign in", Plain: true, Version: p.Version}, "Problem": problem, "Next": next}
	if err := p.render(w, status, "signin.html", data); err != nil {
		p.Log.Error("the sign-in page failed", "component", "web", "error", err)
	}
}
