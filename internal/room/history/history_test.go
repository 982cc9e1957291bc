package history

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chorus/internal/room"

	"pgregory.net/rapid"
)

var (
	claude = room.Agent{Name: "claude", User: "900", InnerName: "Inner"}
	ada    = room.Author{ID: "1", Name: "ada", Member: true, Roles: []string{"Member"}}
	admin  = room.Author{ID: "2", Name: "bo", Member: true, Roles: []string{"Admin"}}
)

// world is channels with messages, read as the platform would give them.
type world struct {
	channels map[string][]room.Message
	secret   map[string]bool
	reads    int
}

func (w *world) say(channel string, by room.Author, id int, text string) {
	if w.channels == nil {
		w.channels = map[string][]room.Message{}
	}
	w.channels[channel] = append(w.channels[channel], room.Message{ID: strconv.Itoa(id), In: room.Channel{Guild: "7", ID: channel}, Author: by, Text: text})
}

func (w *world) read(n Need) Page {
	w.reads++
	if w.secret[n.Channel] && len(n.Askers) > 0 {
		return Page{Denied: true}
	}
	all, ok := w.channels[n.Channel]
	if !ok {
		return Page{Err: errors.New("the channel is gone")}
	}
	var out []room.Message
	for i := len(all) - 1; i >= 0 && len(out) < n.Limit; i-- {
		if n.Before == "" || room.Older(all[i].ID, n.Before) {
			out = append(out, all[i])
		}
	}
	return Page{Messages: out}
}

func (w *world) walk(in room.Channel, rules Rules) Result {
	walk := Start(claude, in, "", rules)
	for need, more := walk.Next(); more; need, more = walk.Next() {
		walk.Give(w.read(need))
	}
	return walk.Result()
}

func ids(r Result) string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

func link(channel string, id int) string {
	return fmt.Sprintf("https://discord.com/channels/7/%s/%d", channel, id)
}

func last(channel string, id int) string { return ".history\n---\nlast: " + link(channel, id) }

// target has 10 to 19; each case adds the room itself, whose channel is 2.
func target() *world {
	w := &world{}
	for i := 10; i < 20; i++ {
		w.say("1", ada, i, "t")
	}
	return w
}

