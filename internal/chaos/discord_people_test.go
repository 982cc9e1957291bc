package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/sim/discordsim"
)

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

// say has somebody ask something, somewhere.
func (g *guild) say(n int) {
	g.Helper()
	person := fmt.Sprintf("person%d", g.dice.IntN(g.people))
	channel := g.dice.IntN(len(routings))
	most := 4 // of one conversation that wait
	crowd := n%100 >= 50 && n%100 < 50+crowded
	if crowd {
		channel, most = busy, crowded // all at once: more than may wait, so that some are refused
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
		open := func(k *talk) bool { return k.place != "" && k.open() < most }
		if k = g.find(channel, open); crowd {
			k = g.first(channel, open)
		}
	case "room":
		if channel == alone {
			most = 1
		}
		k = g.room(channel)
		g.until(func() bool { return k.open() < most })
	}
	text := fmt.Sprintf("!say answer-%d;", n)
	kind := g.dice.IntN(12)
	if n%100 == 50 {
		kind = -1
	}
	switch kind {
	case -1: // long enough that the crowd finds it at work
		text = "!chunk 1\n!slow 100ms\n" + text + "\n!say in my own time"
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

// crowded is how many talk at once into one conversation in the channel busy.
const busy, crowded = 6, 10

// first finds the oldest conversation that fits.
func (g *guild) first(channel int, fits func(*talk) bool) *talk {
	i := slices.IndexFunc(g.talks, func(k *talk) bool { return k.channel == channel && len(k.said) > 0 && fits(k) })
	if i < 0 {
		return nil
	}
	return g.talks[i]
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

// until takes in what happens until something is so.
func (g *guild) until(is func() bool) {
	g.Helper()
	again := time.NewTicker(clickAgain)
	defer again.Stop()
	for !is() {
		g.next(again.C)
		g.click()
	}
}

// read takes in what happens for a while.
func (g *guild) read(d time.Duration) {
	g.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !g.next(timer.C) {
	}
	g.click()
}

// next takes in one thing that happens. It reports whether the time was up instead.
func (g *guild) next(late <-chan time.Time) bool {
	g.Helper()
	select {
	case h := <-g.events:
		g.happened(h)
		return false
	case <-late:
		return true
	case <-g.ctx.Done():
		g.Fatalf("%v: %d of %d messages are not settled, %d questions open; seed %d\n%s", g.ctx.Err(), g.unsettled(), len(g.asked), len(g.cards), g.seed, g.board())
		return true
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
			if a := g.byID[m.Reference.MessageID]; a != nil && !strings.Contains(m.Text(), "May I ") && !strings.Contains(fmt.Sprint(m.CustomIDs()), "c1:stop:") {
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
	if !strings.Contains(m.Text(), "May I ") {
		return
	}
	_, rest, open := strings.Cut(fmt.Sprint(m.CustomIDs()), "c1:yes:")
	if !open {
		delete(g.cards, m.ID)
		return
	}
	_, number, _ := strings.Cut(m.Text(), "effect-")
	number, _, _ = strings.Cut(number, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(g.asked) || g.asked[n].n != n {
		g.Fatalf("a question that nobody asked: %q", m.Text())
	}
	g.cards[m.ID], g.cardOf[m.ID] = "c1:yes:"+rest[:26], g.asked[n]
}

// clickAgain is how long a person waits for a button to do something.
const clickAgain = time.Second

// click answers open questions; whoever is not heard clicks again after a while.
func (g *guild) click() {
	for id, button := range g.cards {
		a := g.cardOf[id]
		if time.Since(a.cardClicked) < clickAgain {
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
