package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/sim/discordsim"
)

// TestChaosOnDiscord lets people talk in a guild while our process is killed, the connection
// breaks and the platform refuses calls, and then looks at what stands in the guild: everything
// that was asked is answered or visibly refused, once, in order, and no question is lost.
// CHORUS_CHAOS asks for the long story, CHORUS_CHAOS_MESSAGES says how long; CHORUS_CHAOS_SEED
// makes another one of it.
func TestChaosOnDiscord(t *testing.T) {
	t.Parallel()
	p := plot{messages: 60, kills: 3, people: 20, seed: 1, within: 8 * time.Minute}
	if os.Getenv("CHORUS_CHAOS") != "" {
		p = plot{messages: 2000, kills: 100, people: 20, seed: 1, within: 30 * time.Minute}
	} else if testing.Short() {
		t.Skip("kills processes")
	}
	if n, err := strconv.Atoi(os.Getenv("CHORUS_CHAOS_MESSAGES")); err == nil {
		p.messages, p.kills = max(n, 2), max(n/20, 1)
		p.within = max(p.within, time.Duration(n)*time.Second)
	}
	if n, err := strconv.ParseUint(os.Getenv("CHORUS_CHAOS_SEED"), 10, 64); err == nil {
		p.seed = n
	}
	began := time.Now()
	g := openGuild(t, p)
	g.play()
	g.look()
	t.Logf("seed %d: %d messages (%d refused, %d with questions), %d kills, %d faults, %v", p.seed, len(g.asked), g.refused, g.questions, g.killed, g.struck, time.Since(began))
}

// plot is how long a story is.
type plot struct {
	messages, kills, people int
	seed                    uint64
	within                  time.Duration
}

// alone is the room in which people wait for each other's answer. In the others what comes
// while the agent speaks is taken together, and the answer is to the last of it.
const alone = 7

// The channels: each is called like an agent, whose file says what a conversation is.
var routings = []string{"reply", "reply", "reply", "reply", "thread", "thread", "thread", "room", "room", "room"}

// guild is the place of the story.
type guild struct {
	*testing.T
	plot
	*discordsim.Sim
	dice   *rand.Rand
	site   *crashSite
	ctx    context.Context
	events chan discordsim.Happening

	asked              []*asked
	byID               map[discordsim.ID]*asked
	talks              []*talk
	signs              map[discordsim.ID]map[string]bool // our bot's, by message
	cards              map[discordsim.ID]string          // open ones, with what their button says
	cardOf             map[discordsim.ID]*asked
	refused, questions int
	killed, struck     int

	process *exec.Cmd
	ended   chan struct{} // closed when the process has
	stderr  bytes.Buffer
}