func TestDossierCases(t *testing.T) {
	t.Parallel()
	here := room.Channel{Guild: "7", ID: "2"}
	for _, c := range []struct {
		name  string
		rules Rules
		talk  []room.Message // ids from 100 on
		want  string
		check func(Result) bool
	}{
		{"B17 clear", Rules{}, talk("x", ".history\n---", "z"), "102", func(r Result) bool { return r.Cleared && r.Origin == "2" }},
		{"only first clears", Rules{}, talk("x", ".history\n---\nfirst: 5", "z"), "102", func(r Result) bool { return r.Cleared }},
		{"B18 range", Rules{}, talk("x", "y", last("1", 15), "z", "w"), "10 11 12 13 14 15 103 104", func(r Result) bool { return !r.Cleared && len(r.Notes) == 0 }},
		{"D8 first and last", Rules{}, talk("x", ".history\n---\nfirst: "+link("1", 12)+"\n\nlast: "+link("1", 15), "z"), "12 13 14 15 102", nil},
		{"B20 first does not exist", Rules{}, talk("x", ".history\n---\nlast: "+link("1", 15)+"\nfirst: "+link("1", 999), "z"), "10 11 12 13 14 15 102",
			func(r Result) bool { return len(r.Notes) == 1 }},
		{"B20 first was long ago", Rules{}, talk(".history\n---\nlast: "+link("1", 15)+"\nfirst: "+link("1", 1), "z"), "10 11 12 13 14 15 101", nil},
		{"B23 the newest decides", Rules{}, talk("x", ".history\n---", "y", last("1", 12), "z"), "10 11 12 104", nil},
		{"D11 a clear newer than a range", Rules{}, talk(last("1", 12), "y", ".history\n---", "z"), "103", nil},
		{"B26 the target in any case", Rules{}, talk("x", ".history inner\n---", "z"), "102", nil},
		{"several targets", Rules{}, talk("x", ".history other INNER\n---", "z"), "102", nil},
		{"for somebody else", Rules{}, talk("x", ".history other\n---", "z"), "100 101 102", nil},
		{"B27 a member", Rules{Roles: []string{"Admin"}}, talk("x", ".history\n---", "z"), "100 102", func(r Result) bool { return strings.Contains(r.Notes[0].Text, "role Admin") }},
		{"malformed", Rules{}, talk("x", ".history", "y", ".history\nnonsense", ".history\n---\nlsat: 5", "z"), "100 102 105", func(r Result) bool { return len(r.Notes) == 3 }},
		{"at the margin only", Rules{}, talk("x", " .history\n---", ".historyx\n---", "z"), "100 101 102 103", nil},
		{"D15 a bad link", Rules{}, talk("x", ".history\n---\nlast: http://example.com/", "z"), "100 102", func(r Result) bool { return strings.Contains(r.Notes[0].Text, "not a message link") }},
		{"D15 to itself", Rules{}, talk("x", ".history\n---\nlast: 103", "y", "z"), "102 103", func(r Result) bool { return strings.Contains(r.Notes[0].Text, "leads back") }},
		{"a channel that is gone", Rules{}, talk("x", last("404", 5), "z"), "100 102", func(r Result) bool { return strings.Contains(r.Notes[0].Text, "gone") }},
		{"the budget holds", Rules{Budget: 4}, talk("x", last("1", 15), "z", "w"), "14 15 102 103", nil},
	} {
		w := target()
		w.channels["2"] = c.talk
		got := w.walk(here, c.rules)
		if ids(got) != c.want || c.check != nil && !c.check(got) {
			t.Errorf("%s: %s (%+v)\nwant %s", c.name, ids(got), got.Notes, c.want)
		}
	}
}

func talk(texts ...string) (out []room.Message) {
	for i, text := range texts {
		out = append(out, room.Message{ID: strconv.Itoa(100 + i), In: room.Channel{Guild: "7", ID: "2"}, Author: ada, Text: text})
	}
	return out
}

func TestB21Nested(t *testing.T) {
	t.Parallel()
	w := target()
	w.channels["2"] = talk("x", last("1", 15), "z")
	w.say("3", ada, 200, "old")
	w.say("3", admin, 201, last("2", 102))
	w.say("3", ada, 202, "new")
	if got := w.walk(room.Channel{Guild: "7", ID: "3"}, Rules{}); ids(got) != "10 11 12 13 14 15 102 202" || got.Origin != "3" {
		t.Errorf("%s from %s", ids(got), got.Origin)
	}
	if got := w.walk(room.Channel{Guild: "7", ID: "3"}, Rules{Depth: 1}); ids(got) != "102 202" || len(got.Notes) != 1 {
		t.Errorf("depth 1: %s %v", ids(got), got.Notes)
	}
}

func TestB24ManyPages(t *testing.T) {
	t.Parallel()
	w := target()
	w.say("2", ada, 100, "x")
	w.say("2", ada, 101, last("1", 11))
	want := "10 11"
	for i := 200; i < 450; i++ {
		w.say("2", ada, i, "new")
		want += " " + strconv.Itoa(i)
	}
	if got := w.walk(room.Channel{Guild: "7", ID: "2"}, Rules{}); ids(got) != want {
		t.Errorf("%s", ids(got))
	}
}

