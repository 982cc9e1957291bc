// Package pages serves the web pages of Chorus.
//
// It promises that everything can be read without JavaScript; that text from models, tools and strangers is shown as
// text; that pages show the contents of the journal and store nothing in the browser but the theme, the view of changes
// and, in its tab, the answers of typed commands; and that scripts, styles, fonts and images come from this server only.
//
// A page is a template. A conversation is updated by fragments that are rendered from the same templates (live.go).
package pages

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Options configures the pages.
type Options struct {
	Executor operation.Executor
	Log      *slog.Logger
	Version  string
	// Recheck returns an error if a caller no longer has access; streams call it because they outlive tokens. It may be nil.
	Recheck func(context.Context, operation.Caller) error
	// Stopping is closed when the server shuts down; streams end then.
	Stopping <-chan struct{}
	// Changes sends a value after a run starts or ends or an approval is requested or answered, until the context ends. nil:
	// overviews are not updated.
	Changes func(context.Context) <-chan struct{}
	Now     func() time.Time
	// LoginReturned handles the values that a browser returns from a login to an MCP server, and returns the server's name.
	// nil: there are no such logins.
	LoginReturned func(context.Context, url.Values) (string, error)
	// Shared returns the conversation of a link's token, before a number; 0: its end. nil: there are no links.
	Shared func(ctx context.Context, token string, before int64) (operations.SharedConversation, error)
	// KeepDeleted is for how many days a deleted conversation can be restored.
	KeepDeleted int
}

// Pages is an http.Handler. Use New to create it.
type Pages struct {
	Options
	mux       *http.ServeMux
	templates map[string]func() (*template.Template, error)
	fragments *template.Template
	assets    *assets
	visits    visits // of visitors with a link
}

// New creates the pages.
func New(o Options) (*Pages, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Pages{Options: o, mux: http.NewServeMux()}
	var err error
	if p.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	p.routes()
	return p, nil
}

// parse parses the templates. Every page is a copy of the layout and the fragments with its own "main", made on first
// use: all of them together take eleven megabytes.
func (p *Pages) parse() error {
	base, err := template.New("layout.html").Funcs(p.functions()).ParseFS(templateFiles, "templates/layout.html")
	if err != nil {
		return err
	}
	fragments, err := templateFiles.ReadFile("templates/fragments.html")
	if err != nil {
		return err
	}
	if _, err := base.New("fragments.html").Parse(unindented(string(fragments))); err != nil {
		return err
	}
	if p.fragments, err = base.Clone(); err != nil { // an executed template cannot be copied
		return err
	}
	p.templates = map[string]func() (*template.Template, error){}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return err
	}
	for _, name := range names {
		if base.Lookup(path.Base(name)) != nil {
			continue // the layout and the fragments themselves
		}
		p.templates[path.Base(name)] = sync.OnceValues(func() (*template.Template, error) {
			page, err := base.Clone()
			if err != nil {
				return nil, err
			}
			return page.ParseFS(templateFiles, name)
		})
	}
	return nil
}

// unindented joins the lines of a template with spaces. Fragments are sent again and again, some of them for every piece
// of an answer, and half of their source is indentation.
func unindented(source string) string {
	var out strings.Builder
	for line := range strings.Lines(source) {
		out.WriteString(strings.TrimSpace(line))
		out.WriteByte(' ')
	}
	return out.String()
}

// execute writes a part of a page.
func (p *Pages) execute(out io.Writer, page, part string, data any) error {
	t, err := p.templates[page]()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(out, part, data)
}

