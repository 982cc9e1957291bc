package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"chorus/internal/polltest"
	"chorus/internal/store/pgtest"
)

// TestClusterNodeIsLost kills one of three servers for good, with its disk. A conversation that had only a folder of its own goes on at another, which says
// what became of the files; one that works in a folder of that machine waits, and the list of nodes says for whom.
func TestClusterNodeIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	database := pgtest.New(t).Database(t)
	var nodes []*served
	for i := range 3 {
		n := newServed(t, "")
		n.env = []string{"CHORUS_DATABASE_URL=" + database, fmt.Sprintf("CHORUS_NODE=node-%d", i+1), "CHORUS_ON_NODE_LOST=move", "CHORUS_NODE_LOST_SECONDS=3"}
		n.start()
		if i > 0 {
			n.token = nodes[0].token // they share what it is compared with
		}
		nodes = append(nodes, n)
	}
	lost, other, third := nodes[0], nodes[1], nodes[2]
	begin := func(wishes map[string]string) string {
		t.Helper()
		status, text := lost.call("POST", "/api/sessions", wishes)
		var made struct{ SessionID string }
		if status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
			t.Fatalf("no session: %d %s", status, text)
		}
		return made.SessionID
	}
	own, fixed := begin(map[string]string{"model": "demo/script"}), begin(map[string]string{"model": "demo/script", "workspacePath": lost.repo})
	say := func(n *served, session, text string) {
		t.Helper()
		if status, answer := n.call("POST", "/api/sessions/"+session+"/chat", map[string]string{"message": text}); status != http.StatusAccepted {
			t.Fatalf("not taken: %d %s", status, answer)
		}
	}
	has := func(n *served, session, kind, text string) bool {
		return slices.ContainsFunc(n.journal(session), func(e event) bool { return e.Kind == kind && strings.Contains(string(e.Body), text) })
	}
	for _, session := range []string{own, fixed} {
		say(lost, session, "!say before")
		polltest.Until(t, "it is answered where it began", func() bool { return has(other, session, "said", "before") })
	}
	lost.kill()
	for _, dir := range []string{lost.home, lost.repo} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	say(other, own, "!call bash {\"command\":\"pwd\"}\n!---\n!say after")
	say(other, fixed, "!say never")
	polltest.Until(t, "the conversation goes on elsewhere", func() bool { return has(third, own, "said", "after") })
	if !has(third, own, "noted", "moved from node node-1") {
		t.Error("its model was not told that the files are gone")
	}
	if has(third, own, "tool_ran", lost.home) || has(third, fixed, "said", "never") {
		t.Error("something ran in a folder that is gone")
	}
	var list struct {
		Items []struct {
			Name, State string
			Waiting     int
		}
	}
	if status, text := third.call("GET", "/api/nodes", nil); status != http.StatusOK || json.Unmarshal([]byte(text), &list) != nil {
		t.Fatalf("%d %s", status, text)
	}
	if !slices.ContainsFunc(list.Items, func(n struct {
		Name, State string
		Waiting     int
	}) bool {
		return n.Name == "node-1" && n.State == "lost" && n.Waiting == 1
	}) {
		t.Errorf("the nodes: %+v", list.Items)
	}
	for _, n := range []*served{other, third} {
		n.stop()
	}
}
