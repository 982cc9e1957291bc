package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/room"

	"pgregory.net/rapid"
)

var (
	opus   = room.Agent{Name: "opus", User: "901", Username: "Opus", InnerName: "Opus", Webhooks: []string{"77"}}
	haiku  = room.Agent{Name: "haiku", User: "902", Username: "Haiku", InnerName: "Haiku"}
	ada    = room.Author{ID: "1", Name: "ada"}
	plain  = room.Channel{Guild: "10", ID: "20", Name: "talk"}
	branch = room.Channel{Guild: "10", ID: "500", Parent: "20", Name: "aside"}
)

func say(id string, in room.Channel, text string) room.Message {
	return room.Message{ID: id, In: in, Author: ada, Text: text}
}

func by(m room.Message, who room.Author) room.Message         { m.Author = who; return m }
func replying(m room.Message, to string) room.Message         { m.ReplyTo = to; return m }
func mentioning(m room.Message, users ...string) room.Message { m.Mentions = users; return m }
func listen(r Routing, agents ...room.Agent) (out []Listener) {
	for _, a := range agents {
		out = append(out, Listener{Agent: a, Routing: r, Answer: AnswerAll})
	}
	return out
}

// produced: message 300 is an answer of opus in the thread of 299, 301 one of haiku's.
func remembered() Known {
	return Known{
		Platform: "discord",
		Produced: func(id string) (chat.ThreadID, bool) {
			thread, ok := map[string]chat.ThreadID{
				"300": "discord:10/20:299@opus", "301": "discord:10/20:299@haiku", "500": "discord:10/20:299@opus", "302": "discord:10/20:20@haiku",
			}[id]
			return thread, ok
		},
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	loose := room.Channel{Guild: "10", ID: "600", Parent: "20"}
	bot := room.Author{ID: "5", Name: "feed", Bot: true}
	for _, c := range []struct {
		name string
		m    room.Message
		who  []Listener
		want []string // thread way prompt, with more where it matters
	}{
		{"a message opens a thread", say("400", plain, "hi"), listen(Reply, opus), []string{"discord:10/20:400@opus opened prompt queue to 20"}},
		{"A47 another one opens another, busy or not", say("401", plain, "hi"), listen(Reply, opus), []string{"discord:10/20:401@opus opened prompt queue to 20"}},
		{"A46 a reply goes to the thread that produced the message", replying(say("402", plain, "and?"), "300"), listen(Reply, opus, haiku), []string{"discord:10/20:299@opus continued prompt inject to 20"}},
		{"a reply to an unknown message opens a thread", replying(say("403", plain, "and?"), "111"), listen(Reply, opus), []string{"discord:10/20:403@opus opened prompt queue to 20"}},
		{"a reply to somebody who left opens a thread", replying(say("404", plain, "and?"), "301"), listen(Reply, opus), []string{"discord:10/20:404@opus opened prompt queue to 20"}},
		{"two agents both answer", say("405", plain, "hi"), listen(Reply, opus, haiku), []string{"discord:10/20:405@haiku opened prompt queue to 20", "discord:10/20:405@opus opened prompt queue to 20"}},
		{"a mention is for the one it names", mentioning(say("406", plain, "hi"), "902"), listen(Reply, opus, haiku), []string{"discord:10/20:406@haiku opened prompt queue to 20"}},
		{"a reply that mentions another is for both", mentioning(replying(say("407", plain, "hi"), "300"), "902"), listen(Reply, opus, haiku),
			[]string{"discord:10/20:299@opus continued prompt inject to 20", "discord:10/20:407@haiku opened prompt queue to 20"}},
		{"a platform thread on an answer goes on with it", say("408", branch, "more"), listen(Reply, opus), []string{"discord:10/20:299@opus continued prompt inject to 500"}},
		{"another platform thread is one conversation under its parent", say("409", loose, "hi"), listen(Reply, opus), []string{"discord:10/20:600@opus in thread prompt queue to 600"}},
		{"one's own words", by(say("410", plain, "hi"), room.Author{ID: "901", Bot: true}), listen(Reply, opus), nil},
		{"one's own webhook", by(say("411", plain, ".opus>[bash]"), room.Author{ID: "77", Webhook: "77"}), listen(Room, opus), nil},
		{"a bot that says something", by(say("412", plain, "hi"), bot), listen(Reply, opus), nil},
		{"B74 a bot that replies", replying(by(say("413", plain, "hi"), bot), "300"), listen(Reply, opus), nil},
		{"a bot that mentions", mentioning(by(say("414", plain, "hi"), bot), "901"), listen(Reply, opus), []string{"discord:10/20:414@opus opened prompt queue to 20"}},
		{"a dot is only a dot outside of rooms", say("415", plain, "...and?"), listen(Reply, opus), []string{"discord:10/20:415@opus opened prompt queue to 20"}},
		{"an order", say("416", plain, ".history\n---"), listen(Reply, opus), nil},
		{"a notice", room.Message{ID: "417", In: plain, Author: ada, System: true}, listen(Room, opus), nil},

		{"routing thread opens a platform thread", say("420", plain, "hi"), listen(Thread, opus), []string{"discord:10/20:420@opus opened prompt queue to 420 open"}},
		{"and stays in it", say("421", room.Channel{Guild: "10", ID: "420", Parent: "20"}, "more"), listen(Thread, opus), []string{"discord:10/20:420@opus in thread prompt queue to 420"}},
		{"a reply from outside goes on inside", replying(say("423", plain, "more"), "300"), listen(Thread, opus), []string{"discord:10/20:299@opus continued prompt inject to 299"}},
		{"a reply to what stands elsewhere opens another", replying(say("424", room.Channel{Guild: "10", ID: "21"}, "more"), "300"), listen(Thread, opus), []string{"discord:10/21:424@opus opened prompt queue to 424 open"}},
		{"direct messages have no threads", say("422", room.Channel{ID: "40"}, "hi"), listen(Thread, opus), []string{"discord:@me/40:40@opus in thread prompt queue to 40"}},

		{"a room is one conversation", say("430", plain, "hi"), listen(Room, opus), []string{"discord:10/20:20@opus in room queue to 20"}},
		{"two agents hear the same words", say("431", plain, "hi"), listen(Room, opus, haiku), []string{"discord:10/20:20@haiku in room queue to 20", "discord:10/20:20@opus in room queue to 20"}},
		{"one hears what the other says", by(say("302", plain, "well"), room.Author{ID: "902", Bot: true}), listen(Room, opus, haiku), []string{"discord:10/20:20@opus in room queue to 20"}},
		{"B30 a dot hides", say("432", plain, "  .x"), listen(Room, opus), []string{"discord:10/20:20@opus in room queue to 20 hidden"}},
		{"B30 an ellipsis hides too", say("433", plain, "<reply:@bob> ...three"), listen(Room, opus), []string{"discord:10/20:20@opus in room queue to 20 hidden"}},
		{"a room in a platform thread", say("434", branch, "hi"), listen(Room, opus), []string{"discord:10/20:500@opus in room queue to 500"}},
		{"bots are heard in rooms", by(say("435", plain, "news"), bot), listen(Room, opus), []string{"discord:10/20:20@opus in room queue to 20"}},
	} {
		heard, err := Message(c.m, c.who, remembered())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []string
		for _, h := range heard {
			got = append(got, describe(h))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// intake: queue was ignored for replies, which were always given to the run that is on.
func TestIntakeOfReplies(t *testing.T) {
	t.Parallel()
	for set, want := range map[chat.Intake]chat.Intake{"": chat.Inject, chat.Queue: chat.Queue, chat.Interrupt: chat.Interrupt} {
		for _, routing := range []Routing{Reply, Thread} {
			list := listen(routing, opus)
			list[0].Intake = set
			heard, err := Message(replying(say("402", plain, "and?"), "300"), list, remembered())
			if err != nil || len(heard) != 1 || heard[0].Intake != want {
				t.Errorf("%s, set to %q: %+v, %v", routing, set, heard, err)
			}
		}
	}
}

// A bot answered everything in every channel: "lol", what is for everyone, what one person
// tells another; and of several bots each.
func TestAnswersWhereItBelongs(t *testing.T) {
	t.Parallel()
	bob := room.Author{ID: "2", Name: "bob"}
	quoting := func(m room.Message, who room.Author) room.Message {
		m.ReplyTo, m.Quoted = "111", &room.Message{ID: "111", Author: who}
		return m
	}
	everyone := say("400", plain, "@everyone lunch")
	everyone.Everyone = true
	roles := say("400", plain, "mods?")
	roles.Roles = []string{"55"}
	inside := say("401", room.Channel{Guild: "10", ID: "420", Parent: "20"}, "more")
	for _, c := range []struct {
		name                   string
		m                      room.Message
		elsewhere, bound, both string // who answers: nobody is bound, opus is, both are
	}{
		{"words to nobody", say("400", plain, "lol"), "", "opus", "haiku"},
		{"a mention", mentioning(say("400", plain, "hi"), "901"), "opus", "opus", "opus"},
		{"a mention of both", mentioning(say("400", plain, "hi"), "901", "902"), "haiku opus", "haiku opus", "haiku opus"},
		{"a mention with others", mentioning(say("400", plain, "hi"), "901", "2"), "opus", "opus", "opus"},
		{"a mention of others", mentioning(say("400", plain, "hi"), "2"), "", "", ""},
		{"a mention of a role", roles, "", "", ""},
		{"everyone", everyone, "", "", ""},
		{"a reply to it", replying(say("400", plain, "and?"), "300"), "opus", "opus", "opus"},
		{"a reply to the other", replying(say("400", plain, "and?"), "301"), "haiku", "haiku", "haiku"},
		{"a reply to a person", quoting(say("400", plain, "yes"), bob), "", "", ""},
		{"a reply to oneself", quoting(say("400", plain, "and"), ada), "", "opus", "haiku"},
		{"a reply to what it said before this home was made", quoting(say("400", plain, "and"), room.Author{ID: "901", Bot: true}), "opus", "opus", "opus"},
		{"a platform thread on an answer", say("400", branch, "more"), "opus", "opus", "opus"},
		{"a mention of others in it", mentioning(say("400", branch, "more"), "2"), "", "", ""},
		{"a platform thread that is a conversation", inside, "opus", "opus", "opus"},
	} {
		known := remembered()
		known.Joined = func(id chat.ThreadID) bool { return id == "discord:10/20:420@opus" }
		routing := Reply
		if c.m.In.ID == "420" {
			routing = Thread
		}
		for _, at := range []struct {
			bound [2]bool
			mode  Answer
			want  string
		}{{[2]bool{}, "", c.elsewhere}, {[2]bool{true}, AnswerBound, c.bound}, {[2]bool{true, true}, AnswerBound, c.both}, {[2]bool{true, true}, AnswerMentioned, c.elsewhere}} {
			list := listen(routing, opus, haiku)
			for i := range list {
				list[i].Answer, list[i].Bound = at.mode, at.bound[i]
			}
			heard, err := Message(c.m, list, known)
			if err != nil {
				t.Fatal(err)
			}
			var who []string
			for _, h := range heard {
				who = append(who, h.Agent.Name)
			}
			slices.Sort(who)
			if got := strings.Join(who, " "); got != at.want {
				t.Errorf("%s, %+v: %q answer, want %q", c.name, at, got, at.want)
			}
		}
	}
}

func describe(h Heard) string {
	s := fmt.Sprintf("%s %s", h.Thread, h.Way)
	if h.Prompt {
		s += " prompt"
	}
	s += fmt.Sprintf(" %s to %s", h.Intake, h.Post)
	if h.Open {
		s += " open"
	}
	if h.Hidden {
		s += " hidden"
	}
	return s
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	if _, err := Message(say("1", plain, "x"), listen("telepathy", opus), Known{Platform: "discord"}); err == nil {
		t.Error("an unknown routing was taken")
	}
	if _, err := Message(say("1", room.Channel{Guild: "a:b", ID: "c"}, "x"), listen(Reply, opus), Known{Platform: "discord"}); err == nil {
		t.Error("a colon in the place was taken")
	}
}

// TestRules hold for any message: ids parse and name the listener, nobody hears
// themselves, no thread twice, and what is answered outside of rooms was for somebody.
func TestRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		authors := []room.Author{ada, {ID: "901", Bot: true}, {ID: "902", Bot: true}, {ID: "5", Bot: true}, {ID: "77", Webhook: "77"}}
		m := room.Message{
			ID:       rapid.SampledFrom([]string{"300", "301", "400", "401"}).Draw(t, "id"),
			In:       rapid.SampledFrom([]room.Channel{plain, branch, {ID: "40"}}).Draw(t, "in"),
			Author:   rapid.SampledFrom(authors).Draw(t, "author"),
			Text:     rapid.SampledFrom([]string{"hi", ".x", ".history", "m continue", ""}).Draw(t, "text"),
			ReplyTo:  rapid.SampledFrom([]string{"", "300", "301", "9"}).Draw(t, "reply"),
			Mentions: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"901", "902", "1"}), func(s string) string { return s }).Draw(t, "mentions"),
		}
		routing := rapid.SampledFrom([]Routing{Reply, Thread, Room, ""}).Draw(t, "routing")
		heard, err := Message(m, listen(routing, opus, haiku), remembered())
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Message(m, listen(routing, haiku, opus), remembered())
		if len(again) != len(heard) {
			t.Fatalf("%v or %v", heard, again)
		}
		for i, h := range heard {
			if _, err := chat.ParseThreadID(string(h.Thread)); err != nil || h.Thread.Agent() != h.Agent.Name {
				t.Fatalf("%s for %s: %v", h.Thread, h.Agent.Name, err)
			}
			if again[i].Thread != h.Thread || i > 0 && heard[i-1].Thread >= h.Thread {
				t.Fatalf("order: %v", heard)
			}
			if h.Agent.Wrote(m.Author) && m.ID == "400" {
				t.Fatalf("%s hears itself", h.Agent.Name)
			}
			if h.Prompt != (routing != Room) || h.Prompt && m.Author.Program() && !h.Agent.Mentioned(m) {
				t.Fatalf("prompt: %+v", h)
			}
		}
	})
}
