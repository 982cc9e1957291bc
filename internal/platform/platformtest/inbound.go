package platformtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// inbound are the cases about what people do.
var inbound = map[string]func(*testing.T, *Server){
	"a connection says who it is":     greets,
	"a message arrives once":          arrivesOnce,
	"messages arrive in order":        inOrder,
	"ids":                             ids,
	"an edit":                         editArrives,
	"a deletion":                      deletionArrives,
	"a reaction":                      reactionArrives,
	"a reply":                         replyArrives,
	"a file arrives":                  fileArrives,
	"a button":                        button,
	"a command":                       command,
	"somebody who is not there":       stranger,
	"own messages are known as own":   ownMessage,
	"a thread is opened on a message": thread,
}

func greets(t *testing.T, s *Server) {
	before := s.Say(s.Channel, Post{Text: "said before"})
	c := connect(t, s)
	hello, ok := c.seen()[0].(platform.Connected)
	if !ok || hello.Self.ID == "" || !hello.Self.Bot || hello.Resumed {
		t.Errorf("the first event is %+v", c.seen()[0])
	}
	for _, id := range []string{s.Channel, s.Other} {
		e := c.await("channel "+id, func(e platform.Event) bool {
			l, ok := e.(platform.Listed)
			return ok && len(l.Channels) > 0 && listed(l, id) != nil
		}).(platform.Listed)
		l := listed(e, id)
		if id == s.Channel && c.Older(l.Newest, before) {
			t.Errorf("the newest message of channel %s is %q, which is older than %q", id, l.Newest, before)
		}
		if in, known := c.Known(id); !known || in.ID != id || in.Guild != s.Guild {
			t.Errorf("channel %s is known as %+v, %v", id, in, known)
		}
		if in, err := c.Channel(c.soon(), id); err != nil || in.ID != id || in.Guild != l.Guild || in.Name != l.Name {
			t.Errorf("channel %s is %+v, %v, not %+v", id, in, err, l.Channel)
		}
	}
	if !c.Answers(c.soon()) {
		t.Error("a server that answers is said not to")
	}
}

func listed(l platform.Listed, id string) *platform.Listing {
	for i := range l.Channels {
		if l.Channels[i].ID == id {
			return &l.Channels[i]
		}
	}
	return nil
}