func TestB27Roles(t *testing.T) {
	t.Parallel()
	rules := Rules{Roles: []string{"Admin"}}
	for _, c := range []struct {
		who  room.Author
		want bool
	}{{ada, false}, {admin, true}, {room.Author{ID: "3", Roles: []string{"Admin"}}, false}, {room.Author{ID: "4", Bot: true, Member: true, Roles: []string{"Admin"}}, false}} {
		if rules.May(c.who) != c.want {
			t.Errorf("%+v: %v", c.who, !c.want)
		}
	}
	if !(Rules{}).May(ada) || (Rules{}).May(room.Author{Bot: true}) {
		t.Error("without roles everybody may who is a person")
	}
}

// TestCycle is D15: two orders that point at each other.
func TestCycle(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.say("1", ada, 10, "a")
	w.say("1", ada, 11, last("2", 31))
	w.say("1", ada, 12, "b")
	w.say("2", ada, 20, "c")
	w.say("2", ada, 30, last("1", 12))
	w.say("2", ada, 31, "d")
	got := w.walk(room.Channel{Guild: "7", ID: "1"}, Rules{})
	if ids(got) != "31 12" || len(got.Notes) != 1 || w.reads > 4 {
		t.Errorf("%s %v after %d reads", ids(got), got.Notes, w.reads)
	}
}

// TestSecret is D10: an order does not open what the asker may not read.
func TestSecret(t *testing.T) {
	t.Parallel()
	w := target()
	w.secret = map[string]bool{"1": true}
	w.channels["2"] = talk("x", last("1", 15), "z")
	if got := w.walk(room.Channel{Guild: "7", ID: "2"}, Rules{}); ids(got) != "100 102" || !strings.Contains(got.Notes[0].Text, "may read") {
		t.Errorf("%s %v", ids(got), got.Notes)
	}
}

func TestPlatformThread(t *testing.T) {
	t.Parallel()
	w := &world{}
	for i := 10; i < 20; i++ {
		w.say("1", ada, i, "parent")
	}
	w.say("15", ada, 30, "in the thread")
	thread := room.Channel{Guild: "7", ID: "15", Parent: "1"}
	if got := w.walk(thread, Rules{}); ids(got) != "10 11 12 13 14 15 30" {
		t.Error(ids(got))
	}
	w.say("15", ada, 31, ".history\n---")
	w.say("15", ada, 32, "fresh")
	if got := w.walk(thread, Rules{}); ids(got) != "32" || !got.Cleared {
		t.Error(ids(got))
	}
}

// TestEveryWalkEnds, wherever the orders point.
func TestEveryWalkEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{secret: map[string]bool{"3": true}}
		channels := []string{"1", "2", "3", "4"}
		for id := range rapid.IntRange(1, 60).Draw(t, "messages") {
			text := rapid.SampledFrom([]string{"words", "words", ".history\n---", ".history x\n---", ".history", "order", "order"}).Draw(t, "text")
			if text == "order" {
				text = last(rapid.SampledFrom(channels).Draw(t, "to"), rapid.IntRange(0, 70).Draw(t, "last"))
				if rapid.Bool().Draw(t, "bounded") {
					text += "\nfirst: " + link(rapid.SampledFrom(channels).Draw(t, "from"), rapid.IntRange(0, 70).Draw(t, "first"))
				}
			}
			w.say(rapid.SampledFrom(channels).Draw(t, "channel"), rapid.SampledFrom([]room.Author{ada, admin}).Draw(t, "by"), id+1, text)
		}
		rules := Rules{Budget: rapid.IntRange(1, 40).Draw(t, "budget"), Depth: rapid.IntRange(1, 5).Draw(t, "depth"), Page: rapid.IntRange(1, 10).Draw(t, "page")}
		got := w.walk(room.Channel{Guild: "7", ID: "1", Parent: rapid.SampledFrom([]string{"", "2"}).Draw(t, "parent")}, rules)
		if w.reads > 300 {
			t.Fatalf("%d reads", w.reads)
		}
		if len(got.Messages) > rules.Budget {
			t.Fatalf("%d messages", len(got.Messages))
		}
		seen := map[string]bool{}
		for _, m := range got.Messages {
			cmd, is, err := Parse(m.Text)
			if seen[m.ID] || m.In.ID == "3" || is && (err != nil || cmd.Targets == "") {
				t.Fatalf("%+v in %s", m, ids(got))
			}
			seen[m.ID] = true
		}
	})
}

