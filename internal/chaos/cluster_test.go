package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"chorus/internal/store/pgtest"
)

// clusterMessages is how many messages the short story has; CHORUS_CLUSTER says how many for the long one.
const clusterMessages = 60

// clusterSenders is how many people talk at once, each in conversations of their own.
const clusterSenders = 6

// TestChaosCluster lets people talk to three servers on one PostgreSQL, any message to any server, while servers are killed, frozen and cut off from the
// database, and the database is restarted. In the end every message that was acknowledged is in the journal once, was answered once, in the order of the
// conversation, and no command ran twice.
func TestChaosCluster(t *testing.T) {
	messages, faults := clusterMessages, 4
	if n, err := strconv.Atoi(os.Getenv("CHORUS_CLUSTER")); err == nil {
		messages, faults = n, max(8, n/50)
	} else if testing.Short() {
		t.Skip("it takes half a minute")
	}
	seed, err := strconv.ParseUint(os.Getenv("CHORUS_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHORUS_CHAOS_SEED=%d", seed)
	c := newCluster(t, seed)
	calm, said := make(chan struct{}), make(chan int)
	go func() { said <- c.talk(messages, calm) }()
	c.trouble(faults)
	close(calm)
	messages = <-said
	c.restore()
	c.hold()
	t.Logf("%d messages, %d faults: %s; from arrival to answer %s", messages, len(c.faults), strings.Join(c.faults, ", "), c.delays())
}

// TestChaosClusterRollingRestart restarts three servers one after the other, as an upgrade does, while people talk to all of them. Nothing waits for a node
// to be given up: what one had is handed over before it ends.
func TestChaosClusterRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	c := newCluster(t, 18)
	calm, said := make(chan struct{}), make(chan int)
	go func() { said <- c.talk(clusterMessages, calm) }()
	for _, n := range c.nodes {
		time.Sleep(time.Second) // people talk meanwhile
		c.stopNode(n)
	}
	close(calm)
	messages := <-said
	c.restore()
	c.hold()
	t.Logf("%d messages, three restarts; from arrival to answer %s", messages, c.delays())
	// Two seconds on a machine that does nothing else; those who wait for a dead node wait three, and then for the machine.
	if longest := c.latency[len(c.latency)-1]; longest > 5*time.Second {
		t.Errorf("an answer took %s", longest)
	}
}

// cluster is three servers on one database, and what was said to them.
type cluster struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand // of the goroutine that makes trouble
	postgres *pgtest.Cluster
	nodes    []*clusterNode
	repo     string
	token    string // of the people, who are the same wherever they ask: keys are theirs
	faults   []string
	sessions []*clusterSession
	latency  []time.Duration
}

// clusterNode is a server with its own home, which reaches the database through a link that can be cut.
type clusterNode struct {
	*served
	name string
	link *link

	mu sync.Mutex // held while it is started, ended or frozen, and to read where it listens
}

// clusterSession is a conversation and the words that were acknowledged in it, in their order.
type clusterSession struct {
	id    string
	words []string
}

func newCluster(t *testing.T, seed uint64) *cluster {
	t.Helper()
	c := &cluster{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 18)), postgres: pgtest.New(t)}
	database, err := url.Parse(c.postgres.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		n := &clusterNode{served: newServed(t, ""), name: fmt.Sprintf("node-%d", i+1), link: newLink(t, c.postgres.Addr())}
		if c.repo == "" {
			c.repo = n.repo
		}
		at := *database
		at.Host = n.link.addr()
		n.env = []string{"CHORUS_DATABASE_URL=" + at.String()}
		n.start()
		c.nodes = append(c.nodes, n)
	}
	c.token = c.nodes[0].token
	for range clusterSenders {
		for range 2 {
			n := c.nodes[c.random.IntN(len(c.nodes))]
			status, text := n.call("POST", "/api/sessions", map[string]string{"model": "demo/script", "workspacePath": c.repo})
			var made struct{ SessionID string }
			if status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
				t.Fatalf("no session: %d %s\n%s", status, text, n.log)
			}
			c.sessions = append(c.sessions, &clusterSession{id: made.SessionID})
		}
	}
	return c
}

