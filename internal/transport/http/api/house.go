package api

import (
	"context"
	_ "embed"
	"net/http"
	"strconv"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

// Status says that a door is open.
type Status struct {
	Status string `json:"status"`
}

//go:embed docs.css
var docsStyle []byte

func (a *API) houseOps() []rest.Operation {
	const tag = "house"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/api/overview", ID: "overview", Tag: tag, Scope: readScope, Summary: "See what is going on"},
			func(ctx context.Context, _ struct{}) (command.Overview, error) {
				return a.service.Overview(ctx, by(ctx))
			}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/models", ID: "models", Tag: tag, Scope: readScope, Summary: "List models that could answer"},
			func(ctx context.Context, _ struct{}) (command.List[command.Model], error) {
				return a.service.Models(ctx, by(ctx))
			}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/settings", ID: "settings", Tag: tag, Scope: readScope, Summary: "List settings and where each comes from"},
			func(ctx context.Context, _ struct{}) (command.List[command.Setting], error) {
				return a.service.Settings(ctx, by(ctx))
			}),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/settings/{key}", ID: "setSetting", Tag: tag, Scope: adminScope, Errors: []int{404, 409},
			Summary: "Change a setting"}, func(ctx context.Context, in struct {
			Key  string `path:"key" maxLen:"200" doc:"the setting's name"`
			Body Value
		}) (command.Setting, error) {
			return a.service.SetSetting(ctx, by(ctx), in.Key, in.Body.Value)
		}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/health", ID: "health", Tag: tag, Scope: readScope, Summary: "See what is missing and how to get it"},
			func(ctx context.Context, _ struct{}) (command.List[command.Check], error) {
				return a.service.Health(ctx, by(ctx))
			}),
	}
}

// doorOps are what is beside the API itself.
func (a *API) doorOps() []rest.Operation {
	const tag = "doors"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/healthz", ID: "healthz", Tag: tag, Summary: "See whether the process lives"},
			func(context.Context, struct{}) (Status, error) { return Status{"ok"}, nil }),
		rest.Op(rest.Route{Method: "GET", Path: "/readyz", ID: "readyz", Tag: tag, Summary: "See whether messages can be taken", Errors: []int{503}},
			func(ctx context.Context, _ struct{}) (Status, error) {
				if a.ready != nil {
					if err := a.ready(ctx); err != nil {
						return Status{}, command.Errorf(command.Unavailable, "no messages can be taken: %w", err)
					}
				}
				return Status{"ok"}, nil
			}),
		rest.Raw(rest.Route{Method: "GET", Path: "/openapi.json", ID: "openapi", Tag: tag, Scope: readScope, Summary: "Fetch this document for machines"},
			"application/json", func(w http.ResponseWriter, r *http.Request, _ struct{}) error {
				return send(w, r, "application/json", a.DocumentJSON)
			}),
		rest.Raw(rest.Route{Method: "GET", Path: "/docs", ID: "docs", Tag: tag, Scope: readScope, Summary: "Read this document"},
			"text/html", func(w http.ResponseWriter, r *http.Request, _ struct{}) error {
				return send(w, r, "text/html; charset=utf-8", a.page)
			}),
		rest.Raw(rest.Route{Method: "GET", Path: "/docs.css", ID: "docsStyle", Tag: tag, Scope: readScope, Summary: "Fetch how it looks"},
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
		_, _ = w.Write(data) // whoever asked may be gone
	}
	return nil
}
