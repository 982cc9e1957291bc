package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowBody gives one byte a step, step by step, until its context ends.
type slowBody struct {
	ctx  context.Context
	step time.Duration
	left int
}

func (s *slowBody) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	timer := time.NewTimer(s.step)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.left--
		p[0] = 'x'
		return 1, nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *slowBody) Close() error { return nil }

// watch is a call whose server sends a byte a step.
func watch(t *testing.T, first, idle, step time.Duration, bytes int) (*Call, *http.Response) {
	t.Helper()
	call := Watch(t.Context(), first, idle)
	t.Cleanup(func() { _ = call.Close() })
	res, err := call.Send(nil, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: &slowBody{ctx: call.Context(), step: step, left: bytes}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return call, res
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name              string
		first, idle, step time.Duration
		want              error
	}{
		{"in time", time.Minute, 10 * time.Second, 9 * time.Second, nil},
		{"late to begin", time.Minute, 10 * time.Minute, 2 * time.Minute, errFirstByte},
		{"late to go on", time.Hour, 10 * time.Second, time.Minute, errIdle},
		{"defaults", 0, 0, 80 * time.Second, nil},
		{"default for the first byte", 0, time.Hour, 121 * time.Second, errFirstByte},
		{"default between bytes", time.Hour, 0, 91 * time.Second, errIdle},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				call, res := watch(t, c.first, c.idle, c.step, 5)
				_, err := io.ReadAll(res.Body)
				if c.want == nil {
					if err != nil {
						t.Errorf("got %v", err)
					}
				} else if !errors.Is(call.Cause(err), c.want) {
					t.Errorf("got %v because of %v", err, call.Cause(err))
				}
				_ = call.Close()
			})
		})
	}
}

func TestDrainIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		call, res := watch(t, 0, 0, time.Second, 5)
		if _, err := io.ReadFull(res.Body, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		call.Drain()
		if took := time.Since(start); took != drainTime {
			t.Errorf("took %s", took)
		}
		_ = call.Close()
	})
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for status, limit := range map[int]int64{200: maxAnswer, 500: maxReport} {
		call := Watch(t.Context(), 0, 0)
		res, _ := call.Send(nil, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: endless{}}, nil
		})
		n, err := io.Copy(io.Discard, res.Body)
		if !errors.Is(err, errTooLarge) || n < limit || n > limit+1<<20 {
			t.Errorf("%d: read %d bytes, %v", status, n, err)
		}
		_ = call.Close()
	}
}

func TestNetworkErrorsKeepTheirCauseButNotTheKey(t *testing.T) {
	t.Parallel()
	side := Side{Provider: "p", Model: "m", Key: "secret-key"}
	plain := io.ErrUnexpectedEOF
	if e := side.Network(plain); !errors.Is(e, plain) || e.Kind != model.Network {
		t.Errorf("got %+v", e)
	}
	if e := side.Network(errors.New("dial secret-key@host")); strings.Contains(e.Error(), "secret-key") || e.Err != nil {
		t.Errorf("got %v, %v", e, e.Err)
	}
}

func TestNoErrorRepeatsAHeader(t *testing.T) {
	t.Parallel()
	side := Side{Provider: "p", Model: "m", Secrets: []string{"header-secret"}}
	if e := side.Network(errors.New("dial header-secret@host")); strings.Contains(e.Error(), "header-secret") || e.Err != nil {
		t.Errorf("got %v, %v", e, e.Err)
	}
	if e := side.Status(500, nil, []byte("header-secret is odd")); strings.Contains(e.Error(), "header-secret") {
		t.Errorf("got %v", e)
	}
}

// A word that is too short to be a key is left where it stands: "s" is in most of them.
func TestShortSecretsGarbleNothing(t *testing.T) {
	t.Parallel()
	side := Side{Provider: "p", Model: "m", Key: "s", Secrets: []string{"", "messa", "six-it"}}
	cause := errors.New("this message is short")
	if e := side.Network(cause); e.Message != cause.Error() || !errors.Is(e, cause) {
		t.Errorf("got %q, %v", e.Message, e.Err)
	}
	if e := side.Status(500, nil, []byte("this message has six-it in it")); e.Message != "this message has *** in it" {
		t.Errorf("got %q", e.Message)
	}
	if side.Secrets[0] != "" || side.Secrets[2] != "six-it" {
		t.Errorf("the list itself was changed: %q", side.Secrets)
	}
}

func TestReadReport(t *testing.T) {
	t.Parallel()
	cases := []struct{ body, kind, message string }{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "overloaded_error", "Overloaded"},
		{`{"error":{"message":"no","type":"t","code":404}}`, "t", "no"},
		{`{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"it is too hot","provider_name":"x"}}}`, "", "Provider returned error: it is too hot"},
		{`{"error":{"message":"no","metadata":"odd"}}`, "", "no"},
		{`{"error":"a sentence"}`, "", "a sentence"},
		{`{"message":"at the top"}`, "", "at the top"},
		{`{"detail":"fastapi"}`, "", "fastapi"},
		{`{"detail":[{"msg":"x"}]}`, "", "[map[msg:x]]"},
		{`{}`, "", "{}"},
		{`plain`, "", "plain"},
		{``, "", ""},
	}
	for _, c := range cases {
		if r := ReadReport([]byte(c.body)); r.Type != c.kind || r.Message != c.message {
			t.Errorf("%s: %+v", c.body, r)
		}
	}
}

func TestArgsAreAlwaysAnObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := json.RawMessage(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			`{}`, ` {"a":1} `, `[1]`, `"x"`, `null`, `{"a":`, "\xff\xfe", `1e5`, ``, "0\u00a0", "\u00a0",
		})).Draw(t, "raw"))
		got := Args(raw)
		var object map[string]any
		if err := json.Unmarshal(got, &object); err != nil || object == nil {
			t.Fatalf("Args(%q) = %s: %v", raw, got, err)
		}
		// What the journal keeps of it gives the same bytes again.
		data, err := json.Marshal(chat.Blocks{chat.ToolUse{ID: "1", Name: "n", Args: raw}})
		if err != nil {
			t.Fatal(err)
		}
		var back chat.Blocks
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if kept := Args(back.Calls()[0].Args); !equalJSON(kept, got) {
			t.Fatalf("Args(%q) = %s, and after the journal %s", raw, got, kept)
		}
	})
}

func equalJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestEstimateCountsPicturesByPiece(t *testing.T) {
	t.Parallel()
	img := chat.Image{MediaType: "image/png", Size: 3_000_000}
	m, err := model.NewMessage(model.User, chat.Participant{}, chat.Blocks{img, chat.ToolResult{Call: "c", Blocks: chat.Blocks{img}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Estimate(8_000_400, []*model.Message{m}); got != 100+2*imageTokens {
		t.Errorf("estimate %d", got)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file chat.File
		want string
	}{
		{chat.File{Name: "a.pdf", MediaType: "application/pdf", Size: 12, Path: "@attachments/a.pdf"}, "[file a.pdf (application/pdf, 12 bytes): @attachments/a.pdf]"},
		{chat.File{Name: "a"}, "[file a: not laid into the workspace]"},
		{chat.File{Name: "a.pdf", Size: 12, Path: "attachments/1_a.pdf", Wanted: true}, "[file a.pdf (12 bytes): still being fetched, will be at attachments/1_a.pdf]"},
		{chat.File{Name: "a.pdf", Path: "attachments/1_a.pdf", Trouble: "Discord answered 404"}, "[file a.pdf: not there: Discord answered 404]"},
		{chat.File{}, "[file without a name: not laid into the workspace]"},
	} {
		if got := FileLine(c.file); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    chat.Thinking
		want bool
	}{
		{chat.Thinking{Signature: "openai:abc"}, true}, {chat.Thinking{Redacted: "openrouter:abc"}, true},
		{chat.Thinking{Signature: "ErUBCkYIBBgCIkA+/="}, false}, {chat.Thinking{Text: "a: b"}, false},
	} {
		if got := ForOtherVendor(c.t); got != c.want {
			t.Errorf("%+v: %v", c.t, got)
		}
	}
}

// A model may call anything by any name; a name that a provider refuses must not be sent
// back to it for ever.
func TestToolNamesThatFit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"bash": "bash", "": "unnamed", "functions.bash": "functions_bash", "a b\xff": "a_b_", "schön": "sch_n",
		strings.Repeat("x", 65): strings.Repeat("x", 64),
	} {
		if got := ToolName(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}

func TestIDsThatFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for _, id := range []string{"toolu_01-a", "c-1", strings.Repeat("x", 64)} {
		if got := FitID(id, 64); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{"", "call:2", "ä", "a/b", long, long + "x"} {
		got := FitID(id, 64)
		if FitID(got, 64) != got || FitID(id, 64) != got || seen[got] != "" {
			t.Errorf("%q became %q, as %q did", id, got, seen[got])
		}
		seen[got] = "x" + id
	}
}

// TestNetworkErrorsArePlain: whoever is offline reads that, and not the words of Go's libraries.
func TestNetworkErrorsArePlain(t *testing.T) {
	t.Parallel()
	asked := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://models.example:8080/v1/chat", Err: err}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{asked(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "models.example", Server: "10.0.0.1:53", IsNotFound: true}}), "the name models.example is not known here; is this machine online?"},
		{asked(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), "models.example:8080 refuses connections; is it running?"},
		{asked(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), "models.example:8080 closed the connection"},
		{io.ErrUnexpectedEOF, "the provider closed the connection"},
		{asked(context.Canceled), "the call was cancelled"},
		{errors.New("something else"), "something else"},
	} {
		if got := (Side{Provider: "p", Model: "m"}).Network(c.err).Message; got != c.want {
			t.Errorf("%v: %q, not %q", c.err, got, c.want)
		}
	}
}

// Messages without bytes are left out, the others keep their place; if none is left, there is nothing to send.
func TestEncodeAll(t *testing.T) {
	t.Parallel()
	said := func(texts ...string) (out []*model.Message) {
		for _, text := range texts {
			m, err := model.NewMessage(model.User, chat.Participant{}, chat.TextBlocks(text))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, m)
		}
		return out
	}
	form := As("form", func(m *model.Message) (model.Wire, error) {
		if text := m.Blocks.Text(); text != "bad" {
			return model.Wire{Bytes: []byte(strings.TrimSpace(text))}, nil
		}
		return model.Wire{}, io.ErrUnexpectedEOF
	})
	placed, size, err := EncodeAll(said("one", " ", "three"), form)
	if err != nil || len(placed) != 2 || placed[1].Index != 2 || string(placed[1].Bytes) != "three" || size != len("one,three,") {
		t.Errorf("%+v, %d bytes, %v", placed, size, err)
	}
	if _, _, err := EncodeAll(said(" "), form); err == nil || !strings.Contains(err.Error(), "nothing to send") {
		t.Error(err)
	}
	if _, _, err := EncodeAll(said("one", "bad"), form); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
