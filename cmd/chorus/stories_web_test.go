package main

import (
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// website serves a folder of the story until its end; /go?to=URL redirects, /slow never answers, and a file at PATH/index.json answers for a
// search provider, whatever the query. A wrong key is refused as Brave does.
func website(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "website VAR FOLDER")
	s := stageOf(ts)
	files := http.FileServer(http.Dir(s.file(ts, args[1])))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/go":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		case r.URL.Path == "/slow":
			<-r.Context().Done()
		case r.Header.Get("X-Subscription-Token") == "wrong":
			http.Error(w, `{"error":{"detail":"The provided subscription token is invalid."}}`, http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/search"):
			r.URL.Path += ".json"
			files.ServeHTTP(w, r)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
	ts.Setenv(args[0]+"_ADDR", server.Listener.Addr().String())
}
