package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

// TestChaosOnDiscord lets people talk in a guild while our process is killed, the connection
// breaks and the platform refuses calls, and then looks at what stands in the guild: everything
// that was asked is answered or visibly refused, once, in order, and no question is lost.
// CHORUS_CHAOS asks for the long story, CHORUS_CHAOS_MESSAGES says how long; CHORUS_CHAOS_SEED
// makes another one of it.
func TestChaosOnDiscord(t *testing.T) {
	t.Parallel()
	p := plot{messages: 60, kills: 3, people: 20, seed: 1, within: 3 * time.Minute}
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

// asked is one message that wants an answer.
type asked struct {
	n           int
	id          discordsim.ID
	person      string
	channel     int
	talk        *talk
	question    bool // a command that must be allowed first
	long        bool
	settled     bool
	refused     bool
	answer      discordsim.ID
	cardClicked time.Time
}

// talk is one conversation: a chain of replies, a thread, or a room.
type talk struct {
	channel int
	place   string // where its messages are said; "": the thread is not open yet
	said    []*asked
}

func (k *talk) open() int {
	n := 0
	for _, a := range k.said {
		if !a.settled {
			n++
		}
	}
	return n
}

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
	site.walls = "host"
	for i, routing := range routings {
		name := fmt.Sprintf("%s-%d", routing, i)
		o.Channels = append(o.Channels, discordsim.ChannelSpec{Name: name})
		file := fmt.Sprintf(`{"name":%q,"model":"demo/script","routing":%q}`, name, routing)
		for path, text := range map[string]string{filepath.Join("agents", name, "agent.json"): file, filepath.Join("config", "shared.yaml"): "continuationModel: demo/script\nsandbox: host\n"} {
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
		for g.unsettled() > 25 {
			g.read(20 * time.Millisecond)
		}
	}
	g.Clear(0)
	for g.unsettled() > 0 || len(g.cards) > 0 || g.unsaid() {
		g.read(50 * time.Millisecond)
	}
	g.read(500 * time.Millisecond) // what would be said twice is said by now
}

// warm waits until every channel has been seen: what was said before that, nobody answers.
func (g *guild) warm() {
	g.Helper()
	a := g.put("person0", 0, nil, "say here", 0)
	for !a.settled {
		g.read(20 * time.Millisecond)
	}
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

// say has somebody ask something, somewhere.
func (g *guild) say(n int) {
	g.Helper()
	person := fmt.Sprintf("person%d", g.dice.IntN(g.people))
	channel := g.dice.IntN(len(routings))
	most := 4 // of one conversation that wait
	if n%100 >= 50 && n%100 < 58 {
		channel, most = len(routings)-1, 8 // all at once: more than may wait, so that some are refused
	}
	var k *talk
	var to discordsim.ID
	switch routings[channel] {
	case "reply":
		k = g.find(channel, func(k *talk) bool { return k.open() == 0 && k.said[len(k.said)-1].answer != 0 })
		if k != nil {
			to = k.said[len(k.said)-1].answer
		}
	case "thread":
		k = g.find(channel, func(k *talk) bool { return k.place != "" && k.open() < most })
	case "room":
		if channel == alone {
			most = 1
		}
		for k = g.room(channel); k.open() >= most; {
			g.read(20 * time.Millisecond)
		}
	}
	text := fmt.Sprintf("!say answer-%d;", n)
	kind := g.dice.IntN(12)
	switch kind {
	case 0:
		text = fmt.Sprintf("!call bash {\"command\":\"echo effect-%d >> effects.txt\"}\n!end\n%s", n, text)
		g.questions++
	case 1:
		text += "\n!say " + strings.Repeat("many words ", 166) + fmt.Sprintf("\n!say end-%d;", n) // two messages
	case 2, 3:
		text = "!chunk 2\n!slow 20ms\n" + text
	}
	if routings[channel] == "room" {
		text = "<@" + g.User("chorus").String() + ">\n" + text
	}
	if k == nil {
		k = &talk{channel: channel}
		g.talks = append(g.talks, k)
	}
	a := g.put(person, channel, k, text, to)
	a.n, a.question, a.long = n, kind == 0, kind == 1
}

func (g *guild) find(channel int, fits func(*talk) bool) *talk {
	var list []*talk
	for _, k := range g.talks {
		if k.channel == channel && len(k.said) > 0 && fits(k) {
			list = append(list, k)
		}
	}
	if len(list) == 0 || g.dice.IntN(3) == 0 {
		return nil // a new one
	}
	return list[g.dice.IntN(len(list))]
}

func (g *guild) room(channel int) *talk {
	for _, k := range g.talks {
		if k.channel == channel {
			return k
		}
	}
	k := &talk{channel: channel}
	g.talks = append(g.talks, k)
	return k
}

// put says it.
func (g *guild) put(person string, channel int, k *talk, text string, to discordsim.ID) *asked {
	g.Helper()
	place := fmt.Sprintf("%s-%d", routings[channel], channel)
	if k != nil && k.place != "" {
		place = k.place
	}
	id, err := g.Post(person, place, discordsim.Said{Text: text, Reply: to})
	if err != nil {
		g.Fatalf("%s says in %s: %v", person, place, err)
	}
	a := &asked{id: id, person: person, channel: channel, talk: k}
	if k != nil {
		k.said = append(k.said, a)
	}
	g.asked, g.byID[id] = append(g.asked, a), a
	return a
}

func (g *guild) unsettled() int {
	n := 0
	for _, a := range g.asked {
		if !a.settled {
			n++
		}
	}
	return n
}

// read takes in what happens for a while.
func (g *guild) read(d time.Duration) {
	g.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case h := <-g.events:
			g.happened(h)
		case <-timer.C:
			g.click()
			return
		case <-g.ctx.Done():
			g.Fatalf("%v: %d of %d messages are not settled, %d questions open; seed %d\n%s", g.ctx.Err(), g.unsettled(), len(g.asked), len(g.cards), g.seed, g.board())
		}
	}
}

