package discordsim

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/ratelimit"
)

// bodyLimit is the maximum size of a request: ten files and a little.
const bodyLimit = 10*guild.AttachmentLimit + 1<<20

// call is one request while it is answered. Its handler runs with the lock held.
type call struct {
	*http.Request
	guild  *guild.Guild
	who    *guild.Account
	body   json.RawMessage
	files  []guild.Upload
	status int // of a success; 0: 200, or 204 without a body
}

// handler answers a call: with a value, with nil, or with an error.
type handler func(*call) (any, error)

// needs says who may use a route.
type needs int

const (
	withAccount needs = iota // a bot or a person
	withNobody               // the path contains its own token, or it is open
)

// route mounts a handler at a method and path, in the syntax of Go's mux.
func (s *Sim) route(pattern string, n needs, h handler) {
	method, path, _ := strings.Cut(pattern, " ")
	serve := func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, pattern, n, h) }
	for _, base := range []string{"/api/v10", "/api/v9", "/api"} {
		s.mux.HandleFunc(method+" "+base+path, serve)
	}
}

func (s *Sim) answer(w http.ResponseWriter, r *http.Request, pattern string, n needs, h handler) {
	c := &call{Request: r, guild: s.guild}
	who, err := s.account(r)
	if n == withAccount && err != nil {
		fail(w, ratelimit.Verdict{}, err)
		return
	}
	c.who = who
	actor := who
	if who == nil {
		actor = s.owner(r)
	}
	answer := &recorder{ResponseWriter: w}
	w = answer
	defer func() { s.record(c, actor, answer) }()
	said := s.peek(r, pattern)
	v := s.limit(who, r, pattern, said, n)
	v.Headers(w.Header())
	if !v.OK {
		show(w, http.StatusTooManyRequests, v.Body())
		return
	}
	if done := s.faulty(w, r, pattern, said, actor); done {
		return
	}
	if err := c.read(w); err != nil {
		fail(w, v, err)
		return
	}
	s.mu.Lock()
	out, err := h(c)
	var raw []byte
	if err == nil && out != nil {
		raw, err = json.Marshal(out) // with the lock, because out points into the guild
	}
	var late *Fault
	if actor == nil || actor.Bot {
		late = s.pickAnswer(nameOf(actor), pattern, said, true)
	}
	s.mu.Unlock()
	switch {
	case late != nil:
		s.goWrong(w, late)
	case err != nil:
		fail(w, v, err)
	case raw == nil:
		if c.status == 0 {
			c.status = http.StatusNoContent
		}
		w.WriteHeader(c.status)
	default:
		if c.status == 0 {
			c.status = http.StatusOK
		}
		write(w, c.status, raw)
	}
}

// owner returns the bot of a token in the path, of an interaction or its follow-ups; nil: unknown.
func (s *Sim) owner(r *http.Request) *guild.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, err := guild.ParseID(r.PathValue("webhook")); err == nil {
		return s.guild.Account(id)
	}
	return s.guild.InteractionApp(r.PathValue("token"))
}

func nameOf(a *guild.Account) string {
	if a == nil {
		return ""
	}
	return a.Username
}

// account returns the caller, by the token. Bots must identify as bots.
func (s *Sim) account(r *http.Request) (*guild.Account, error) {
	kind, token, two := strings.Cut(r.Header.Get("Authorization"), " ")
	if !two {
		kind, token = "", kind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.guild.AccountByToken(token)
	if a == nil || a.Bot && kind != "Bot" {
		return nil, apierror.Refuse(http.StatusUnauthorized, 0, "401: Unauthorized")
	}
	return a, nil
}

// limit asks the limiter. People are not limited; requests with their own token do not count globally.
func (s *Sim) limit(who *guild.Account, r *http.Request, pattern, said string, n needs) ratelimit.Verdict {
	if s.opts.NoRateLimits || who == nil && n == withAccount || who != nil && !who.Bot {
		return ratelimit.Free()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := ratelimit.Request{Route: pattern, Major: majorOf(r), Body: said, Free: n == withNobody}
	if who != nil {
		asked.Who = who.ID.String()
	}
	return s.limits.Ask(asked)
}

// majorOf is the part of a path with its own buckets: a channel, a guild, a webhook with its token.
func majorOf(r *http.Request) string {
	for _, name := range []string{"channel", "guild", "webhook"} {
		if v := r.PathValue(name); v != "" {
			return strings.TrimSpace(v + " " + r.PathValue("token"))
		}
	}
	return ""
}

// read parses the body: JSON, or a form with a JSON part and files.
func (c *call) read(w http.ResponseWriter) error {
	if c.Body == nil || c.Method == http.MethodGet || c.Method == http.MethodHead {
		return nil
	}
	limited := http.MaxBytesReader(w, c.Body, bodyLimit)
	kind, params, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		body, files, err := readForm(multipart.NewReader(limited, params["boundary"]))
		c.body, c.files = body, files
		return err
	}
	raw, err := io.ReadAll(limited)
	if err != nil {
		return tooLarge(err)
	}
	c.body = raw
	return nil
}

func tooLarge(err error) error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return apierror.Refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
	}
	return apierror.Refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
}

