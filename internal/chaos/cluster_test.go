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
	"testing"
	"time"

	"chorus/internal/store/pgtest"
)

// clusterMessages is how many messages the short story has; CHORUS_CLUSTER says how many for the long one.
const clusterMessages = 60

// clusterSenders is how many people talk at once, each in conversations of their own.
const clusterSenders = 6

// TestChaosCluster lets people talk to three servers on one PostgreSQL, any message to any server, while servers are killed, frozen and cut off from the
// database, and the database and NATS are restarted. In the end every message that was acknowledged is in the journal once, was answered once, in the order of the
// conversation, no command ran twice, nothing was written by a server that had lost the conversation, and nobody was given up without a reason. How long it took until
// others went on, until a server that was cut off had ended its tools, and until a change was known everywhere, is told, and held against bars while the machine is quiet.
func TestChaosCluster(t *testing.T) {
	messages, long := clusterMessages, false
	if n, err := strconv.Atoi(os.Getenv("CHORUS_CLUSTER")); err == nil {
		messages, long = n, true
	} else if testing.Short() {
		t.Skip("it takes half a minute")
	}
	seed, err := strconv.ParseUint(os.Getenv("CHORUS_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHORUS_CHAOS_SEED=%d", seed)
	c := newCluster(t, seed, long)
	const s = time.Second
	first, faults := []kind{c.killNode, c.freezeFor(8 * s), c.restartDatabase, c.cutOffFor(5*s, 6*s), c.restartNATS}, 5
	then := []kind{c.killNode, c.freezeFor(8 * s), c.restartDatabase, c.cutOffFor(1*s, 8*s), c.restartNATS, c.stopNode}
	if long {
		first = append(first, c.freezeFor(30*s), c.stopNode)
		then = append(then, c.killNode, c.cutOffFor(4*s, 8*s))
		if c.network != nil {
			first, then = append(first, c.unplugFor(5*s, 8*s)), append(then, c.unplugFor(1*s, 8*s), c.unplugFor(4*s, 8*s))
		}
		faults = max(len(first), messages/50)
	}
	calm, said := make(chan struct{}), make(chan int)
	go func() { said <- c.talk(messages, calm) }()
	c.trouble(faults, first, then)
	close(calm)
	messages = <-said
	c.restore()
	c.hold()
	var told []string
	for _, f := range c.faults {
		told = append(told, f.String())
	}
	t.Logf("%d messages, %d faults: %s; from arrival to answer %s", messages, len(c.faults), strings.Join(told, ", "), spread(c.latency))
	t.Logf("%d events, each by the owner of its thread", c.written())
	c.judge()
}

// TestChaosClusterRollingRestart restarts three servers one after the other, as an upgrade does, while people talk to all of them. Nothing waits for a node
// to be given up: what one had is handed over before it ends.
func TestChaosClusterRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	c := newCluster(t, 18, false)
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
	t.Logf("%d messages, three restarts; from arrival to answer %s", messages, spread(c.latency))
	// Who waits for a dead node waits three seconds, and then as long as the others do, which is what a busy machine makes longer.
	usual := slices.Sorted(slices.Values(c.latency))[len(c.latency)/2]
	if longest := slices.Max(c.latency); longest > 2*time.Second+5*usual/2 {
		t.Errorf("an answer took %s where %s is usual", longest, usual)
	}
}

// cluster is three servers on one database, and what was said to them.
type cluster struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand // of the goroutine that makes trouble
	postgres *pgtest.Cluster
	database string // how we reach it ourselves
	nats     *broker
	network  *network // nil: all are on this machine's own
	machine  *machine
	nodes    []*clusterNode
	repo     string
	token    string // of the people, who are the same wherever they ask: keys are theirs
	faults   []clusterFault
	sessions []*clusterSession
	extra    []string // sessions with a tool that runs while something is done to its server
	tools    int
	changes  int
	known    measured
	latency  []time.Duration
	paced    bool // messages are spread over all the trouble
}

// clusterNode is a server with its own home, which reaches the database through a link that can be cut.
type clusterNode struct {
	*served
	name string
	link *link
	port *port // nil: it is on this machine's own network

	mu sync.Mutex // held while it is started, ended or frozen, and to read where it listens
}

// as is the server asked with another token.
func (n *clusterNode) as(token string) *served {
	site := *n.served
	site.token = token
	return &site
}

// clusterSession is a conversation and the words that were acknowledged in it, in their order.
type clusterSession struct {
	id    string
	words []string
}

// newCluster starts three servers. In the long story each has a network namespace of its own, where the machine allows that.
func newCluster(t *testing.T, seed uint64, long bool) *cluster {
	t.Helper()
	c := &cluster{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 18)), postgres: pgtest.New(t), nats: newBroker(t), machine: watchMachine(t), paced: long,
		known: measured{what: "from a change on one server until all know", bar: time.Second}}
	c.database = c.postgres.Database(t)
	at := "127.0.0.1"
	if long {
		var err error
		if c.network, err = newNetwork(t); err != nil {
			t.Logf("no network namespaces (%v): servers are cut off by a link that swallows everything", err)
		} else {
			t.Log("each server is in a network namespace of its own, and is unplugged from the switch between them")
			at = c.network.addr()
		}
	}
	for i := range 3 {
		c.addNode(fmt.Sprintf("node-%d", i+1), at)
		if i == 0 {
			c.watch()
		}
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

// addNode starts a server that reaches PostgreSQL and NATS at an address of this machine.
func (c *cluster) addNode(name, at string) {
	c.t.Helper()
	n := &clusterNode{served: newServed(c.t, ""), name: name, link: newLink(c.t, at, c.postgres.Addr())}
	if c.repo == "" {
		c.repo = n.repo
	}
	if c.network != nil {
		var err error
		if n.port, err = c.network.plugIn(); err != nil {
			c.t.Fatal(err)
		}
		n.within = n.port.within()
		n.http = &http.Client{Transport: &http.Transport{DialContext: n.port.dial, DisableKeepAlives: true}}
	}
	database, err := url.Parse(c.database)
	if err != nil {
		c.t.Fatal(err)
	}
	database.Host = n.link.addr()
	values := database.Query()
	values.Set("application_name", name)
	database.RawQuery = values.Encode()
	n.env = []string{"CHORUS_DATABASE_URL=" + database.String(), "CHORUS_NODE=" + name, "CHORUS_NATS_URL=nats://" + newLink(c.t, at, c.nats.addr()).addr()}
	n.start()
	c.nodes = append(c.nodes, n)
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
				if c.paced || n >= least/clusterSenders { // the rest only keeps everybody busy
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

// restore ends all trouble and waits until every conversation has come to rest, as each server sees it.
func (c *cluster) restore() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.link.heal()
		if n.port != nil {
			if err := n.port.heal(); err != nil {
				c.t.Error(err)
			}
		}
		if n.process == nil {
			n.start()
		}
		n.sessions = slices.Clone(c.extra)
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
