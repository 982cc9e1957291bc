package chaos

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"chorus/internal/polltest"
)

// clusterFault is something that was done to the cluster.
type clusterFault struct {
	what         string
	node         string // "": to none of them alone
	begun, ended time.Time
	threads      []string // what the node had
	beats        string   // the file that a tool on the node wrote into, as long as it lived; "": there was none
	cut          bool     // the node lives, and cannot reach the database
}

func (f clusterFault) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s for %s", f.what, f.node, f.ended.Sub(f.begun).Round(100*time.Millisecond)))
}

// kind is a way to make trouble; it says what it did, after it is over.
type kind func(*clusterNode) clusterFault

// trouble makes faults one after the other, each of the kinds once at first.
func (c *cluster) trouble(faults int, first, then []kind) {
	for i := range faults {
		time.Sleep(time.Duration(500+c.random.IntN(1000)) * time.Millisecond) // people talk meanwhile
		make := then[c.random.IntN(len(then))]
		if i < len(first) {
			make = first[i]
		}
		c.faults = append(c.faults, make(c.nodes[c.random.IntN(len(c.nodes))]))
		if i%3 == 1 {
			c.change()
		}
	}
}

// hurt does something to one node that has a tool running, and notes what it had.
func (c *cluster) hurt(what string, n *clusterNode, cut bool, do func()) clusterFault {
	f := clusterFault{what: what, node: n.name, cut: cut}
	stop := c.runTool(n, &f)
	f.threads = c.owned(n.name)
	f.begun = time.Now()
	do()
	f.ended = time.Now()
	stop()
	return f
}

// runTool has the node run a command that writes down the time until it ends; the function that it returns ends it by itself.
func (c *cluster) runTool(n *clusterNode, f *clusterFault) (stop func()) {
	c.tools++
	beats, end := filepath.Join(c.repo, fmt.Sprintf("beats-%d", c.tools)), filepath.Join(c.repo, fmt.Sprintf("end-%d", c.tools))
	stop = func() { _ = os.WriteFile(end, nil, 0o600) }
	status, text := n.as(c.token).call("POST", "/api/sessions", map[string]string{"model": "demo/script", "workspacePath": c.repo})
	var made struct{ SessionID string }
	if status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
		return stop // it has not come back yet from the fault before
	}
	c.extra = append(c.extra, made.SessionID)
	command := fmt.Sprintf("for i in $(seq 2000); do test -e %s && exit; echo $EPOCHREALTIME >> %s; sleep 0.03; done", end, beats)
	script, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		c.t.Fatal(err)
	}
	n.send(c.token, made.SessionID, fmt.Sprintf("!call bash %s\n!---\n!say over\n", script), "tool")
	if polltest.Soon(func() bool { return !lastBeat(beats).IsZero() }) && slices.ContainsFunc(c.owned(n.name), func(thread string) bool { return strings.Contains(thread, made.SessionID) }) {
		f.beats = beats
	}
	return stop
}

// lastBeat is the last time that the tool wrote.
func lastBeat(file string) (last time.Time) {
	text, _ := os.ReadFile(file)
	for line := range strings.FieldsSeq(string(text)) {
		seconds, micros, _ := strings.Cut(line, ".")
		s, err := strconv.ParseInt(seconds, 10, 64)
		u, err2 := strconv.ParseInt(micros, 10, 64)
		if err == nil && err2 == nil && len(micros) == 6 {
			last = time.Unix(s, u*1000)
		}
	}
	return last
}

func (c *cluster) killNode(n *clusterNode) clusterFault {
	return c.hurt("killed", n, false, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.kill()
		time.Sleep(time.Duration(c.random.IntN(5000)) * time.Millisecond) // so long it is gone
		n.start()
	})
}

func (c *cluster) stopNode(n *clusterNode) clusterFault {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := clusterFault{what: "restarted", node: n.name, begun: time.Now()}
	n.stop()
	n.start()
	f.ended = time.Now()
	return f
}