func openGuild(t *testing.T, p plot) *guild {
	t.Helper()
	o := discordsim.Options{TimeScale: 4, Replay: 1 << 20, Bots: []discordsim.BotSpec{{Name: "chorus"}}}
	for i := range p.people {
		o.People = append(o.People, discordsim.PersonSpec{Name: fmt.Sprintf("person%d", i), Owner: i == 0})
	}
	site := newSite(t, "")
	site.sandbox = "host"
	for i, routing := range routings { // ten refusals in a row are over in seconds: the story is not about patience
		name := fmt.Sprintf("%s-%d", routing, i)
		o.Channels = append(o.Channels, discordsim.ChannelSpec{Name: name})
		file := fmt.Sprintf(`{"name":%q,"model":"demo/script","routing":%q}`, name, routing)
		for path, text := range map[string]string{filepath.Join("agents", name, "agent.json"): file, filepath.Join("config", "shared.yaml"): "continuationModel: demo/script\nanswer: all\nsandbox: host\ndiscordBackoffMax: 2000\n"} {
			path = filepath.Join(site.home, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.within)
	t.Cleanup(cancel)
	g := &guild{T: t, plot: p, Sim: discordsim.StartT(t, o), site: site, ctx: ctx, dice: rand.New(rand.NewPCG(p.seed, 7)), events: make(chan discordsim.Happening, 1<<16),
		byID: map[discordsim.ID]*asked{}, signs: map[discordsim.ID]map[string]bool{}, cards: map[discordsim.ID]string{}, cardOf: map[discordsim.ID]*asked{}}
	var watching sync.WaitGroup
	watching.Go(func() {
		_, _ = g.WaitEvent(ctx, func(h discordsim.Happening) bool { // reads along until the end
			select {
			case g.events <- h:
			case <-ctx.Done():
			}
			return false
		})
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	t.Cleanup(g.kill)
	g.start()
	if err := g.WaitConnected(ctx, "chorus"); err != nil {
		t.Fatalf("%v\n%s", err, g.stderr.String())
	}
	return g
}

// start runs the real program.
func (g *guild) start() {
	g.Helper()
	cmd := g.site.command(context.Background(), []string{"DISCORD_API_URL=" + g.API(), "DISCORD_BOT_TOKEN=" + g.Token("chorus")}, "serve", "--addr", "127.0.0.1:0")
	cmd.Stderr = &g.stderr
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	ended := make(chan struct{})
	g.process, g.ended = cmd, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
}

// kill ends it the hard way.
func (g *guild) kill() {
	if g.process == nil {
		return
	}
	select {
	case <-g.ended:
		if !g.process.ProcessState.Success() && g.process.ProcessState.ExitCode() >= 0 {
			g.Errorf("the program ended by itself: %v\n%s", g.process.ProcessState, g.stderr.String())
		}
	default:
		_ = g.process.Process.Kill() // it may be gone
		<-g.ended
	}
	g.process = nil
}

// stop lets it end in order.
func (g *guild) stop() {
	g.Helper()
	if err := g.process.Process.Signal(syscall.SIGTERM); err != nil {
		g.Fatal(err)
	}
	select {
	case <-g.ended:
	case <-g.ctx.Done():
		g.Fatalf("the program does not end: %v", g.ctx.Err())
	}
	if !g.process.ProcessState.Success() {
		g.Errorf("the program did not end well: %v\n%s", g.process.ProcessState, g.stderr.String())
	}
	g.process = nil
}

// play says everything, and breaks things on the way.
func (g *guild) play() {
	g.Helper()
	g.warm()
	for _, f := range []discordsim.Fault{
		{Kind: discordsim.FaultError, Route: "POST /channels/{channel}/messages", Rate: 0.05, Seed: g.seed, After: true},
		{Kind: discordsim.FaultError, Route: "PATCH /channels", Rate: 0.05, Seed: g.seed + 1},
		{Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/messages", Rate: 0.03, Seed: g.seed + 2, After: true},
		{Kind: discordsim.FaultDuplicate, Rate: 0.1, Seed: g.seed + 3},
	} {
		g.strike(f)
	}
	kills := map[int]bool{}
	for len(kills) < g.kills {
		kills[1+g.dice.IntN(g.messages-1)] = true
	}
	for n := range g.messages {
		g.say(n)
		g.trouble(n)
		if kills[n] {
			g.read(time.Duration(g.dice.IntN(300)) * time.Millisecond)
			g.kill()
			g.killed++
			g.read(time.Duration(g.dice.IntN(150)) * time.Millisecond)
			g.start()
		}
		g.until(func() bool { return g.unsettled() <= 25 })
	}
	g.Clear(0)
	quiet := func() bool { return g.unsettled() == 0 && len(g.cards) == 0 }
	for g.until(quiet); g.unsaid(); g.until(quiet) {
		g.read(50 * time.Millisecond) // nothing rings when another process has written
	}
	g.stop() // from here on nothing is said a second time
}

// warm waits until every channel has been seen: what was said before that, nobody answers.
func (g *guild) warm() {
	g.Helper()
	a := g.put("person0", 0, nil, "say here", 0)
	g.until(func() bool { return a.settled })
	g.asked = nil
}

// trouble breaks the connection, or lets the platform refuse everything for a moment.
func (g *guild) trouble(n int) {
	switch g.dice.IntN(40) {
	case 0:
		g.strike(discordsim.Fault{Kind: discordsim.FaultDrop})
	case 1:
		g.strike(discordsim.Fault{Kind: discordsim.FaultReconnect})
	case 2:
		g.strike(discordsim.Fault{Kind: discordsim.FaultInvalidate, Resumable: n%2 == 0})
	case 3:
		g.strike(discordsim.Fault{Kind: discordsim.FaultLimit, Count: 15, Millis: 100, Global: n%2 == 0})
	case 4:
		g.strike(discordsim.Fault{Kind: discordsim.FaultError, Status: 503, Count: 10})
	case 5:
		g.strike(discordsim.Fault{Kind: discordsim.FaultSlow, Millis: 150, Count: 5})
	}
}

func (g *guild) strike(f discordsim.Fault) {
	g.Helper()
	g.struck++
	if _, err := g.Inject(f); err != nil {
		g.Fatal(err)
	}
}
