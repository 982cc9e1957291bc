package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/operation"
)

func TestExport(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	for _, c := range []struct{ method, query, ordered, media, file, body string }{
		{"GET", "", "session.export{ID:s1 Format: Kind: Run:}", "text/markdown; charset=utf-8", "s1.md", "all of it\n"},
		{"GET", "?format=markdown", "session.export{ID:s1 Format:markdown Kind: Run:}", "text/markdown; charset=utf-8", "s1.md", "all of it\n"},
		{"GET", "?format=jsonl", "session.export{ID:s1 Format:jsonl Kind: Run:}", "application/x-ndjson; charset=utf-8", "s1.jsonl", "all of it\n"},
		{"HEAD", "", "session.export{ID:s1 Format: Kind: Run:}", "text/markdown; charset=utf-8", "s1.md", ""},
	} {
		w := ask(a, admin, c.method, "/api/sessions/s1/export"+c.query, "")
		h := w.Header()
		if w.Code != 200 || f.last() != c.ordered || w.Body.String() != c.body || h.Get("Content-Type") != c.media ||
			h.Get("Content-Disposition") != "attachment; filename="+c.file || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s %s: %d, %s, %v: %s", c.method, c.query, w.Code, f.last(), h, w.Body)
		}
	}
	if w := ask(a, admin, "GET", "/api/sessions/s1/export?format=pdf", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "jsonl") {
		t.Errorf("an unknown format: %d %s", w.Code, w.Body)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	const first = `{"request":{"seq":3,"run":"","step":0,"attempt":0,"purpose":"","digest":"","rebuilt":"","same":true}}` + "\n" +
		`{"request":{"seq":5,"run":"","step":0,"attempt":0,"purpose":"","digest":"","rebuilt":"","same":false,"why":"no head"}}` + "\n"
	for _, c := range []struct {
		late error
		end  string
	}{
		{nil, `{"end":{"requests":2,"differ":1}}`},
		{operation.Errorf(operation.Failed, "rendered by another"), `{"end":{"requests":2,"differ":1,"error":"rendered by another","kind":"failed"}}`},
	} {
		f.late = c.late
		w := ask(a, admin, "GET", "/api/sessions/s1/replay", "")
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/x-ndjson" || w.Body.String() != first+c.end+"\n" || !w.Flushed {
			t.Errorf("%v: %d %v %s", c.late, w.Code, w.Header(), w.Body)
		}
	}
}

// What fails before the first piece is a problem without the headers of an export; what
// fails later cuts the answer, so that nobody takes a part for the whole.
func TestExportsThatFail(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	f.fail(operation.Errorf(operation.NotFound, "there is no session"))
	for _, what := range []string{"export", "replay"} {
		for _, method := range []string{"GET", "HEAD"} {
			w := ask(a, admin, method, "/api/sessions/s1/"+what, "")
			if w.Code != 404 || w.Header().Get("Content-Disposition") != "" || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") {
				t.Errorf("%s %s: %d %v", method, what, w.Code, w.Header())
			}
		}
	}
	f.fail(nil)
	f.late = errors.New("the disk is gone")
	for _, what := range []string{"export", "replay"} {
		func() {
			defer func() {
				if why, _ := recover().(error); !errors.Is(why, http.ErrAbortHandler) {
					t.Errorf("%s: the connection was not cut: %v", what, why)
				}
			}()
			ask(a, admin, "GET", "/api/sessions/s1/"+what, "")
		}()
	}
}