func arrivesOnce(t *testing.T, s *Server) {
	c := connect(t, s)
	const text = "héllo 👋 <b>&amp;\nsecond line"
	id := s.Say(s.Channel, Post{Text: text})
	m := c.said(id)
	if m.Text != text || m.In.ID != s.Channel || m.In.Guild != s.Guild || m.Author.ID != s.Person || m.Author.Name == "" || m.Author.Bot || m.Own || m.System {
		t.Errorf("it arrives as %+v", m)
	}
	if d := time.Since(m.At).Abs(); d > time.Hour {
		t.Errorf("it was said at %v", m.At)
	}
	c.said(s.Say(s.Channel, Post{Text: "and another"}))
	n := 0
	for _, e := range c.seen() {
		if said, ok := e.(platform.Said); ok && said.Message.ID == id {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was reported %d times", n)
	}
}

func inOrder(t *testing.T, s *Server) {
	c := connect(t, s)
	const count = 20
	var want []string
	for i := range count {
		want = append(want, s.Say(s.Channel, Post{Text: fmt.Sprint(i)}))
	}
	c.said(want[count-1])
	var got []string
	for _, e := range c.seen() {
		if said, ok := e.(platform.Said); ok {
			got = append(got, said.Message.ID)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("they arrive as %v, not as %v", got, want)
	}
}

// Ids identify one message on the whole platform, are ordered within a channel, and fit into the
// ids of threads.
func ids(t *testing.T, s *Server) {
	c := connect(t, s)
	seen := map[string]bool{}
	var last string
	for i := range 4 {
		for _, channel := range []string{s.Other, s.Channel} {
			id := s.Say(channel, Post{Text: fmt.Sprint(i)})
			if seen[id] {
				t.Errorf("the id %s was given twice", id)
			}
			seen[id] = true
			if channel == s.Other {
				continue
			}
			before, after := c.Before(id), c.After(id)
			if last != "" && (!c.Older(last, id) || c.Older(id, last) || c.Older(before, last)) {
				t.Errorf("%s, %s and %s are not in this order", last, before, id)
			}
			if !c.Older(before, id) || !c.Older(id, after) || c.Older(id, id) {
				t.Errorf("%s, %s and %s are not in this order", before, id, after)
			}
			in := c.said(id).In
			thread, err := chat.NewThreadID(c.Name(), in.Place(), id, "agent")
			if err != nil {
				t.Fatalf("no thread can be named after message %s in %+v: %v", id, in, err)
			}
			if guild, home, at := room.PlaceParts(thread.Place()); guild != in.Guild || home != in.Home() || at != in.ID || thread.Thread() != id {
				t.Errorf("the thread %s is read as %s, %s, %s", thread, guild, home, at)
			}
			last = id
		}
	}
}

func editArrives(t *testing.T, s *Server) {
	need(t, s.Edit != nil, "edits by people")
	c := connect(t, s)
	id := s.Say(s.Channel, Post{Text: "before"})
	c.said(id)
	s.Edit(id, "after")
	m := c.await("the edit", func(e platform.Event) bool { d, ok := e.(platform.Edited); return ok && d.Message.ID == id }).(platform.Edited).Message
	if m.Text != "after" || m.Edited.IsZero() || m.In.ID != s.Channel || m.Author.ID != s.Person {
		t.Errorf("the edit arrives as %+v", m)
	}
}

func deletionArrives(t *testing.T, s *Server) {
	need(t, s.Delete != nil, "deletions by people")
	c := connect(t, s)
	id := s.Say(s.Channel, Post{Text: "oops"})
	c.said(id)
	s.Delete(id)
	c.await("the deletion", func(e platform.Event) bool {
		d, ok := e.(platform.Deleted)
		return ok && d.Channel == s.Channel && len(d.IDs) == 1 && d.IDs[0] == id
	})
}

func reactionArrives(t *testing.T, s *Server) {
	need(t, s.React != nil, "reactions by people")
	c := connect(t, s)
	id := c.post(s.Channel, "card", platform.Post{Text: "well?"})
	s.React(id, "✅")
	r := c.await("the reaction", func(e platform.Event) bool { r, ok := e.(platform.Reacted); return ok && r.Message == id }).(platform.Reacted)
	if r.Emoji != "✅" || !r.Added || r.By.ID != s.Person || r.In.ID != s.Channel {
		t.Errorf("the reaction arrives as %+v", r)
	}
	list, ok := c.Platform.(platform.Reactions)
	if !ok {
		return
	}
	got, err := list.ReactionsOf(c.soon(), r.In, id, func(emoji string) bool { return emoji == "✅" })
	if err != nil || len(got) != 1 || got[0].By.ID != s.Person || !got[0].Added {
		t.Errorf("the reactions are %+v, %v", got, err)
	}
}

func replyArrives(t *testing.T, s *Server) {
	c := connect(t, s)
	id := c.post(s.Channel, "question", platform.Post{Text: "well?"})
	m := c.said(s.Say(s.Channel, Post{Text: "yes", ReplyTo: id}))
	if m.ReplyTo != id {
		t.Errorf("the reply arrives as %+v", m)
	}
}

func fileArrives(t *testing.T, s *Server) {
	c := connect(t, s)
	files, ok := c.Platform.(platform.Downloads)
	need(t, ok, "downloads")
	data := bytes.Repeat([]byte{0, 'x', 0xff}, 1000)
	m := c.said(s.Say(s.Channel, Post{Text: "look", File: "data.bin", Data: data}))
	if len(m.Files) != 1 || m.Files[0].Name != "data.bin" || m.Files[0].Size != int64(len(data)) {
		t.Fatalf("the file arrives as %+v", m.Files)
	}
	if got, err := files.Download(c.soon(), m.Files[0].URL, int64(len(data))); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes were downloaded: %v", len(got), err)
	}
	if _, err := files.Download(c.soon(), m.Files[0].URL, 10); !errors.Is(err, platform.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	for _, elsewhere := range []string{"http://169.254.169.254/latest/meta-data", "file:///etc/passwd", ""} {
		var refusal platform.Refusal
		if _, err := files.Download(c.soon(), elsewhere, 1000); !errors.As(err, &refusal) {
			t.Errorf("%q was asked for: %v", elsewhere, err)
		}
	}
}

func button(t *testing.T, s *Server) {
	need(t, s.Open().Caps().Buttons, "buttons")
	got := make(chan platform.Press, 1)
	c := connect(t, s, func(c *session) {
		c.press = func(p platform.Press) platform.Answer { got <- p; return platform.Answer{Text: "thank you"} }
	})
	post := platform.Post{Text: "May I?", Card: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	id := c.post(s.Channel, "card", post)
	var values []string
	for _, b := range post.Buttons() {
		values = append(values, b.Value)
	}
	if m := shown(t, s, s.Channel, id); fmt.Sprint(m.Buttons) != fmt.Sprint(values) {
		t.Fatalf("its buttons are %q, not %q", m.Buttons, values)
	}
	s.Press(id, values[0])
	private(t, s, "thank you")
	if p := <-got; p.Value != values[0] || p.Message != id || p.By.ID != s.Person || p.In.ID != s.Channel {
		t.Errorf("the press arrives as %+v", p)
	}
	if err := c.Edit(c.soon(), c.about(s.Channel, id, platform.Post{Text: "decided"})); err != nil {
		t.Fatal(err)
	}
	if m := shown(t, s, s.Channel, id); len(m.Buttons) != 0 || m.Text != "decided" {
		t.Errorf("a decided card is shown as %+v", m)
	}
}

func command(t *testing.T, s *Server) {
	if _, ok := s.Open().(platform.Commander); !ok {
		t.Skip("this platform has no list of commands: people write them as messages")
	}
	got := make(chan platform.Invocation, 1)
	c := connect(t, s, func(c *session) {
		c.invoke = func(i platform.Invocation) platform.Answer { got <- i; return platform.Answer{Text: "there are two"} }
	})
	list := []platform.Command{{Name: "agent", Description: "about agents", Sub: []platform.Command{
		{Name: "list", Description: "list them", Options: []platform.Option{{Name: "like", Description: "part of a name"}}}}}}
	for range 2 { // repeating it changes nothing
		if err := c.Platform.(platform.Commander).Register(c.soon(), list); err != nil {
			t.Fatal(err)
		}
	}
	s.Invoke(s.Channel, "agent list", map[string]string{"like": "a b"})
	private(t, s, "there are two")
	if i := <-got; i.Path != "agent/list" || i.Text["like"] != "a b" || i.By.ID != s.Person || i.In.ID != s.Channel || i.ID == "" {
		t.Errorf("the command arrives as %+v", i)
	}
	if list := own(s, s.Channel); len(list) > 0 {
		t.Errorf("the answer is for everybody: %+v", list)
	}
}

func stranger(t *testing.T, s *Server) {
	c := connect(t, s)
	who := c.said(s.Say(s.Channel, Post{Text: "hello"})).Author
	if got, err := c.Member(c.soon(), s.Guild, room.Author{ID: who.ID}); err != nil || got.ID != who.ID || got.Name != who.Name {
		t.Errorf("the person is %+v, %v, not %+v", got, err, who)
	}
	if got, err := c.Member(c.soon(), s.Guild, room.Author{ID: "12345"}); got.Member || err != nil && !platform.Closed(err) {
		t.Errorf("nobody is %+v, %v", got, err)
	}
	if _, err := c.Channel(c.soon(), "12345"); !platform.Closed(err) {
		t.Errorf("a channel that does not exist: %v", err)
	}
	if readers, ok := c.Platform.(platform.Readers); ok {
		if may, err := readers.MayRead(c.soon(), s.Guild, s.Channel, s.Person); !may || err != nil {
			t.Errorf("the person may read: %v, %v", may, err)
		}
		if may, _ := readers.MayRead(c.soon(), s.Guild, s.Channel, "12345"); may {
			t.Error("nobody may read")
		}
	}
}

// If the platform reports the bot's own messages, they are recognized. Otherwise the bot
// would answer itself.
func ownMessage(t *testing.T, s *Server) {
	c := connect(t, s)
	id := c.post(s.Channel, "own", platform.Post{Text: "me"})
	c.said(s.Say(s.Channel, Post{Text: "after it"}))
	for _, e := range c.seen() {
		if said, ok := e.(platform.Said); ok && said.Message.ID == id && (!said.Message.Own || said.Message.Nonce != "" && said.Message.Nonce != "nonce-own") {
			t.Errorf("it arrives as %+v", said.Message)
		}
	}
}

func thread(t *testing.T, s *Server) {
	c := connect(t, s)
	threads, ok := c.Platform.(platform.Threads)
	need(t, ok, "threads")
	id := s.Say(s.Channel, Post{Text: "a question"})
	c.said(id)
	for range 2 { // an existing thread is not an error
		in, err := threads.OpenOn(c.soon(), s.Channel, id, strings.Repeat("name ", 10))
		if err != nil || in.ID != id || in.Parent != s.Channel || in.Home() != s.Channel {
			t.Fatalf("the thread is %+v, %v", in, err)
		}
	}
	if m := c.said(s.Say(id, Post{Text: "in the thread"})); m.In.ID != id || m.In.Parent != s.Channel {
		t.Errorf("a message in it arrives as %+v", m)
	}
	c.post(id, "answer", platform.Post{Text: "an answer"})
	if list := own(s, id); len(list) != 1 {
		t.Errorf("in the thread the bot said %+v", list)
	}
}
