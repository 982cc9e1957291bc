package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

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
		for _, word := range strings.Fields(m.Text()) {
			if strings.HasSuffix(word, ";") && (strings.HasPrefix(word, "answer-") || strings.HasPrefix(word, "end-")) {
				found[word] = append(found[word], m)
			}
		}
	}
	at := map[*talk]discordsim.ID{}
	refusals, toldOf := map[*talk][]*asked{}, map[*talk]int{}
	for _, a := range g.asked {
		said := found[fmt.Sprintf("answer-%d;", a.n)]
		if a.refused && len(said) == 0 {
			g.refused++
			n, told := 0, 0
			for _, m := range ours {
				if m.Reference != nil && m.Reference.MessageID == a.id {
					n, told = n+1, told+notTaken(m.Text())
				}
			}
			if n > 1 {
				g.Errorf("message %d is refused, and %d messages say so", a.n, n)
			}
			refusals[a.talk] = append(refusals[a.talk], a)
			toldOf[a.talk] += told
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
	for t, list := range refusals {
		if toldOf[t] != len(list) {
			g.Errorf("of a conversation in %s-%d %d messages were refused, the first of them %d, and %d were told", routings[t.channel], t.channel, len(list), list[0].n, toldOf[t])
		}
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

// counted is how a notice ends that speaks of several messages which found the queue full.
var counted = regexp.MustCompile(`; (\d+) messages were not taken\.$`)

// notTaken is of how many refused messages a notice speaks.
func notTaken(text string) int {
	if found := counted.FindStringSubmatch(text); found != nil {
		n, _ := strconv.Atoi(found[1]) // it is a number
		return n
	}
	return 1
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
		if !a.question {
			continue
		}
		switch n := done[fmt.Sprintf("effect-%d", a.n)]; {
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
