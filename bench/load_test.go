package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	var h received
	for line := range strings.Lines("retry: 2000\n: hello\n\nevent: user_message\nid: 1\ndata: {}\n\nevent: text_delta\ndata: {}\n\nevent: tool_result\nid: 4\ndata: {}\n\nevent: completed\nid: 5\n") {
		if err := h.line([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if want := (received{events: 4, kept: 3, results: 1, last: 5, end: "completed"}); h != want {
		t.Errorf("counted %+v, want %+v", h, want)
	}
	if h.whole() {
		t.Error("one result of many counts as a whole run")
	}
	if err := h.line([]byte("id: 5\n")); err == nil {
		t.Error("an event that comes twice is not noticed")
	}
}

// TestManyConversationsAtOnce checks the floor, and that the simulator tells when all requests have come.
func TestManyConversationsAtOnce(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(newClock())
	defer srv.Close()
	floor := filepath.Join(t.TempDir(), "floor")
	if err := build(t.Context(), floor, "./floor"); err != nil {
		t.Fatal(err)
	}
	if err := expect(t.Context(), srv.URL, 3); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan error, 1)
	go func() {
		_, err := control(t.Context(), "GET", srv.URL+"/bench?await=20")
		arrived <- err
	}()
	cmd := exec.CommandContext(t.Context(), floor, "-sessions", "5", prompt)
	cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+srv.URL, "ANTHROPIC_API_KEY=test-key")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "done\n") != 5 {
		t.Fatalf("%v, printed %q", err, out)
	}
	if err := <-arrived; err != nil {
		t.Error(err)
	}
	s, err := sightings(t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	// One per conversation; fewer where one ends before another begins, and the library may open one while
	// another is just becoming idle. What must not be is one per request.
	if len(s.Times) != 20 || s.Connections < 1 || s.Connections > 10 {
		t.Errorf("%d requests over %d connections, want 20 over about 5", len(s.Times), s.Connections)
	}
}
