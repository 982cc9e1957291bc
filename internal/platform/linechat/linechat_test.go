package linechat_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/connector/connectortest"
	"chorus/internal/platform"
	"chorus/internal/platform/linechat"
	"chorus/internal/platform/platformtest"
	"chorus/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPlatform(t *testing.T) {
	t.Parallel()
	platformtest.Run(t, func(t *testing.T) *platformtest.Server { return start(t).server() })
}

func TestAgents(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, storetest.FreshHome, func(t *testing.T) *platformtest.Server { return start(t).server() })
}

// bare is a platform without edits as well.
type bare struct{ *linechat.Client }

func (b bare) Caps() platform.Caps {
	caps := b.Client.Caps()
	caps.Edits = false
	return caps
}

func TestAgentsWithoutEdits(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, storetest.FreshHome, func(t *testing.T) *platformtest.Server {
		s := start(t).server()
		open := s.Open
		s.Open = func() platform.Platform { return bare{open().(*linechat.Client)} }
		return s
	})
}

// world is a running server, with what goes wrong next.
type world struct {
	*testing.T
	*linechat.Server
	address string

	mu   sync.Mutex
	next platformtest.Failure
	hang chan struct{} // closed at the end, for those who answer nothing
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Server: &linechat.Server{Channels: []string{"general", "random"}, Tokens: map[string]string{"chorus": "test-token"}}, hang: make(chan struct{})}
	w.Fault = w.fault
	at, err := w.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = at.String()
	t.Cleanup(func() { close(w.hang); w.Close() })
	return w
}

func (w *world) server() *platformtest.Server {
	return &platformtest.Server{
		Guild: "chat", Channel: "general", Other: "random", Person: "ada",
		Open: func() platform.Platform {
			return &linechat.Client{Address: w.address, User: "chorus", Token: "test-token", FirstBackoff: 5 * time.Millisecond}
		},
		Say: func(channel string, p platformtest.Post) string {
			return w.must(linechat.Line{Do: "say", Channel: channel, Text: p.Text, Reply: p.ReplyTo, File: p.File, Data: p.Data}).ID
		},
		Edit:   func(id, text string) { w.must(linechat.Line{Do: "edit", ID: id, Text: text}) },
		Delete: func(id string) { w.must(linechat.Line{Do: "delete", ID: id}) },
		Shows:  w.shows,
		Cut:    w.Cut,
		Fail:   func(f platformtest.Failure) { w.mu.Lock(); w.next = f; w.mu.Unlock() },
	}
}

// must does something as ada.
func (w *world) must(r linechat.Line) linechat.Line {
	w.Helper()
	a := w.Do("ada", r)
	if a.Error != "" {
		w.Fatalf("%+v: %s", r, a.Error)
	}
	return a
}

func (w *world) shows(channel string) []platformtest.Shown {
	var out []platformtest.Shown
	for _, m := range w.Messages(channel) {
		one := platformtest.Shown{ID: m.ID, Text: m.Text, ReplyTo: m.Reply, Own: m.Bot, Files: map[string]int{}}
		if m.File != "" {
			one.Files[m.File] = m.Size
		}
		out = append(out, one)
	}
	return out
}

// fault is what happens to the next post.
func (w *world) fault(do string, answered bool) string {
	w.mu.Lock()
	next := w.next
	if do != "say" || (next == platformtest.Lost) != answered {
		next = ""
	} else {
		w.next = ""
	}
	w.mu.Unlock()
	switch next {
	case platformtest.Lost:
		return "cut"
	case platformtest.Refused:
		return "failed"
	case platformtest.Limited:
		return "limited"
	case platformtest.Silent:
		<-w.hang
		return "cut"
	}
	return ""
}

// A person needs nothing but a terminal.
func TestPeopleUseATerminal(t *testing.T) {
	t.Parallel()
	w := start(t)
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "ada\nhello\r\n")
	in := bufio.NewReader(conn)
	if got, err := in.ReadString('\n'); err != nil || got != "ada: hello\n" {
		t.Errorf("%q, %v", got, err)
	}
	w.Do("chorus", linechat.Line{Do: "say", Channel: "general", Text: "two\nlines"})
	if got, err := in.ReadString('\n'); err != nil || got != "chorus: two\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAWrongTokenEndsIt(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := &linechat.Client{Address: w.address, User: "chorus", Token: "another"}
	if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("%v", err)
	}
}
