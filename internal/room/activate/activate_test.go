package activate

import (
	"slices"
	"testing"

	"chorus/internal/room"

	"pgregory.net/rapid"
)

var (
	claude = room.Agent{Name: "claude", User: "900", Username: "larping", InnerName: "Claude", Aliases: []string{"Cl. Opus"}, Webhooks: []string{"77"}}
	ada    = room.Author{ID: "1", Name: "ada"}
	botA   = room.Author{ID: "A", Name: "a", Bot: true}
	botB   = room.Author{ID: "B", Name: "b", Bot: true}
	rules  = Rules{MaxBotReplyChainDepth: 3, ChainEmote: "🔁"}
)

func said(by room.Author, text string, mentions ...string) room.Event {
	return room.Event{Kind: room.Said, Message: room.Message{ID: "50", In: room.Channel{Guild: "10", ID: "20", Name: "talk"}, Author: by, Text: text, Mentions: mentions}}
}

func never(int) int  { return 1 }
func always(int) int { return 0 }

func TestDecide(t *testing.T) {
	t.Parallel()
	named := rules
	named.ReplyOnName = true
	random := rules
	random.ReplyOnRandom = 500
	owned := rules
	owned.AutoReplyOwnChannel = true
	deaf := rules
	deaf.MaxBotReplyChainDepth = 0
	inOwn := said(ada, "hi")
	inOwn.Message.In.Name = "larping"
	dotOwn := said(ada, ".hi")
	dotOwn.Message.In.Name = "larping"
	notice := said(ada, "joined", "900")
	notice.Message.System = true
	deep := Seen{Chain: []room.Author{botA, botB, botB, botA}}
	for _, c := range []struct {
		name  string
		e     room.Event
		rules Rules
		seen  Seen
		dice  Dice
		want  Decision
	}{
		{"nobody asked", said(ada, "hello all"), named, Seen{}, never, Decision{}},
		{"mention", said(ada, "hi <@900>", "900"), rules, Seen{}, never, Decision{Answer: true, Why: ByMention}},
		{"mention of another", said(ada, "hi <@901>", "901"), rules, Seen{}, never, Decision{}},
		{"reply", said(ada, "and?"), rules, Seen{Replied: true}, never, Decision{Answer: true, Why: ByReply}},
		{"B74 reply of a bot without a mention", said(botA, "and?"), rules, Seen{Replied: true, Chain: []room.Author{botA}}, never, Decision{Why: NotReplied}},
		{"reply of a bot with a mention", said(botA, "and?", "900"), rules, Seen{Replied: true, Chain: []room.Author{botA}}, never, Decision{Answer: true, Why: ByMention}},
		{"B29 a chain that is too deep", said(botA, "and?", "900"), rules, deep, never, Decision{Why: TooDeep, React: "🔁"}},
		{"a person ends the chain", said(ada, "and?", "900"), rules, Seen{Chain: []room.Author{ada, botA, botB, botA}}, never, Decision{Answer: true, Why: ByMention}},
		{"bots that talk without replying", said(botA, "claude?", "900"), rules, Seen{Chain: []room.Author{botA}, Recent: []room.Author{botA, botB, botA, botB}}, never, Decision{Why: TooDeep, React: "🔁"}},
		{"depth 0: no bot is answered", said(botA, "hi", "900"), deaf, Seen{Chain: []room.Author{botA}}, never, Decision{Why: TooDeep, React: "🔁"}},
		{"depth 0: people are", said(ada, "hi", "900"), deaf, Seen{Chain: []room.Author{ada}}, never, Decision{Answer: true, Why: ByMention}},
		{"name", said(ada, "what does CLAUDE think?"), named, Seen{}, never, Decision{Answer: true, Why: ByName}},
		{"name, switched off", said(ada, "what does claude think?"), rules, Seen{}, never, Decision{}},
		{"alias", said(ada, "ask cl. opus."), named, Seen{}, never, Decision{Answer: true, Why: ByName}},
		{"name within a word", said(ada, "claudette"), named, Seen{}, never, Decision{}},
		{"name in code", said(ada, "run `claude`"), named, Seen{}, never, Decision{}},
		{"random hits", said(ada, "hm"), random, Seen{}, always, Decision{Answer: true, Why: ByChance}},
		{"random misses", said(ada, "hm"), random, Seen{}, never, Decision{}},
		{"random 0 never rolls", said(ada, "hm"), rules, Seen{}, func(int) int { panic("rolled") }, Decision{}},
		{"random on deep bots", said(botA, "hm"), random, deep, always, Decision{Why: TooDeep}},
		{"own channel", inOwn, owned, Seen{}, never, Decision{Answer: true, Why: ByChannel}},
		{"own channel, switched off", inOwn, rules, Seen{}, never, Decision{}},
		{"own channel, somewhere else", said(ada, "hi"), owned, Seen{}, never, Decision{}},
		{"own channel, a dot", dotOwn, owned, Seen{}, never, Decision{Why: NotWords}},
		{"a dot message with a mention", said(ada, ".psst <@900>", "900"), rules, Seen{}, never, Decision{Why: NotWords}},
		{"an order with a mention", said(ada, ".history <@900>\n---", "900"), rules, Seen{}, never, Decision{Why: NotWords}},
		{"a notice", notice, rules, Seen{}, never, Decision{Why: NotWords}},
		{"own words", said(room.Author{ID: "900", Bot: true}, "claude", "900"), named, Seen{}, always, Decision{Why: NotWords}},
		{"own webhook", said(room.Author{ID: "77", Webhook: "77"}, "claude"), named, Seen{}, always, Decision{Why: NotWords}},
		{"a bridge speaks for people", said(room.Author{ID: "8", Webhook: "8", Name: "Bo[oblique:1]"}, "x"), rules, Seen{Replied: true}, never, Decision{Answer: true, Why: ByReply}},
		{"m with a mention", said(ada, "m continue <@900>", "900"), rules, Seen{}, never, Decision{Answer: true, Why: ByCommand, Delete: true, Drop: true}},
		{"m behind a mention", said(ada, "<@900> m continue", "900"), rules, Seen{}, never, Decision{Answer: true, Why: ByCommand, Delete: true, Drop: true}},
		{"m as a reply", said(ada, "m go on"), rules, Seen{Replied: true}, never, Decision{Answer: true, Why: ByCommand, Delete: true, Drop: true}},
		{"m alone, its turn", said(ada, "M continue"), rules, Seen{Turn: true}, never, Decision{Answer: true, Why: ByCommand, Delete: true, Drop: true}},
		{"m alone, not its turn", said(ada, "m continue"), rules, Seen{}, never, Decision{Why: NotOurs, Drop: true}},
		{"m for another", said(ada, "m continue <@901>", "901"), rules, Seen{Turn: true}, always, Decision{Why: NotOurs, Drop: true}},
		{"m for nobody is a word", said(ada, "m tired"), rules, Seen{Turn: true}, never, Decision{}},
		{"a mention that only begins with m", said(ada, "<@900> m not sure", "900"), rules, Seen{}, never, Decision{Answer: true, Why: ByMention}},
		{"m by a bot", said(botA, "m continue"), rules, Seen{Turn: true, Chain: []room.Author{botA}}, never, Decision{}},
		{"self activation", room.Event{Kind: room.SelfActivation}, rules, Seen{}, never, Decision{Answer: true, Why: ByItself}},
		{"timer", room.Event{Kind: room.Timer}, rules, Seen{}, never, Decision{Answer: true, Why: ByTimer}},
		{"internal", room.Event{Kind: room.Internal}, random, Seen{}, always, Decision{}},
		{"reaction", room.Event{Kind: room.Reacted}, random, Seen{}, always, Decision{}},
		{"edit", room.Event{Kind: room.Edited, Message: said(ada, "", "900").Message}, random, Seen{}, always, Decision{}},
		{"delete", room.Event{Kind: room.Deleted}, random, Seen{}, always, Decision{}},
	} {
		if got := Decide(c.e, claude, c.rules, c.seen, c.dice); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestDepth is case B29: person, A, B, B, A.
func TestDepth(t *testing.T) {
	t.Parallel()
	talk := []room.Author{ada, botA, botB, botB, botA} // oldest first
	for i, want := range []int{0, 1, 2, 2, 3} {
		chain := slices.Clone(talk[:i+1])
		slices.Reverse(chain)
		if got := Depth(chain); got != want {
			t.Errorf("after %d: %d, want %d", i, got, want)
		}
	}
	if Depth(nil) != 0 {
		t.Error("nobody is deep")
	}
}

func TestCalled(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Claude": true, "hey claude!": true, "claude's": true, "(CLAUDE)": true, "claude claudette": true, "claudettes claude": true,
		"claudes": false, "xclaude": false, "claude_2": false, "https://claude.example": false, "```\nclaude\n```": false, "": false, "Ébene": false,
	} {
		if Called(text, []string{"Claude"}) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if !Called("frag Éva mal", []string{"éva"}) || Called("x", []string{""}) {
		t.Error("names with accents, or none")
	}
}

// TestBatches is case B15, and D12: channels are not mixed.
func TestBatches(t *testing.T) {
	t.Parallel()
	in := func(channel string, kinds ...room.Kind) (out []room.Event) {
		for _, k := range kinds {
			out = append(out, room.Event{Kind: k, Message: room.Message{In: room.Channel{ID: channel}}})
		}
		return out
	}
	kinds := func(batches [][]room.Event) (out [][]room.Kind) {
		for _, b := range batches {
			var ks []room.Kind
			for _, e := range b {
				ks = append(ks, e.Kind)
			}
			out = append(out, ks)
		}
		return out
	}
	got := kinds(Batches(in("1", room.Said, room.Edited, room.Timer, room.Internal, room.Deleted, room.Said)))
	want := [][]room.Kind{{room.Said, room.Edited}, {room.Timer, room.Internal}, {room.Deleted, room.Said}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("B15: %v", got)
	}
	mixed := Batches(slices.Concat(in("1", room.Said), in("2", room.Said), in("1", room.Said), in("2", room.Timer), in("1", room.Said)))
	if len(mixed) != 3 || mixed[0][0].Message.In.ID != "1" || len(mixed[0]) != 3 || mixed[1][0].Message.In.ID != "2" || len(mixed[1]) != 1 {
		t.Errorf("D12: %+v", mixed)
	}
}

// TestProgramsFallSilent: two agents that wake each other by every rule there is stop
// after as many words as the limit allows, whether they reply or not.
func TestProgramsFallSilent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		r := Rules{ReplyOnRandom: 1, ReplyOnName: true, AutoReplyOwnChannel: true, MaxBotReplyChainDepth: limit}
		pair := []room.Agent{{Name: "one", User: "901"}, {Name: "two", User: "902"}}
		replies := rapid.Bool().Draw(t, "they reply")
		recent := []room.Author{ada}
		chain := []room.Author{ada}
		for words := 0; ; words++ {
			if words > limit+1 {
				t.Fatalf("%d words with a limit of %d", words, limit)
			}
			speaker := pair[words%2]
			e := said(recent[0], "one and two", speaker.User)
			if d := Decide(e, speaker, r, Seen{Replied: replies, Chain: chain, Recent: recent}, always); !d.Answer {
				if words == 0 {
					t.Fatal("a person is not answered")
				}
				return
			}
			me := room.Author{ID: speaker.User, Bot: true}
			recent = append([]room.Author{me}, recent...)
			if chain = []room.Author{me}; replies {
				chain = recent
			}
		}
	})
}

