package platformtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
)

// outbound are the cases about what the bot posts.
var outbound = map[string]func(*testing.T, *Server){
	"a post":                       post,
	"a post that answers":          postReply,
	"the last text counts":         lastText,
	"a post is deleted":            deletes,
	"reactions are put on and off": reacts,
	"a file is posted":             fileIsPosted,
	"nobody is notified":           notifiesNobody,
	"the longest text":             longest,
	"a channel that is not there":  nowhere,
}

func post(t *testing.T, s *Server) {
	c := connect(t, s)
	for i, text := range []string{"plain", "two\nlines", "quote \" back\\slash", "**bold** `code`\n```go\nx := 1\n```", "héllo 👋🏽 \u202e", "{\"do\":\"say\"}", "/stop", "a\rb\x00c"} {
		id := c.post(s.Channel, fmt.Sprint(i), platform.Post{Text: text})
		if m := shown(t, s, s.Channel, id); m.Text != text && i < 7 { // the last text only must not create a second message
			t.Errorf("%q is shown as %q", text, m.Text)
		}
		if n := len(own(s, s.Channel)); n != i+1 {
			t.Errorf("%d messages after %d posts", n, i+1)
		}
	}
}

func postReply(t *testing.T, s *Server) {
	c := connect(t, s)
	asked := s.Say(s.Channel, Post{Text: "well?"})
	if m := shown(t, s, s.Channel, c.post(s.Channel, "a", platform.Post{Text: "yes", ReplyTo: asked})); m.ReplyTo != asked {
		t.Errorf("it is shown as %+v", m)
	}
	if s.Delete == nil {
		return
	}
	s.Delete(asked) // an answer is still posted if the question is deleted
	if m := shown(t, s, s.Channel, c.post(s.Channel, "b", platform.Post{Text: "still yes", ReplyTo: asked})); m.Text != "still yes" {
		t.Errorf("it is shown as %+v", m)
	}
}

func lastText(t *testing.T, s *Server) {
	c := connect(t, s)
	need(t, c.caps.Edits, "edits")
	id := c.post(s.Channel, "status", platform.Post{Text: "working", Stop: "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
	for i := range 5 {
		if err := c.Edit(c.soon(), c.about(s.Channel, id, platform.Post{Text: fmt.Sprint("text ", i)})); err != nil {
			t.Fatal(err)
		}
	}
	if m := shown(t, s, s.Channel, id); m.Text != "text 4" || len(m.Buttons) > 0 || len(own(s, s.Channel)) != 1 {
		t.Errorf("it is shown as %+v", m)
	}
	if err := c.Edit(c.soon(), c.about(s.Channel, c.Before(id), platform.Post{Text: "x"})); !platform.Is(err, outbox.Gone) {
		t.Errorf("an edit of what is not there: %v", err)
	}
}

func deletes(t *testing.T, s *Server) {
	c := connect(t, s)
	id := c.post(s.Channel, "a", platform.Post{Text: "soon gone"})
	if err := c.Delete(c.soon(), c.about(s.Channel, id, platform.Post{})); err != nil {
		if platform.Is(err, outbox.Invalid) || platform.Is(err, outbox.Forbidden) {
			t.Skip("this platform has no deletions")
		}
		t.Fatal(err)
	}
	if list := own(s, s.Channel); len(list) != 0 {
		t.Errorf("it is still there: %+v", list)
	}
	if err := c.Delete(c.soon(), c.about(s.Channel, id, platform.Post{})); !platform.Is(err, outbox.Gone) {
		t.Errorf("deleted again: %v", err)
	}
}

func reacts(t *testing.T, s *Server) {
	c := connect(t, s)
	need(t, c.caps.Reactions, "reactions")
	id := s.Say(s.Channel, Post{Text: "well?"})
	call := c.about(s.Channel, id, platform.Post{Emoji: "✅"})
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return c.React(c.soon(), call) }, []string{"✅"}},
		{func() error { return c.React(c.soon(), call) }, []string{"✅"}},
		{func() error { return c.Unreact(c.soon(), call) }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if m := shown(t, s, s.Channel, id); !slices.Equal(m.Reactions, step.want) {
			t.Errorf("its reactions are %q, not %q", m.Reactions, step.want)
		}
	}
}

// A model may choose the name: it must not point anywhere else.
func fileIsPosted(t *testing.T, s *Server) {
	c := connect(t, s)
	for i, name := range []string{"notes.txt", "../../etc/pass\nwd", "a\"b.txt"} {
		p := platform.Post{Text: "see the file", File: name, Content: strings.Repeat("line\n", 1000)}
		id, err := c.Create(c.soon(), c.call(s.Channel, fmt.Sprint(i), p))
		if platform.Is(err, outbox.Invalid) {
			if i == 0 {
				t.Skip("this platform has no files")
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		m := shown(t, s, s.Channel, id)
		if len(m.Files) != 1 || m.Text != p.Text {
			t.Fatalf("%q is shown as %+v", name, m)
		}
		for got, size := range m.Files {
			if size != len(p.Content) || strings.ContainsAny(got, "/\\\n\"") || i == 0 && got != name {
				t.Errorf("%q is shown as %q with %d bytes", name, got, size)
			}
		}
	}
}

// A model's text notifies nobody, however it is written.
func notifiesNobody(t *testing.T, s *Server) {
	c := connect(t, s)
	for i, text := range []string{"@everyone look", "@here look", mark.Person(s.Person) + " look", "<@&" + s.Guild + "> look", "<!channel> look"} {
		if m := shown(t, s, s.Channel, c.post(s.Channel, fmt.Sprint(i), platform.Post{Text: text})); len(m.Notified) > 0 {
			t.Errorf("%q notifies %v", text, m.Notified)
		}
	}
	if !c.caps.Edits {
		return
	}
	id := c.post(s.Channel, "edit", platform.Post{Text: "quiet"})
	if err := c.Edit(c.soon(), c.about(s.Channel, id, platform.Post{Text: "@everyone " + mark.Person(s.Person)})); err != nil {
		t.Fatal(err)
	}
	if m := shown(t, s, s.Channel, id); len(m.Notified) > 0 {
		t.Errorf("an edit notifies %v", m.Notified)
	}
}

// The connector splits by Caps.MaxText: that much fits, and nothing is silently cut.
func longest(t *testing.T, s *Server) {
	c := connect(t, s)
	need(t, c.caps.MaxText > 0, "limit")
	text := strings.Repeat("ä", c.caps.MaxText)
	if m := shown(t, s, s.Channel, c.post(s.Channel, "a", platform.Post{Text: text})); m.Text != text {
		t.Errorf("of %d characters %d are shown", c.caps.MaxText, len([]rune(m.Text)))
	}
	id, err := c.Create(c.soon(), c.call(s.Channel, "b", platform.Post{Text: text + text}))
	if err == nil && shown(t, s, s.Channel, id).Text != text+text || err != nil && !platform.Is(err, outbox.Invalid) {
		t.Errorf("a text that is too long: %q, %v", id, err)
	}
}

func nowhere(t *testing.T, s *Server) {
	c := connect(t, s)
	_, err := c.Create(c.soon(), c.call("12345", "a", platform.Post{Text: "anybody?"}))
	if !platform.Closed(err) {
		t.Errorf("a post: %v", err)
	}
	if h, ok := c.Platform.(platform.History); ok {
		if _, _, err := h.ReadAfter(c.soon(), "12345", "0"); !platform.Closed(err) {
			t.Errorf("reading: %v", err)
		}
	}
}
