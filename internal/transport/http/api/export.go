package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

// ReplayLine is one line of a replay: a request, or the end.
type ReplayLine struct {
	Request *command.Replayed `json:"request,omitempty" doc:"a request, rebuilt"`
	End     *ReplayEnd        `json:"end,omitempty" doc:"in the last line, and there alone"`
}

// ReplayEnd says how a replay ended.
type ReplayEnd struct {
	Requests int          `json:"requests" doc:"how many were rebuilt"`
	Differ   int          `json:"differ" doc:"how many of them are not what was sent"`
	Error    string       `json:"error,omitempty" doc:"why it could not go on"`
	Kind     command.Kind `json:"kind,omitempty" doc:"the kind of that problem"`
}

const (
	markdownMedia = "text/markdown"
	linesMedia    = "application/x-ndjson"
)

func (a *API) exportOps() []rest.Operation {
	const tag = "history"
	missing := []int{404}
	return []rest.Operation{
		rest.Raw(rest.Route{Method: "GET", Path: "/api/sessions/{id}/export", ID: "export", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Take a whole session along, without secrets",
			Doc:     "As Markdown for people, with the server's time of day, or as JSON lines, an event of the journal each. An answer that is cut is not whole."},
			markdownMedia+","+linesMedia, a.export),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/sessions/{id}/replay", ID: "replay", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Rebuild every request from the journal and compare it with what was sent",
			Doc:     "A line of JSON for each request as soon as it is rebuilt, and a last one that says how it ended."},
			linesMedia, a.replay).Of(reflect.TypeFor[ReplayLine]()),
	}
}

// export writes a session while it is read from the journal.
func (a *API) export(w http.ResponseWriter, r *http.Request, in struct {
	ID     string `path:"id" maxLen:"1024" doc:"the session's id"`
	Format string `query:"format" enum:"markdown,jsonl" doc:"left out: markdown"`
}) error {
	as, media, suffix := command.Markdown, markdownMedia, ".md"
	if in.Format == string(command.JSONLines) {
		as, media, suffix = command.JSONLines, linesMedia, ".jsonl"
	}
	return a.written(w, r, in.ID, func(h http.Header) {
		h.Set("Content-Type", media+"; charset=utf-8")
		// It holds what others wrote: no browser may take it for a page.
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": in.ID + suffix}))
	}, func(out io.Writer) error {
		return a.service.Export(r.Context(), by(r.Context()), in.ID, as, out)
	})
}

// replay tells of each request as soon as it is rebuilt.
func (a *API) replay(w http.ResponseWriter, r *http.Request, in oneSession) error {
	return a.written(w, r, in.ID, func(h http.Header) {
		h.Set("Content-Type", linesMedia)
		h.Set("X-Accel-Buffering", "no") // or a proxy collects what should be seen at once
	}, func(out io.Writer) error {
		lines, end := json.NewEncoder(out), ReplayEnd{}
		lines.SetEscapeHTML(false)
		for one, err := range a.service.Replay(r.Context(), by(r.Context()), in.ID) {
			var ours *command.Error
			switch {
			case err == nil:
			case end.Requests > 0 && errors.As(err, &ours): // too late for a problem
				end.Error, end.Kind = ours.Message, ours.Kind
				return lines.Encode(ReplayLine{End: &end})
			default:
				return err
			}
			end.Requests++
			if !one.Same {
				end.Differ++
			}
			if err := lines.Encode(ReplayLine{Request: &one}); err != nil {
				return err
			}
		}
		return lines.Encode(ReplayLine{End: &end})
	})
}

// written answers with something of a session that is written piece by piece.
func (a *API) written(w http.ResponseWriter, r *http.Request, id string, head func(http.Header), do func(io.Writer) error) error {
	if r.Method == http.MethodHead { // nobody reads it: only that it is there is told
		do = func(io.Writer) error {
			_, err := a.service.GetSession(r.Context(), by(r.Context()), id)
			return err
		}
	}
	return rest.Stream(w, func(h http.Header) {
		h.Set("Cache-Control", "no-store")
		head(h)
	}, do)
}