// happened learns what stands in the guild now.
func (g *guild) happened(h discordsim.Happening) {
	g.Helper()
	switch h.Name {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m discordsim.Message
		if err := json.Unmarshal(h.Data, &m); err != nil {
			g.Fatal(err)
		}
		if !m.Author.Bot {
			return
		}
		if m.Reference != nil {
			if a := g.byID[m.Reference.MessageID]; a != nil && !strings.Contains(m.Content, "May I?") {
				a.answer = m.ID
			}
		}
		g.card(m)
	case "THREAD_CREATE":
		var c discordsim.Channel
		if err := json.Unmarshal(h.Data, &c); err != nil {
			g.Fatal(err)
		}
		if a := g.byID[c.ID]; a != nil && a.talk != nil {
			a.talk.place = c.ID.String()
		}
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		var r struct {
			Message discordsim.ID `json:"message_id"`
			User    discordsim.ID `json:"user_id"`
			Emoji   struct{ Name string }
		}
		if err := json.Unmarshal(h.Data, &r); err != nil {
			g.Fatal(err)
		}
		signs := g.signs[r.Message]
		if signs == nil {
			signs = map[string]bool{}
			g.signs[r.Message] = signs
		}
		signs[r.Emoji.Name] = h.Name == "MESSAGE_REACTION_ADD"
		if !signs[r.Emoji.Name] {
			delete(signs, r.Emoji.Name)
		}
		if a := g.byID[r.Message]; a != nil {
			a.settled = len(signs) == 1 && (signs["✅"] || signs["❌"])
			a.refused = signs["❌"]
		}
	}
}

