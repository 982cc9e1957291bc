package linechat

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Line is one line between a program and the server: a request, its answer, or an event.
type Line struct {
	Seq   int64  `json:"seq,omitempty"`   // of a request and its answer
	Do    string `json:"do,omitempty"`    // of a request: hello, say, edit, delete, read, find, who or fetch
	Event string `json:"event,omitempty"` // of an event: said, edited or deleted
	Error string `json:"error,omitempty"` // of an answer: see the codes below
	Wait  int    `json:"wait,omitempty"`  // with limited: milliseconds
	More  bool   `json:"more,omitempty"`  // of a list: there are more
	List  []Line `json:"list,omitempty"`

	ID      string    `json:"id,omitempty"`
	Channel string    `json:"channel,omitempty"`
	From    string    `json:"from,omitempty"` // a name, which is also an id
	Bot     bool      `json:"bot,omitempty"`
	Text    string    `json:"text,omitempty"`
	Reply   string    `json:"reply,omitempty"`
	Nonce   string    `json:"nonce,omitempty"`
	Token   string    `json:"token,omitempty"`
	File    string    `json:"file,omitempty"` // name
	Size    int       `json:"size,omitempty"`
	Data    []byte    `json:"data,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Edited  time.Time `json:"edited,omitzero"`
	After   string    `json:"after,omitempty"`
	Before  string    `json:"before,omitempty"`
	Limit   int       `json:"limit,omitempty"`
}

// The error codes; those of the first group are reasons of the outbox.
const (
	gone      = "gone"
	nowhere   = "nowhere"
	forbidden = "forbidden"
	invalid   = "invalid"

	limited = "limited"
	failed  = "failed"
	cut     = "cut" // of Fault only: no answer, and the connection ends
)

const (
	maxText = 1000 // characters of a message
	maxPage = 50   // messages that are read at once

	writeTime = 5 * time.Second
)

// Server is a chat server on a socket. People only need a terminal: their first line is
// their name, and each further one is a message in the first channel. Programs send JSON, one object
// per line, and start with hello.
type Server struct {
	Channels []string
	Tokens   map[string]string // of bots, by name
	// Fault is called before each request and before its answer, and may return an error code to use
	// instead. If nil, nothing fails.
	Fault func(do string, answered bool) string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool // true: a program that has said hello
	messages []Line
	people   map[string]bool
	next     int
	work     sync.WaitGroup
}

// Listen serves on an address until Close.
func (s *Server) Listen(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve line chat: %w", err)
	}
	s.listener, s.conns, s.people = l, map[net.Conn]bool{}, map[string]bool{}
	s.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = false
			s.mu.Unlock()
			s.work.Go(func() { s.serve(conn) })
		}
	})
	return l.Addr(), nil
}

// Close ends everything.
func (s *Server) Close() {
	_ = s.listener.Close() // nothing is lost with it
	s.Cut()
	s.work.Wait()
}

// Cut breaks all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close() // its reader notices
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		_ = conn.Close() // it is over
	}()
	in := bufio.NewReader(conn)
	name := ""
	for {
		text, err := in.ReadString('\n')
		text = strings.TrimRight(text, "\r\n")
		switch {
		case err != nil:
			return
		case strings.HasPrefix(text, "{"):
			if name, err = s.request(conn, name, text); err != nil {
				return
			}
		case name == "":
			name = text
		case text != "":
			s.Do(name, Line{Do: "say", Channel: s.Channels[0], Text: text})
		}
	}
}

// request answers one request of a program.
func (s *Server) request(conn net.Conn, name, text string) (string, error) {
	var r Line
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return name, err
	}
	if r.Do == "hello" {
		if r.Token != s.Tokens[r.From] || r.Token == "" {
			return name, s.send(conn, Line{Seq: r.Seq, Error: forbidden})
		}
		name = r.From
	}
	a := Line{Error: s.fault(r.Do, false), Wait: 50}
	if a.Error == "" {
		a = s.Do(name, r)
		if code := s.fault(r.Do, true); code != "" {
			a = Line{Error: code}
		}
	}
	if a.Error == cut {
		return name, errors.New("the connection is cut")
	}
	a.Seq = r.Seq
	return name, s.send(conn, a)
}

func (s *Server) fault(do string, answered bool) string {
	if s.Fault == nil {
		return ""
	}
	return s.Fault(do, answered)
}

func (s *Server) send(conn net.Conn, l Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Seq > 0 && l.Error == "" {
		s.conns[conn] = true // from now on it receives events
	}
	return write(conn, l)
}

// write sends one line. A client that does not read must not delay the others.
func write(conn net.Conn, l Line) error {
	data, err := json.Marshal(l)
	if err == nil {
		err = conn.SetWriteDeadline(time.Now().Add(writeTime))
	}
	if err == nil {
		_, err = conn.Write(append(data, '\n'))
	}
	return err
}

// report sends an event to everybody. The caller holds the lock.
func (s *Server) report(event string, m Line) {
	m.Event, m.Data = event, nil
	for conn, program := range s.conns {
		if program {
			_ = write(conn, m) // a client that has left reads it later
		} else if event != "deleted" {
			fmt.Fprintf(conn, "%s: %s\n", m.From, strings.ReplaceAll(m.Text, "\n", "\n    "))
		}
	}
}

// Do runs somebody's request and returns the answer.
func (s *Server) Do(name string, r Line) Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[name] = true
	if r.Channel != "" && !slices.Contains(s.Channels, r.Channel) {
		return Line{Error: nowhere}
	}
	at := slices.IndexFunc(s.messages, func(m Line) bool { return m.ID == r.ID })
	switch r.Do {
	case "hello":
		return s.hello(name)
	case "say":
		return s.say(name, r)
	case "read":
		return s.read(r)
	case "find":
		for _, m := range s.messages {
			if m.Nonce == r.Nonce && m.From == name {
				return Line{ID: m.ID}
			}
		}
		return Line{}
	case "who":
		return Line{From: r.From, Bot: s.Tokens[r.From] != "", More: s.people[r.From]}
	}
	if at < 0 {
		return Line{Error: gone}
	}
	m := &s.messages[at]
	switch {
	case r.Do == "fetch":
		return Line{Data: m.Data}
	case m.From != name:
		return Line{Error: forbidden}
	case r.Do == "edit" && utf8.RuneCountInString(r.Text) <= maxText:
		m.Text, m.File, m.Size, m.Data, m.Edited = r.Text, r.File, len(r.Data), r.Data, time.Now()
		s.report("edited", *m)
	case r.Do == "delete":
		s.report("deleted", *m)
		s.messages = slices.Delete(s.messages, at, at+1)
	default:
		return Line{Error: invalid}
	}
	return Line{}
}

// Messages returns the messages of a channel, the oldest first.
func (s *Server) Messages(channel string) []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.messages), func(m Line) bool { return m.Channel != channel })
}

// hello lists all channels, each with its newest message.
func (s *Server) hello(name string) Line {
	a := Line{From: name}
	for _, c := range s.Channels {
		newest := "0"
		for _, m := range s.messages {
			if m.Channel == c {
				newest = m.ID
			}
		}
		a.List = append(a.List, Line{Channel: c, ID: newest})
	}
	return a
}

// say creates a message, once per nonce.
func (s *Server) say(name string, r Line) Line {
	if utf8.RuneCountInString(r.Text) > maxText || r.Channel == "" {
		return Line{Error: invalid}
	}
	for _, m := range s.messages {
		if r.Nonce != "" && m.Nonce == r.Nonce && m.From == name {
			return Line{ID: m.ID}
		}
	}
	s.next++
	m := Line{ID: strconv.Itoa(s.next), Channel: r.Channel, From: name, Bot: s.Tokens[name] != "", Text: r.Text, Reply: r.Reply, Nonce: r.Nonce,
		File: r.File, Size: len(r.Data), Data: r.Data, At: time.Now()}
	s.messages = append(s.messages, m)
	s.report("said", m)
	return Line{ID: m.ID}
}

// read returns the messages after one, the oldest first, or before one, the newest first; with
// an id only that message.
func (s *Server) read(r Line) Line {
	var found []Line
	for _, m := range s.messages {
		n, _ := strconv.Atoi(m.ID) // we assigned it
		after, _ := strconv.Atoi(r.After)
		before, err := strconv.Atoi(r.Before)
		if m.Channel == r.Channel && n > after && (err != nil || n < before) && (r.ID == "" || r.ID == m.ID) {
			m.Data = nil
			found = append(found, m)
		}
	}
	if r.After == "" {
		slices.Reverse(found)
	}
	limit := min(maxPage, max(r.Limit, 1))
	return Line{List: found[:min(len(found), limit)], More: len(found) > limit}
}
