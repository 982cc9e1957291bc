package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/client"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/operations/operationstest"
	"chorus/internal/transport/http/api"
)

// answering is a client of a server that answers everything in one way.
func answering(t *testing.T, silence time.Duration, answer http.HandlerFunc) operation.Executor {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL, Token: "test-key", Silence: silence})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const rebuilt = `{"request":{"seq":3,"same":true}}` + "\n"

// export writes a session's export somewhere.
func export(ctx context.Context, to operation.Executor, by operation.Caller, in operations.ExportRequest, w io.Writer) error {
	file, err := operations.Export.Call(ctx, to, by, in)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return errors.Join(err, file.Close())
}

// begin sends the beginning of an answer.
func begin(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// What is cut is never taken for the whole, wherever it is cut.
func TestPartsAreNotTheWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silence time.Duration
		answer  http.HandlerFunc
		says    string
	}{
		"cut":    {0, func(w http.ResponseWriter, _ *http.Request) { begin(w, rebuilt); panic(http.ErrAbortHandler) }, "broke off before the end"},
		"silent": {3 * time.Second, func(w http.ResponseWriter, r *http.Request) { begin(w, rebuilt); <-r.Context().Done() }, "sent nothing for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := answering(t, c.silence, c.answer)
			var got strings.Builder
			err := export(t.Context(), far, operation.Caller{}, operations.ExportRequest{ID: "s1", Format: operations.JSONLines}, &got)
			if operation.KindOf(err) != operation.Unavailable || !strings.Contains(fmt.Sprint(err), c.says) || got.String() != rebuilt {
				t.Errorf("export: %v, %q", err, got.String())
			}
			count := 0
			for one, err := range operationstest.ReplayedRequests(operations.Replay.Follow(t.Context(), far, operation.Caller{}, operations.SessionRef{ID: "s1"})) {
				count++
				if count == 1 && (err != nil || one.Seq != 3) || count == 2 && (operation.KindOf(err) != operation.Unavailable || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("replay, %d: %+v, %v", count, one, err)
				}
			}
			if count != 2 {
				t.Errorf("replay gave %d times", count)
			}
		})
	}
}

// A server that says nothing at all is not waited for.
func TestSilenceBeforeTheFirstPiece(t *testing.T) {
	t.Parallel()
	far := answering(t, 50*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	err := export(t.Context(), far, operation.Caller{}, operations.ExportRequest{ID: "s1", Format: operations.Markdown}, io.Discard)
	if operation.KindOf(err) != operation.Unavailable || !strings.Contains(err.Error(), "sent nothing for") {
		t.Error(err)
	}
}

// flood exports more than anybody should hold, and counts.
type flood struct {
	operations.History
	sent atomic.Int64
}

const (
	drop = 1 << 20
	sea  = 96 * drop
)

func (f *flood) Export(context.Context, operation.Caller, operations.ExportRequest) (operation.File, error) {
	return operation.File{ReadCloser: operation.Generated(func(to io.Writer) error {
		piece := make([]byte, drop)
		for f.sent.Load() < sea {
			if _, err := to.Write(piece); err != nil {
				return err
			}
			f.sent.Add(drop)
		}
		return nil
	})}, nil
}

// gauge is how far the one who sends is ahead of the one who reads.
type gauge struct {
	flood    *flood
	got, far int64
}

func (g *gauge) Write(data []byte) (int, error) {
	g.got += int64(len(data))
	g.far = max(g.far, g.flood.sent.Load()-g.got)
	return len(data), nil
}

// However long an export is, neither side holds more of it than a connection does.
func TestExportsAreNotGathered(t *testing.T) {
	t.Parallel()
	f := &flood{}
	a, err := api.New(api.Options{Executor: operation.NewLocal(operation.LocalOptions{Handlers: []any{f}})})
	if err != nil {
		t.Fatal(err)
	}
	caller := operation.Caller{Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Scopes: operation.Scopes()}
	far := answering(t, 0, func(w http.ResponseWriter, r *http.Request) {
		a.ServeHTTP(w, r.WithContext(operation.WithCaller(r.Context(), caller)))
	})
	to := &gauge{flood: f}
	if err := export(t.Context(), far, operation.Caller{}, operations.ExportRequest{ID: "s1", Format: operations.Markdown}, to); err != nil || to.got != sea {
		t.Fatalf("%d of %d bytes: %v", to.got, sea, err)
	}
	if to.far > sea/2 {
		t.Errorf("%d MB were on their way at once", to.far>>20)
	}
}

// A replay ends with the line that says so: an answer that ends without it was cut by somebody
// who cut it well, and what no replay says is no request.
func TestReplayEndsWithItsLastLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		kinds  []operation.Kind // of what is given; "": a request
	}{
		"whole":        {rebuilt + `{"end":{"requests":1}}` + "\n", []operation.Kind{""}},
		"no end":       {rebuilt, []operation.Kind{"", operation.Unavailable}},
		"trouble":      {rebuilt + `{"end":{"error":"it cannot be","kind":"conflict"}}` + "\n", []operation.Kind{"", operation.Conflict}},
		"of tomorrow":  {`{"later":1}` + "\n" + rebuilt + `{"end":{"error":"it cannot be","kind":"queer"}}` + "\n", []operation.Kind{"", operation.Failed}},
		"another site": {"<html>\n", []operation.Kind{operation.Failed}},
	} {
		far := answering(t, 0, func(w http.ResponseWriter, _ *http.Request) { begin(w, c.answer) })
		var got []operation.Kind
		for _, err := range operationstest.ReplayedRequests(operations.Replay.Follow(t.Context(), far, operation.Caller{}, operations.SessionRef{ID: "s1"})) {
			kind := operation.Kind("")
			if err != nil {
				kind = operation.KindOf(err)
			}
			got = append(got, kind)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.kinds) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