// freezeFor stops a server where it stands, longer than the others wait for it: it wakes as one that was given up.
func (c *cluster) freezeFor(frozen time.Duration) kind {
	return func(n *clusterNode) clusterFault {
		return c.hurt("froze", n, false, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			_ = n.process.Process.Signal(syscall.SIGSTOP)
			time.Sleep(frozen)
			_ = n.process.Process.Signal(syscall.SIGCONT)
		})
	}
}

// cutOffFor takes the database away from one server, without a word: nothing comes and nothing is refused.
func (c *cluster) cutOffFor(least, most time.Duration) kind {
	return func(n *clusterNode) clusterFault {
		return c.hurt("cut off from PostgreSQL", n, true, func() {
			n.link.cut()
			time.Sleep(least + time.Duration(c.random.Int64N(int64(most-least)+1)))
			n.link.heal()
		})
	}
}

// unplugFor takes one machine off the network.
func (c *cluster) unplugFor(least, most time.Duration) kind {
	return func(n *clusterNode) clusterFault {
		return c.hurt("unplugged", n, true, func() {
			if err := n.port.cut(); err != nil {
				c.t.Error(err)
			}
			time.Sleep(least + time.Duration(c.random.Int64N(int64(most-least)+1)))
			if err := n.port.heal(); err != nil {
				c.t.Error(err)
			}
		})
	}
}

func (c *cluster) restartDatabase(*clusterNode) clusterFault {
	f := clusterFault{what: "stopped PostgreSQL", begun: time.Now()}
	if c.random.IntN(2) == 0 {
		c.postgres.Kill()
		f.what = "killed PostgreSQL"
	} else {
		c.postgres.Stop()
	}
	time.Sleep(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	if err := c.postgres.Start(); err != nil {
		c.t.Errorf("PostgreSQL does not start again: %v", err)
	}
	f.ended = time.Now()
	return f
}

func (c *cluster) restartNATS(*clusterNode) clusterFault {
	f := clusterFault{what: "stopped NATS", begun: time.Now()}
	c.nats.stop()
	time.Sleep(time.Duration(1000+c.random.IntN(4000)) * time.Millisecond)
	c.nats.start(c.t)
	f.ended = time.Now()
	return f
}

// broker is a NATS server that can be stopped and started again on its port.
type broker struct {
	port int
	now  *server.Server
}

func newBroker(t testing.TB) *broker {
	t.Helper()
	b := &broker{port: server.RANDOM_PORT}
	b.start(t)
	t.Cleanup(b.stop)
	return b
}

func (b *broker) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

func (b *broker) start(t testing.TB) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(atMost) {
		t.Fatal("the NATS server does not start")
	}
	b.now, b.port = s, s.Addr().(*net.TCPAddr).Port
}

func (b *broker) stop() {
	b.now.Shutdown()
	b.now.WaitForShutdown()
}

// change makes a token, takes it back and changes a setting on one server, and measures how long it takes until all others know.
func (c *cluster) change() {
	c.t.Helper()
	at := c.nodes[c.random.IntN(len(c.nodes))].as(c.token)
	for _, n := range c.nodes { // what a node has to catch up with after a fault is not what is measured
		if !polltest.Soon(func() bool { status, _ := n.ready(); return status == http.StatusOK }) {
			c.t.Errorf("%s does not come back:\n%s", n.name, n.log)
			return
		}
	}
	c.changes++
	status, text := at.call("POST", "/api/tokens", map[string]any{"name": fmt.Sprintf("token %d", c.changes), "scopes": []string{"read"}})
	var made struct{ ID, Token string }
	if status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
		c.t.Errorf("no token: %d %s", status, text)
		return
	}
	c.knownOn("a new token", func(n *clusterNode) bool {
		status, _ := n.as(made.Token).call("GET", "/api/sessions?limit=1", nil)
		return status == http.StatusOK
	})
	if status, text := at.call("DELETE", "/api/tokens/"+made.ID, nil); status != http.StatusNoContent {
		c.t.Errorf("the token was not revoked: %d %s", status, text)
	}
	c.knownOn("a revoked token", func(n *clusterNode) bool {
		status, _ := n.as(made.Token).call("GET", "/api/sessions?limit=1", nil)
		return status == http.StatusUnauthorized
	})
	value := strconv.Itoa(421000 + c.changes)
	if status, text := at.call("PUT", "/api/settings/idleTimeoutMs", map[string]string{"value": value}); status != http.StatusOK {
		c.t.Errorf("the setting was not changed: %d %s", status, text)
	}
	c.knownOn("a setting", func(n *clusterNode) bool {
		_, text := n.as(c.token).call("GET", "/api/settings", nil)
		return strings.Contains(text, value)
	})
}