// talk says so many messages at least, and goes on until it is calm; it returns how many there were. Each sender says one after the other.
func (c *cluster) talk(least int, calm <-chan struct{}) int {
	var senders sync.WaitGroup
	var said atomic.Int64
	for s := range clusterSenders {
		random := rand.New(rand.NewPCG(c.seed, uint64(s)))
		senders.Go(func() {
			own := c.sessions[2*s : 2*s+2]
			for n := 0; ; n++ {
				select {
				case <-calm:
					if int(said.Load()) >= least {
						return
					}
				default:
				}
				c.say(own[n%2], fmt.Sprintf("word-%d-%d;", s, n), random)
				said.Add(1)
				if n >= least/clusterSenders { // the rest only keeps everybody busy
					time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
				}
			}
		})
	}
	senders.Wait()
	return int(said.Load())
}

// say says a word until a server has taken it, each time to any of them. The key makes it one message, whoever hears it how often.
func (c *cluster) say(in *clusterSession, word string, random *rand.Rand) {
	message := "!say answer to " + word + "\n"
	if random.IntN(4) == 0 {
		message = fmt.Sprintf("!call bash {\"command\":\"echo %s >> effects.txt\"}\n!---\n", word) + message
	}
	deadline := time.Now().Add(atMost)
	for {
		n := c.nodes[random.IntN(len(c.nodes))]
		status, text := n.send(c.token, in.id, message, word)
		if status == http.StatusAccepted {
			in.words = append(in.words, word)
			return
		}
		if time.Now().After(deadline) {
			c.t.Errorf("%s was not taken in time; the last answer was %d %s", word, status, text)
			return
		}
		time.Sleep(time.Duration(20+random.IntN(80)) * time.Millisecond) // as a client does before it tries another server
	}
}

// send posts a message; 0 where the server is down or frozen.
func (n *clusterNode) send(token, session, message, key string) (int, string) {
	if !n.mu.TryLock() {
		return 0, "it is being started, ended or is frozen"
	}
	site := *n.served
	n.mu.Unlock()
	site.token = token
	if site.process == nil {
		return 0, "it does not run"
	}
	return site.call("POST", "/api/sessions/"+session+"/chat", map[string]string{"message": message}, "Idempotency-Key", key)
}

// trouble makes so many faults, one after the other, each kind once at least if there are enough.
func (c *cluster) trouble(faults int) {
	kinds := []func(*clusterNode) string{c.killNode, c.freeze, c.cutOff, c.restartDatabase, c.stopNode}
	for n := range faults {
		time.Sleep(time.Duration(500+c.random.IntN(1000)) * time.Millisecond) // people talk meanwhile
		kind := kinds[c.random.IntN(len(kinds))]
		if n < len(kinds) {
			kind = kinds[n]
		}
		c.faults = append(c.faults, kind(c.nodes[c.random.IntN(len(c.nodes))]))
	}
}

func (c *cluster) killNode(n *clusterNode) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kill()
	time.Sleep(time.Duration(c.random.IntN(5000)) * time.Millisecond) // so long it is gone
	n.start()
	return "killed " + n.name
}

func (c *cluster) stopNode(n *clusterNode) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
	n.start()
	return "restarted " + n.name
}

// freeze stops a server where it stands, longer than the others wait for it: it wakes as one that was given up.
func (c *cluster) freeze(n *clusterNode) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	frozen := 8 * time.Second
	if os.Getenv("CHORUS_CLUSTER") != "" && c.random.IntN(3) == 0 {
		frozen = 30 * time.Second
	}
	_ = n.process.Process.Signal(syscall.SIGSTOP)
	time.Sleep(frozen)
	_ = n.process.Process.Signal(syscall.SIGCONT)
	return fmt.Sprintf("froze %s for %s", n.name, frozen)
}

// cutOff takes the database away from one server, without a word: nothing comes and nothing is refused.
func (c *cluster) cutOff(n *clusterNode) string {
	cut := time.Duration(1+c.random.IntN(7)) * time.Second
	n.link.cut()
	time.Sleep(cut)
	n.link.heal()
	return fmt.Sprintf("cut off %s for %s", n.name, cut)
}