// card notes a question, until it is answered.
func (g *guild) card(m discordsim.Message) {
	g.Helper()
	if !strings.Contains(m.Content, "May I?") {
		return
	}
	_, rest, open := strings.Cut(fmt.Sprint(m.Components), "c1:yes:")
	if !open {
		delete(g.cards, m.ID)
		return
	}
	_, number, _ := strings.Cut(m.Content, "effect-")
	number, _, _ = strings.Cut(number, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(g.asked) || g.asked[n].n != n {
		g.Fatalf("a question that nobody asked: %q", m.Content)
	}
	g.cards[m.ID], g.cardOf[m.ID] = "c1:yes:"+rest[:26], g.asked[n]
}

// click answers open questions; whoever is not heard clicks again after a while.
func (g *guild) click() {
	for id, button := range g.cards {
		a := g.cardOf[id]
		if time.Since(a.cardClicked) < time.Second {
			continue
		}
		a.cardClicked = time.Now()
		_, _ = g.Click(a.person, id, button) // it may have been answered at this moment
	}
}

// board is what is not settled, for people who read failures.
func (g *guild) board() string {
	var b strings.Builder
	for _, a := range g.asked {
		if !a.settled {
			fmt.Fprintf(&b, "%d in %s-%d (%s): %v\n", a.n, routings[a.channel], a.channel, a.id, g.signs[a.id])
		}
	}
	for id, a := range g.cardOf {
		if g.cards[id] != "" {
			fmt.Fprintf(&b, "question %d is open\n", a.n)
		}
	}
	return b.String()
}

// look holds what stands in the guild against what was asked.
func (g *guild) look() {
	g.Helper()
	var ours []discordsim.Message
	for _, place := range g.places() {
		list, err := g.Messages(place)
		if err != nil {
			g.Fatal(err)
		}
		for _, m := range list {
			if m.Author.Bot {
				ours = append(ours, m)
			}
		}
	}
	slices.SortFunc(ours, func(a, b discordsim.Message) int { return int(a.ID - b.ID) })
	found := map[string][]discordsim.Message{}
	for _, m := range ours {
		for _, word := range strings.Fields(m.Content) {
			if strings.HasSuffix(word, ";") && (strings.HasPrefix(word, "answer-") || strings.HasPrefix(word, "end-")) {
				found[word] = append(found[word], m)
			}
		}
	}
	at := map[*talk]discordsim.ID{}
	for _, a := range g.asked {
		said := found[fmt.Sprintf("answer-%d;", a.n)]
		if a.refused && len(said) == 0 {
			g.refused++
			if n := count(ours, func(m discordsim.Message) bool { return m.Reference != nil && m.Reference.MessageID == a.id }); n != 1 {
				g.Errorf("message %d is refused, and %d messages say so", a.n, n)
			}
			continue
		}
		if len(said) == 0 && g.together(a, found) {
			continue
		}
		if len(said) != 1 {
			g.Errorf("message %d in %s-%d was answered %d times", a.n, routings[a.channel], a.channel, len(said))
			continue
		}
		if said[0].ID < at[a.talk] {
			g.Errorf("the answer to message %d stands before that to an earlier one of its conversation", a.n)
		}
		at[a.talk] = said[0].ID
	}
	g.agents()
	g.effects()
	for _, a := range g.asked {
		if len(found[fmt.Sprintf("answer-%d;", a.n)]) == 0 {
			continue // refused, or taken together with a later one
		}
		if a.question && !slices.ContainsFunc(ours, func(m discordsim.Message) bool { return g.cardOf[m.ID] == a }) {
			g.Errorf("message %d was never asked about", a.n)
		}
	}
}

// together reports whether a message was taken together with one that was said later in
// its room: that one's answer stands for both. The journal says what was taken when.
func (g *guild) together(a *asked, found map[string][]discordsim.Message) bool {
	g.Helper()
	if routings[a.channel] != "room" || a.channel == alone {
		return false
	}
	mine := g.tookBy(a)
	return mine != 0 && slices.ContainsFunc(a.talk.said, func(b *asked) bool {
		return b.n > a.n && len(found[fmt.Sprintf("answer-%d;", b.n)]) == 1 && g.tookBy(b) == mine
	})
}

// unsaid reports whether something still waits to be posted: a sign may stand before its answer does.
func (g *guild) unsaid() bool {
	g.Helper()
	db := g.journal()
	defer db.Close()
	lanes, err := db.OpenLanes(g.Context(), "discord", "chorus")
	if err != nil {
		g.Fatal(err)
	}
	return len(lanes) > 0
}

// journal opens what the program writes, beside it.
func (g *guild) journal() *store.DB {
	g.Helper()
	db, err := store.Open(g.Context(), store.Options{Path: filepath.Join(g.site.home, "chorus.db"), BlobDir: filepath.Join(g.site.home, "blobs")})
	if err != nil {
		g.Fatal(err)
	}
	return db
}

// tookBy is the number of the event by which a message was taken; 0: none did.
func (g *guild) tookBy(a *asked) int64 {
	g.Helper()
	db := g.journal()
	defer db.Close()
	places, err := db.Places(g.Context(), "discord", a.id.String())
	if err != nil {
		g.Fatal(err)
	}
	for _, p := range places {
		if p.Ours {
			continue
		}
		for after := p.Seq; ; {
			events, err := db.Events(g.Context(), p.Thread, after, 0)
			if err != nil {
				g.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for _, ev := range events {
				if took, ok := ev.Body.(chat.Took); ok && slices.Contains(took.Seqs, p.Seq) {
					return ev.Seq
				}
				after = ev.Seq
			}
		}
	}
	return 0
}

// agents holds the journal against the channels: each conversation is its channel's agent's.
func (g *guild) agents() {
	g.Helper()
	out, err := g.site.output("thread", "list", "--json")
	if err != nil {
		g.Fatal(err)
	}
	for i, routing := range routings {
		name := fmt.Sprintf("%s-%d", routing, i)
		if place := g.Guild().String() + "/" + g.Channel(name).String(); strings.Count(out, place) != strings.Count(out, place+":") || strings.Contains(out, "@chorus") {
			g.Errorf("somebody else than %s answered in its channel:\n%s", name, out)
			return
		}
	}
}

// effects holds what the allowed commands did against their cards.
func (g *guild) effects() {
	g.Helper()
	done := map[string]int{}
	files, _ := filepath.Glob(filepath.Join(g.site.home, "agents", "*", "*", "effects.txt"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			g.Fatal(err)
		}
		for _, line := range strings.Fields(string(data)) {
			done[line]++
		}
	}
	missing := 0
	for _, a := range g.asked {
		switch n := done[fmt.Sprintf("effect-%d", a.n)]; {
		case !a.question:
		case n > 1:
			g.Errorf("what message %d asked for was done %d times", a.n, n)
		case n == 0 && g.cardOfAsked(a):
			missing++ // a kill between its beginning and its end: it is never repeated
		}
	}
	if missing > g.killed {
		g.Errorf("%d commands that were allowed were not carried out, at %d kills", missing, g.killed)
	}
}

// cardOfAsked reports whether somebody was asked about what a message wants.
func (g *guild) cardOfAsked(a *asked) bool {
	for _, b := range g.cardOf {
		if a == b {
			return true
		}
	}
	return false
}

// places are the channels and their threads.
func (g *guild) places() []string {
	var out []string
	for i, routing := range routings {
		out = append(out, fmt.Sprintf("%s-%d", routing, i))
	}
	for _, k := range g.talks {
		if k.place != "" {
			out = append(out, k.place)
		}
	}
	return out
}

func count[T any](list []T, fits func(T) bool) int {
	n := 0
	for _, v := range list {
		if fits(v) {
			n++
		}
	}
	return n
}