// readForm parses a multipart body: payload_json, and files under files[n].
func readForm(r *multipart.Reader) (json.RawMessage, []guild.Upload, error) {
	var body json.RawMessage
	var files []guild.Upload
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return body, files, nil
		}
		if err != nil {
			return nil, nil, tooLarge(err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, tooLarge(err)
		}
		name := part.FormName()
		switch {
		case name == "payload_json":
			body = data
		case part.FileName() != "":
			number := strings.TrimSuffix(strings.TrimPrefix(name, "files["), "]")
			files = append(files, guild.Upload{Number: number, Name: part.FileName(), Kind: part.Header.Get("Content-Type"), Data: data})
		}
		if len(files) > 10 {
			return nil, nil, apierror.Wrong("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
		}
	}
}

func fail(w http.ResponseWriter, v ratelimit.Verdict, err error) {
	var e *apierror.Error
	if !errors.As(err, &e) {
		e = &apierror.Error{Status: http.StatusInternalServerError, Message: "500: Internal Server Error"}
	}
	if !v.Counted() {
		v.Headers(w.Header())
	}
	if e.Code == 20016 { // slow mode is reported like a rate limit, though it is none
		w.Header().Set("Retry-After", "1")
		show(w, e.Status, object{"message": e.Message, "code": e.Code, "retry_after": 1, "global": false})
		return
	}
	show(w, e.Status, e)
}

func show(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"message":"500: Internal Server Error","code":0}`)
	}
	write(w, status, raw)
}

func write(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client is gone
}

// id parses a snowflake in the path; an invalid one is an unknown thing of that kind.
func (c *call) id(name string) guild.ID {
	id, err := guild.ParseID(c.PathValue(name))
	if err != nil {
		return 0
	}
	return id
}

// decode parses the body.
func (c *call) decode(into any) error { return apierror.Decode(c.body, into) }

// place returns the channel in the path.
func (c *call) place(need guild.Perm) (*guild.Channel, error) {
	return c.guild.Place(c.who, c.id("channel"), need)
}

// at returns the channel and the message in the path.
func (c *call) at(need guild.Perm) (*guild.Channel, *guild.Message, error) {
	in, err := c.place(need)
	if err != nil {
		return nil, nil, err
	}
	m := in.Message(c.id("message"))
	if m == nil || !m.VisibleTo(c.who.ID) {
		return nil, nil, apierror.NotFound(10008, "Message")
	}
	return in, m, nil
}

// query parses a number in the query, within bounds.
func (c *call) query(name string, otherwise, least, most int) (int, error) {
	s := c.URL.Query().Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, apierror.Wrong(name, "NUMBER_TYPE_MAX", "int value should be between %d and %d.", least, most)
	}
	return n, nil
}

func (c *call) queryID(name string) (guild.ID, error) {
	s := c.URL.Query().Get(name)
	if s == "" {
		return 0, nil
	}
	id, err := guild.ParseID(s)
	if err != nil {
		return 0, apierror.Wrong(name, "NUMBER_TYPE_COERCE", "Value %q is not snowflake.", s)
	}
	return id, nil
}

// waitOr waits for d; false: the guild ended or the client left first.
func waitOr(quit <-chan struct{}, gone <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-quit:
	case <-gone:
	}
	return false
}