func TestParseLink(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Link{
		"https://discord.com/channels/1/2/3":       {"1", "2", "3"},
		"<https://ptb.discord.com/channels/1/2/3>": {"1", "2", "3"},
		" https://discordapp.com/channels/1/2/3 ":  {"1", "2", "3"},
		"123456789012345678-123456789012345679":    {"", "123456789012345678", "123456789012345679"},
		"123":                                      {"", "", "123"},
	} {
		if got, err := ParseLink(in); err != nil || got != want {
			t.Errorf("%q: %+v %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "x", "https://discord.com/channels/@me/2/3", "https://example.com/channels/1/2/3", "https://discord.com.evil.example/channels/1/2/3", "https://discord.com/channels/1/2", "-5"} {
		if got, err := ParseLink(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hello": "no", "": "no", ".historyx\n---": "no", " .history\n---": "no", ".history": "mistake", ".history\n--": "mistake", ".history\n---\nlast": "mistake",
		".history\n---": "clear", ".history\t@a\n---  \n\n": "clear", ".history a b\n---\nlast: 5": "range", ".history\r\n---\r\nLAST: 5": "range",
		".history\n---\nfirst: " + link("1", 2) + "\nlast: " + link("2", 3): "mistake",
	} {
		got := "range"
		switch cmd, is, err := Parse(text); {
		case err != nil:
			got = "mistake"
		case !is:
			got = "no"
		case cmd.Clear():
			got = "clear"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if _, _, err := Parse(".history\n---\nlsat: 5"); err == nil || !strings.Contains(err.Error(), "did you mean last") {
		t.Error(err)
	}
}

// TestPrograms: what an agent wrote is no order, and not shown either.
func TestPrograms(t *testing.T) {
	t.Parallel()
	w := target()
	w.say("2", ada, 100, "x")
	w.say("2", room.Author{ID: "900", Bot: true}, 101, last("1", 15))
	w.say("2", ada, 102, "z")
	if got := w.walk(room.Channel{Guild: "7", ID: "2"}, Rules{}); ids(got) != "100 102" || got.Origin != "" {
		t.Error(ids(got), got.Origin)
	}
	if got := w.walk(room.Channel{Guild: "7", ID: "404"}, Rules{}); len(got.Notes) != 1 || !strings.Contains(got.Notes[0].Text, "gone") {
		t.Errorf("a room that cannot be read: %+v", got.Notes)
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"1": "2", "9": "10", "199": "200", "": "1", "99999999999999999999": "100000000000000000000"} {
		if got := after(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{".history\n---", ".history a b\n---\nfirst: 1\nlast: 2", ".history\r\n---\r\nlast: " + link("1", 2), ".history\n---\nlast:", ".history\n--- \n\n\n", ".history\n---\nlast: 1\nlast: 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cmd, is, err := Parse(s)
		if !is && (err != nil || cmd != Command{}) || err != nil && (err.Error() == "" || cmd != Command{}) {
			t.Fatalf("%q: %+v %v %v", s, cmd, is, err)
		}
		if is && !strings.HasPrefix(s, word) {
			t.Fatalf("%q is an order", s)
		}
	})
}

func TestNotesAreForTheirOrders(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.channels = map[string][]room.Message{"2": talk("x", ".history\n---\nlast: "+link("404", 5), ".history\n---\nfirst: 1\nfirst: 2", "z")}
	got := w.walk(room.Channel{Guild: "7", ID: "2"}, Rules{})
	var orders []string
	for _, n := range got.Notes {
		orders = append(orders, n.Message)
	}
	if !slices.Equal(orders, []string{"102", "101"}) {
		t.Errorf("%+v", got.Notes)
	}
}