func (c *cluster) restartDatabase(*clusterNode) string {
	how := "stopped"
	if c.random.IntN(2) == 0 {
		c.postgres.Kill()
		how = "killed"
	} else {
		c.postgres.Stop()
	}
	time.Sleep(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	if err := c.postgres.Start(); err != nil {
		c.t.Errorf("PostgreSQL does not start again: %v", err)
	}
	return how + " PostgreSQL"
}

// restore ends all trouble and waits until every conversation has come to rest, as each server sees it.
func (c *cluster) restore() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.link.heal()
		if n.process == nil {
			n.start()
		}
		for _, s := range c.sessions {
			n.sessions = append(n.sessions, s.id)
		}
		n.settle()
	}
}

// hold holds the journal against what was said, each conversation as another server tells it.
func (c *cluster) hold() {
	c.t.Helper()
	effects, _ := os.ReadFile(filepath.Join(c.repo, "effects.txt"))
	for i, s := range c.sessions {
		received, answered, unhappy, last := map[string]time.Time{}, []string{}, 0, ""
		for n, ev := range c.nodes[i%len(c.nodes)].timed(s.id) {
			if ev.Seq != int64(n+1) {
				c.t.Fatalf("session %s has event %d as number %d", s.id, ev.Seq, n+1)
			}
			for _, word := range s.words {
				switch {
				case !strings.Contains(string(ev.Body), word):
				case ev.Kind == "received":
					if !received[word].IsZero() {
						c.t.Errorf("%s is in the journal twice", word)
					}
					received[word], last = ev.At, word
				case ev.Kind == "said" && strings.Contains(string(ev.Body), `"text":"answer to `+word):
					answered = append(answered, word)
					c.latency = append(c.latency, ev.At.Sub(received[word]))
				}
			}
			if ev.Kind == "refused" { // too many waited: it was said again later, and is heard then
				delete(received, last)
			}
			if ev.Kind == "run_ended" && !strings.Contains(string(ev.Body), `"done"`) {
				unhappy++
			}
		}
		c.compare(s, received, answered, unhappy, string(effects))
	}
}

func (c *cluster) compare(s *clusterSession, received map[string]time.Time, answered []string, unhappy int, effects string) {
	c.t.Helper()
	missing := 0
	for _, word := range s.words {
		if received[word].IsZero() {
			c.t.Errorf("%s was acknowledged and is not in the journal", word)
		}
		if n := strings.Count(effects, word); n > 1 {
			c.t.Errorf("the effect of %s happened %d times", word, n)
		}
		switch n := len(slices.DeleteFunc(slices.Clone(answered), func(a string) bool { return a != word })); {
		case n > 1:
			c.t.Errorf("%s was answered %d times", word, n)
		case n == 0:
			missing++
		}
	}
	if missing > unhappy {
		c.t.Errorf("%d messages of session %s have no answer, and only %d runs say why", missing, s.id, unhappy)
	}
	want := slices.DeleteFunc(slices.Clone(s.words), func(w string) bool { return !slices.Contains(answered, w) })
	if !slices.Equal(want, answered) {
		c.t.Errorf("session %s was answered out of order: %v, said %v", s.id, answered, want)
	}
}

// timedEvent is an event with its time.
type timedEvent struct {
	Seq  int64
	Kind string
	At   time.Time
	Body json.RawMessage
}

func (n *clusterNode) timed(session string) (all []timedEvent) {
	n.t.Helper()
	for after := int64(0); ; after = all[len(all)-1].Seq {
		status, text := n.call("GET", fmt.Sprintf("/api/sessions/%s/events?after=%d&limit=500", session, after), nil)
		var page struct{ Items []timedEvent }
		if status != http.StatusOK {
			n.t.Fatalf("no events: %d %s", status, text)
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			n.t.Fatal(err)
		}
		if len(page.Items) == 0 {
			return all
		}
		all = append(all, page.Items...)
	}
}

// delays says how long answers took, trouble included.
func (c *cluster) delays() string {
	if len(c.latency) == 0 {
		return "nothing"
	}
	slices.Sort(c.latency)
	at := func(share float64) time.Duration {
		return c.latency[int(share*float64(len(c.latency)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, longest %s", at(.5), at(.9), at(.99), at(1))
}