func (p *Pages) routes() {
	p.mux.Handle("GET /static/", p.assets)
	p.page("GET /{$}", p.overview)
	p.page("GET /new", p.newSession)
	p.page("POST /new", needs(operation.Chat, form(p.createSession)))
	p.page("GET /s/{id}", p.conversation)
	p.page("POST /s/{id}/say", needs(operation.Chat, form(p.say)))
	p.page("POST /s/{id}/commands", form(p.command))
	p.page("GET /s/{id}/commands", p.complete)
	p.page("GET /new/commands", p.completeFirst)
	p.page("POST /s/{id}/stop", needs(operation.Chat, form(p.stop)))
	p.page("POST /s/{id}/fork", needs(operation.Chat, form(p.fork)))
	p.page("POST /s/{id}/change", needs(operation.Chat, form(p.changeSession)))
	p.page("POST /s/{id}/again", needs(operation.Chat, form(p.again)))
	p.page("GET /approvals/{id}/always", needs(operation.Approve, p.proposal))
	p.page("POST /approvals/{id}", needs(operation.Approve, form(p.answer)))
	p.page("GET /approvals/{id}", func(w http.ResponseWriter, r *http.Request, _ operation.Caller) error { // the page of a submitted form is reloaded
		http.Redirect(w, r, "/approvals#ask-"+url.PathEscape(r.PathValue("id")), http.StatusSeeOther)
		return nil
	})
	p.page("GET /s/{id}/blob/{hash}", p.blob)
	p.page("GET /s/{id}/text/{seq}", p.writtenText)
	p.mux.HandleFunc("GET /s/{id}/live", p.live)
	p.mux.HandleFunc("GET /moves", p.changeEvents)
	p.page("GET /frame", p.frame)
	p.page("GET /s/{id}/delete", p.askDelete)
	p.page("POST /s/{id}/delete", needs(operation.Chat, p.deleteSession))
	p.page("GET /s/{id}/erase", p.askErase)
	p.page("POST /s/{id}/erase", needs(operation.Chat, p.eraseSession))
	p.page("POST /s/{id}/restore", needs(operation.Chat, p.restoreSession))
	p.page("GET /s/{id}/share", p.shares)
	p.page("POST /s/{id}/share", needs(operation.Chat, form(p.changeShare)))
	p.mux.HandleFunc("GET "+sharedPath+"{token}", p.shared)
	p.mux.HandleFunc("GET "+loginPath, p.serverLoginReturned)
	p.moreRoutes()
	p.page("/", func(http.ResponseWriter, *http.Request, operation.Caller) error {
		return operation.Errorf(operation.NotFound, "there is no page at this address")
	})
}

func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Public reports whether a path needs no sign-in.
func Public(path string) bool {
	return path == "/sign-in" || path == loginPath || path == "/sign-out" || strings.HasPrefix(path, "/static/") || strings.HasPrefix(path, sharedPath)
}

// A handler serves a page to a signed-in caller.
type handler func(http.ResponseWriter, *http.Request, operation.Caller) error

// needs restricts a handler to callers with a scope.
func needs(scope operation.Scope, serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
		if !by.May(scope) {
			return operation.Errorf(operation.Forbidden, "your token needs the scope %s", scope)
		}
		return serve(w, r, by)
	}
}

// form parses the form of a request, which may contain files, before its handler runs.
func form(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
		r.Body = http.MaxBytesReader(w, r.Body, maxUploads)
		err := r.ParseForm()
		if err == nil && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
			err = r.ParseMultipartForm(maxForm)
		}
		if err != nil {
			return operation.Errorf(operation.Invalid, "the form is too large or incomplete")
		}
		return serve(w, r, by)
	}
}

// page registers a handler for signed-in callers; its error is shown as a page.
func (p *Pages) page(pattern string, serve handler) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		by, ok := operation.CallerOf(r.Context())
		if !ok {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		if err := serve(w, r, by); err != nil {
			p.fail(w, r, by, err)
		}
	})
}

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	status, ok := map[operation.Kind]int{operation.Invalid: 400, operation.Unsigned: 401, operation.Forbidden: 403, operation.NotFound: 404,
		operation.Conflict: 409, operation.TooLarge: 413, operation.Busy: 429, operation.Unavailable: 503, operation.NoSpace: 507}[operation.KindOf(err)]
	if !ok {
		return http.StatusInternalServerError
	}
	return status
}

// userMessage returns the text of an error that callers may see. Internal errors go to the log.
func (p *Pages) userMessage(err error) string {
	if known, ok := errors.AsType[*operation.Error](err); ok {
		return known.Message
	}
	p.Log.Error("page failed", "component", "web", "error", err)
	return "internal error; the server's log has the details"
}