func TestOrdered(t *testing.T) {
	t.Parallel()
	react := func(by, emoji string, added bool) room.Event {
		return room.Event{Kind: room.Reacted, Emoji: emoji, Added: added, By: room.Author{ID: by}}
	}
	run, card := On{Run: true, Sender: "1"}, On{Card: true}
	for _, c := range []struct {
		e    room.Event
		on   On
		want Order
	}{
		{react("1", "❌", true), run, Abort}, {react("2", "❌", true), run, None}, {react("1", "❌", false), run, None}, {react("1", "👎", true), run, None},
		{react("2", "✅", true), card, Approve}, {react("2", "✔️", true), card, Approve}, {react("2", "❌", true), card, Deny}, {react("1", "✅", true), run, None},
		{react("900", "❌", true), On{Run: true, Sender: "900"}, None}, {react("2", "\U0001FAE5", true), On{}, Hide}, {react("2", "dotted_line_face", false), On{}, Show},
		{react("2", "🙃", true), On{}, None}, {said(ada, "❌"), run, None},
	} {
		if c.e.By.Bot = true; Ordered(c.e, c.on, claude) != None {
			t.Errorf("a program orders by %s", c.e.Emoji)
		}
		c.e.By.Bot = false
		if got := Ordered(c.e, c.on, claude); got != c.want {
			t.Errorf("%s by %s on %+v: %q, want %q", c.e.Emoji, c.e.By.ID, c.on, got, c.want)
		}
	}
}

func FuzzDecide(f *testing.F) {
	for _, s := range []string{"m continue", "m ", "M CONTINUE <@900>", ".x", "claude", "İclaude", "\xff", "`claude", "ſ claude"} {
		f.Add(s, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, mention, bot bool) {
		e := said(room.Author{ID: "1", Bot: bot}, text)
		if mention {
			e.Message.Mentions = []string{"900"}
		}
		r := Rules{ReplyOnName: true, MaxBotReplyChainDepth: 3}
		d := Decide(e, claude, r, Seen{Chain: []room.Author{e.Message.Author}}, nil)
		if d.Delete && (bot || !d.Answer || !d.Drop) || !mention && d.Delete {
			t.Fatalf("%q: %+v", text, d)
		}
		if again := Decide(e, claude, r, Seen{Chain: []room.Author{e.Message.Author}}, nil); again != d {
			t.Fatalf("%q: %+v, then %+v", text, d, again)
		}
	})
}
