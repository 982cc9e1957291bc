package api

import (
	"context"
	_ "embed"
	"net/http"
	"strconv"

	"chorus/internal/operation"
	"chorus/internal/transport/http/rest"
)

// Status says that the server responds.
type Status struct {
	Status string `json:"status"`
}

//go:embed docs.css
var docsStyle []byte

// serverOps are the routes that belong to no operation.
func (a *API) serverOps() []rest.Operation {
	const tag = "server"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/healthz", ID: "healthz", Tag: tag, Summary: "Check that the process is alive"},
			func(context.Context, struct{}) (Status, error) { return Status{"ok"}, nil }),
		rest.Op(rest.Route{Method: "GET", Path: "/readyz", ID: "readyz", Tag: tag, Summary: "Check that messages can be accepted", Errors: []int{503, 507}},
			func(ctx context.Context, _ struct{}) (Status, error) {
				if a.ready != nil {
					if err := a.ready(ctx); err != nil {
						kind := operation.Unavailable
						if operation.KindOf(err) == operation.NoSpace {
							kind = operation.NoSpace
						}
						return Status{}, operation.Errorf(kind, "no messages can be accepted: %w", err)
					}
				}
				return Status{"ok"}, nil
			}),
		rest.Raw(rest.Route{Method: "GET", Path: "/openapi.json", ID: "openapi", Tag: tag, Scope: string(operation.Read), Summary: "Get this document as JSON"},
			"application/json", func(w http.ResponseWriter, r *http.Request, _ struct{}) error {
				return send(w, r, "application/json", a.DocumentJSON)
			}),
		rest.Raw(rest.Route{Method: "GET", Path: "/docs", ID: "docs", Tag: tag, Scope: string(operation.Read), Summary: "Read this document"},
			"text/html", func(w http.ResponseWriter, r *http.Request, _ struct{}) error {
				return send(w, r, "text/html; charset=utf-8", a.page)
			}),
		rest.Raw(rest.Route{Method: "GET", Path: "/docs.css", ID: "docsStyle", Tag: tag, Scope: string(operation.Read), Summary: "Get the style sheet of the document"},
			"text/css", func(w http.ResponseWriter, r *http.Request, _ struct{}) error {
				return send(w, r, "text/css; charset=utf-8", func() ([]byte, error) { return docsStyle, nil })
			}),
	}
}

func send(w http.ResponseWriter, r *http.Request, media string, get func() ([]byte, error)) error {
	data, err := get()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // the client may be gone
	}
	return nil
}