// knownOn waits until every server knows of a change.
func (c *cluster) knownOn(what string, knows func(*clusterNode) bool) {
	c.t.Helper()
	begun := time.Now()
	for _, n := range c.nodes {
		if !polltest.Soon(func() bool { return knows(n) }) {
			c.t.Errorf("%s is not known on %s", what, n.name)
		}
	}
	now := time.Now()
	took := now.Sub(begun)
	if took > c.known.bar {
		last := "no fault"
		if n := len(c.faults); n > 0 {
			last = c.faults[n-1].String()
		}
		c.t.Logf("%s was known everywhere after %s; the last fault was: %s", what, took, last)
	}
	c.known.add(took, c.machine.busy(begun, now))
}

// judge measures what the faults led to.
func (c *cluster) judge() {
	c.t.Helper()
	takeOver := measured{what: "from a fault to the first commit of the next owner", bar: 5 * time.Second}
	fenced := measured{what: "from being cut off to the end of the last tool", bar: 3 * time.Second}
	deaths := c.deaths()
	for _, f := range c.faults {
		until := f.ended.Add(time.Second) // one that comes back is told with its next beat
		at := slices.IndexFunc(deaths, func(d death) bool { return d.node == f.node && d.at.After(f.begun) && d.at.Before(until) })
		if f.what == "killed" && at < 0 { // the next one of the name does not end the wait for this one
			until = f.ended.Add(10 * time.Second)
			at = slices.IndexFunc(deaths, func(d death) bool { return d.node == f.node && d.at.After(f.begun) && d.at.Before(until) })
		}
		if at < 0 {
			continue
		}
		died := deaths[at].at
		deaths = slices.Delete(deaths, at, at+1)
		for _, thread := range f.threads {
			if next, ok := c.goesOn(thread, f.begun); ok {
				took, busy := next.Sub(f.begun), c.machine.busy(f.begun, next)
				if takeOver.add(took, busy); took > takeOver.bar {
					c.t.Logf("%s: %s went on after %s; it was given up after %s, and the machine was %s late", f, thread, took, died.Sub(f.begun), busy)
				}
			}
		}
		if last := lastBeat(f.beats); f.cut && f.beats != "" {
			busy := c.machine.busy(f.begun, died)
			fenced.add(last.Sub(f.begun), busy)
			if !last.Before(died) && busy == 0 {
				c.t.Errorf("%s: a tool ran until %s after others were allowed to take over", f, last.Sub(died))
			}
		}
	}
	takeOver.tell(c.t)
	fenced.tell(c.t)
	c.known.tell(c.t)
	c.t.Logf("needless take-overs: %d", len(deaths))
	for _, d := range deaths {
		if busy := c.machine.busy(d.at.Add(-5*time.Second), d.at); busy > 0 {
			c.t.Logf("%s was given up at %s, while the machine was late or crowded for %s", d.node, d.at, busy)
		} else {
			c.t.Errorf("%s was given up at %s, and nothing was wrong with it", d.node, d.at)
		}
	}
}