// failure returns the heading of an error page.
func failure(status int) string {
	switch {
	case status == http.StatusNotFound:
		return "Not found"
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return "Not allowed"
	case status >= http.StatusInternalServerError:
		return "Something went wrong"
	}
	return "That did not work"
}

// fail shows an error: as plain text to our scripts, as a page otherwise.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, by operation.Caller, err error) {
	status, text := statusOf(err), p.userMessage(err)
	if fromScript(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
		return
	}
	frame := p.layout(r, by, failure(status))
	if rerr := p.render(w, status, "problem.html", map[string]any{"Layout": frame, "Text": text, "Status": status}); rerr != nil {
		p.Log.Error("error page failed", "component", "web", "error", rerr)
	}
}

// fromScript reports whether one of our scripts sent the request.
func fromScript(r *http.Request) bool { return r.Header.Get("X-Chorus") != "" }

// layout is the data of layout.html, the frame around every page.
type layout struct {
	Title  string
	Path   string
	Caller operation.Caller
	// MayWrite means that the caller may change conversations.
	MayWrite bool
	Groups   []group // the pinned and the most recent conversations, for the sidebar
	Pending  int     // number of pending approvals
	Version  string
	Plain    bool   // without navigation and sidebar
	Body     string // the class of a plain page; "": plain
	Script   string
	Style    string // in addition to that of all pages
}

// maxListed is how many conversations the sidebar shows.
const maxListed = 30

func (p *Pages) layout(r *http.Request, by operation.Caller, title string) layout {
	f := layout{Title: title, Path: r.URL.Path, Caller: by, MayWrite: by.May(operation.Chat), Version: p.Version}
	pinned, err := operations.ListSessions.Call(r.Context(), p.Executor, by, operations.SessionQuery{Kind: "talk", Listing: "pinned", Limit: maxListed})
	if err == nil {
		list, err := operations.ListSessions.Call(r.Context(), p.Executor, by, operations.SessionQuery{Kind: "talk", Limit: maxListed})
		if err == nil {
			f.Groups = groupSessions(pinned.Items, list.Items, p.Now())
		}
	}
	if list, err := operations.ListApprovals.Call(r.Context(), p.Executor, by, operations.ApprovalQuery{Limit: 100}); err == nil {
		f.Pending = len(list.Items)
	}
	return f
}

// names maps token ids to names, for callers who may see them.
func (p *Pages) names(ctx context.Context, by operation.Caller) map[string]string {
	if !by.May(operation.Admin) {
		return nil
	}
	list, err := operations.ListTokens.Call(ctx, p.Executor, by, operation.None{})
	if err != nil {
		return nil // show ids instead
	}
	out := map[string]string{}
	for _, t := range list.Items {
		out[t.ID] = t.Name
	}
	return out
}

// render writes a page; it writes nothing if the template fails.
func (p *Pages) render(w http.ResponseWriter, status int, name string, data any) error {
	var out bytes.Buffer
	if err := p.execute(&out, name, "layout.html", data); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(out.Bytes())
	return err
}

// fragment renders a fragment.
func (p *Pages) fragment(name string, data any) (string, error) {
	var out bytes.Buffer
	if err := p.fragments.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("fragment %s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// writeFragment answers one of our scripts with a fragment.
func (p *Pages) writeFragment(w http.ResponseWriter, name string, data any) error {
	html, err := p.fragment(name, data)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = io.WriteString(w, html)
	return err
}

// SignIn shows the sign-in form; the guard calls it.
func (p *Pages) SignIn(w http.ResponseWriter, _ *http.Request, status int, problem, next string) {
	data := map[string]any{"Layout": layout{Title: "Sign in", Plain: true, Version: p.Version}, "Problem": problem, "Next": next}
	if err := p.render(w, status, "signin.html", data); err != nil {
		p.Log.Error("sign-in page failed", "component", "web", "error", err)
	}
}
