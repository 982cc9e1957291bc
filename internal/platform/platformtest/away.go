package platformtest

import (
	"fmt"
	"slices"
	"testing"

	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// away are the cases about events while nobody is connected.
var away = map[string]func(*testing.T, *Server){
	"a broken connection loses nothing":       cut,
	"history is read without gaps":            history,
	"what was not confirmed is sent again":    confirmed,
	"the newest messages are read backwards":  backwards,
	"a message that is edited is read as new": readAgain,
}

// cut breaks the connection while somebody writes. Those messages are reported, or found in
// the history.
func cut(t *testing.T, s *Server) {
	need(t, s.Cut != nil, "connection that breaks")
	c := connect(t, s)
	first := s.Say(s.Channel, Post{Text: "before"})
	c.said(first)
	want := map[string]bool{}
	for i := range 3 {
		s.Cut()
		want[s.Say(s.Channel, Post{Text: fmt.Sprint("during ", i)})] = true
		c.awaitNth(i+2, "a new connection", func(e platform.Event) bool { _, ok := e.(platform.Connected); return ok })
	}
	last := s.Say(s.Channel, Post{Text: "after"})
	want[last] = true
	c.said(last)
	got := map[string]int{}
	for _, e := range c.seen() {
		if said, ok := e.(platform.Said); ok {
			got[said.Message.ID]++
		}
	}
	if h, ok := c.Platform.(platform.History); ok {
		for _, m := range readAll(c, h, s.Channel, first) {
			got[m.ID]++
		}
	}
	for id := range want {
		if got[id] == 0 {
			t.Errorf("message %s is neither reported nor in the history", id)
		}
	}
	if list := own(s, s.Channel); len(list) > 0 {
		t.Errorf("posted were %+v", list)
	}
}

// readAll reads a channel from a message on.
func readAll(c *session, h platform.History, channel, after string) []room.Message {
	c.Helper()
	var out []room.Message
	for range 100 {
		list, more, err := h.ReadAfter(c.soon(), channel, after)
		if err != nil {
			c.Fatal(err)
		}
		if out = append(out, list...); !more {
			return out
		}
		after = out[len(out)-1].ID
	}
	c.Fatal("the history does not end")
	return nil
}

func history(t *testing.T, s *Server) {
	c := connect(t, s)
	_, ok := c.Platform.(platform.History)
	need(t, ok, "history")
	first := s.Say(s.Channel, Post{Text: "before"})
	c.said(first)
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	const count = 130 // more than platforms return at once
	var want []string
	for i := range count {
		want = append(want, s.Say(s.Channel, Post{Text: fmt.Sprint("meanwhile ", i)}))
		if i%10 == 0 {
			s.Say(s.Other, Post{Text: "elsewhere"})
		}
	}
	c = connect(t, s)
	h := c.Platform.(platform.History)
	var got []string
	for _, m := range readAll(c, h, s.Channel, first) {
		if m.In.ID != s.Channel || m.Author.ID != s.Person || m.Own {
			t.Errorf("it is read as %+v", m)
		}
		got = append(got, m.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d messages are read, not %d: %v", len(got), len(want), got)
	}
	if all := readAll(c, h, s.Channel, "0"); len(all) != count+1 || all[0].ID != first {
		t.Errorf("from the beginning %d messages are read", len(all))
	}
}

// A platform without history keeps deliveries until they are confirmed.
func confirmed(t *testing.T, s *Server) {
	p := s.Open()
	if _, ok := p.(platform.History); ok {
		t.Skip("this platform has a history")
	}
	c := connect(t, s, func(c *session) { c.refuses = true })
	id := s.Say(s.Channel, Post{Text: "keep this"})
	c.said(id)
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	connect(t, s).said(id)
}

func backwards(t *testing.T, s *Server) {
	c := connect(t, s)
	h, ok := c.Platform.(platform.History)
	need(t, ok, "history")
	var want []string
	for i := range 12 {
		want = append([]string{s.Say(s.Channel, Post{Text: fmt.Sprint(i)})}, want...)
	}
	var got []string
	before, more := "", true
	for range 10 {
		var list []room.Message
		var err error
		if list, more, err = h.ReadBefore(c.soon(), s.Channel, before, 5); err != nil || len(list) > 5 {
			t.Fatalf("%d messages, %v", len(list), err)
		}
		for _, m := range list {
			got = append(got, m.ID)
		}
		if !more || len(list) == 0 {
			break
		}
		before = got[len(got)-1]
	}
	if !slices.Equal(got, want) {
		t.Errorf("they are read as %v, not as %v", got, want)
	}
}

func readAgain(t *testing.T, s *Server) {
	c := connect(t, s)
	h, ok := c.Platform.(platform.History)
	need(t, ok && s.Edit != nil && s.Delete != nil, "history with edits")
	edited, deleted := s.Say(s.Channel, Post{Text: "before"}), s.Say(s.Channel, Post{Text: "gone"})
	s.Edit(edited, "after")
	s.Delete(deleted)
	if m, err := h.Message(c.soon(), s.Channel, edited); err != nil || m.Text != "after" || m.Edited.IsZero() {
		t.Errorf("it is read as %+v, %v", m, err)
	}
	if _, err := h.Message(c.soon(), s.Channel, deleted); !platform.Is(err, outbox.Gone) {
		t.Errorf("a deleted one is read: %v", err)
	}
}
