package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/approval"
	"chorus/internal/tool"
)

// person answers questions, one after the other, and models.
type person struct {
	replies []Reply
	asked   []Question
	calls   []string
	samples []Sampling
	wait    time.Duration
}

func (p *person) Ask(ctx context.Context, call string, q Question) (Reply, error) {
	p.asked, p.calls = append(p.asked, q), append(p.calls, call)
	select {
	case <-time.After(p.wait):
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
	if len(p.asked) > len(p.replies) {
		return Reply{}, errors.New("nobody answered")
	}
	return p.replies[len(p.asked)-1], nil
}

func (p *person) Sample(_ context.Context, call string, s Sampling) (Sampled, error) {
	p.samples, p.calls = append(p.samples, s), append(p.calls, call)
	if len(p.samples) > 1 {
		return Sampled{}, errors.New("it is not allowed")
	}
	return Sampled{Text: "a cup", Model: "demo/echo"}, nil
}

func TestQuestionsOfServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies []Reply
		want    string
		asked   int
	}{
		"answered":          {[]Reply{{Accept, "7"}}, "accept map[count:7]", 1},
		"with names":        {[]Reply{{Accept, "count: 7\nnote: two words"}}, "accept map[count:7 note:two words]", 1},
		"as JSON":           {[]Reply{{Accept, `{"count":7}`}}, "accept map[count:7]", 1},
		"wrong, then right": {[]Reply{{Accept, "many"}, {Accept, "8"}}, "accept map[count:8]", 2},
		"always wrong":      {[]Reply{{Accept, "a"}, {Accept, "b"}, {Accept, "c"}}, "cancel map[]", 3},
		"declined":          {[]Reply{{Decline, ""}}, "decline map[]", 1},
		"nobody":            {nil, "cancel map[]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, self(t, "srv", "plain"))
			set := toolsOf(t, h)
			p := &person{replies: c.replies}
			h.SetHost(p)
			one, _, err := set.Resolve("mcp__srv__asks", []byte(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Key: "run/c1"}), []byte(`{}`))
			if err != nil || res.Blocks.Text() != c.want || len(p.asked) != c.asked || p.calls[0] != "run/c1" {
				t.Errorf("%s %v; asked %v in %v", res.Blocks.Text(), err, p.asked, p.calls)
			}
			if q := p.asked[0]; q.Server != "srv" || q.Message != "how many?" || !strings.Contains(approval.HowToAnswer(q.Asked()), "count (a whole number): how many") {
				t.Errorf("%+v", q)
			}
		})
	}
}

// While somebody thinks about a question, the time of the call stands still.
func TestAQuestionTakesAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	s := self(t, "srv", "plain")
	s.CallTimeout = 300 * time.Millisecond
	h := open(t, s)
	set := toolsOf(t, h)
	h.SetHost(&person{replies: []Reply{{Accept, "7"}}, wait: time.Second})
	one, _, err := set.Resolve("mcp__srv__asks", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Key: "run/c1"}), []byte(`{}`))
	if err != nil || res.Blocks.Text() != "accept map[count:7]" {
		t.Errorf("%s %v", res.Blocks.Text(), err)
	}
}

func TestSampling(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "srv", "plain"))
	set := toolsOf(t, h)
	p := &person{}
	h.SetHost(p)
	one, _, err := set.Resolve("mcp__srv__samples", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "c1", Key: "run/c1"})
	if res, err := one.Run(ctx, []byte(`{}`)); err != nil || res.Blocks.Text() != "demo/echo said a cup" {
		t.Errorf("%s %v", res.Blocks.Text(), err)
	}
	want := Sampling{Server: "srv", Action: "mcp__srv__@sample", System: "Be short.", Messages: []SampledMessage{{false, "what is it?"}}, MaxTokens: 50}
	if !reflect.DeepEqual(p.samples[0], want) {
		t.Errorf("%+v", p.samples[0])
	}
	if res, err := one.Run(ctx, []byte(`{}`)); err != nil || !strings.Contains(res.Blocks.Text(), "it is not allowed") {
		t.Errorf("%s %v", res.Blocks.Text(), err)
	}
}

func TestRootsInstructionsPromptsAndTextOfServers(t *testing.T) {
	t.Parallel()
	s := self(t, "srv", "plain")
	other := t.TempDir()
	s.Args = []string{other, "not/a/folder"}
	h := open(t, s)
	set := toolsOf(t, h)
	roots := run(t, set, "mcp__srv__roots", `{}`).Blocks.Text()
	for _, dir := range []string{h.opt.Dir, other} {
		if want := filepath.Base(dir) + " file://" + dir; !strings.Contains(roots, want) {
			t.Errorf("no %s in %s", want, roots)
		}
	}
	if got := h.Tools(t.Context(), nil).Instructions; len(got) != 1 || got[0] != (Instruction{"srv", "Ask for the weather first."}) {
		t.Errorf("%v", got)
	}
	if got := run(t, set, "mcp_read", `{"server":"srv","uri":"doc://bytes"}`).Blocks.Text(); got != "[resource doc://bytes, application/octet-stream]\nplain words" && !strings.Contains(got, "plain words") {
		t.Errorf("a text blob is not text: %s", got)
	}
	prompts := h.Prompts(t.Context())
	if len(prompts) != 1 || prompts[0].String() != "/srv:review WHAT [HOW]" || prompts[0].About != "Reviews something." {
		t.Fatalf("%+v", prompts)
	}
	for words, want := range map[string]string{
		"main.go":                   "Review main.go, .",
		`main.go very strictly`:     "Review main.go, very strictly.",
		`"a file" how=well`:         "Review a file, well.",
		`how="as ever" what=a.go`:   "Review a.go, as ever.",
		"":                          "what is missing: /srv:review WHAT [HOW]",
		`what=a.go how=well beside`: `"beside" is too much: /srv:review WHAT [HOW]`,
	} {
		got, err := h.Prompt(t.Context(), "srv", "review", words)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s", words, got)
		}
	}
	if _, err := h.Prompt(t.Context(), "srv", "nothing", ""); err == nil || !strings.Contains(err.Error(), "/srv:review") {
		t.Errorf("%v", err)
	}
}

// A server on the network that dies during a call is noticed within five seconds.
func TestADeadServerIsNoticed(t *testing.T) {
	t.Parallel()
	begun, over := make(chan struct{}), make(chan struct{})
	s := sdk.NewServer(plain, nil)
	var dead atomic.Bool
	add(s, "hangs", func(_ context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(begun)
		<-over
		return nil, errors.New("over")
	})
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dead.Load() {
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(over)
		at.CloseClientConnections()
		at.Close()
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	h := open(t, Server{Name: "srv", URL: at.URL})
	set := toolsOf(t, h)
	go func() {
		<-begun
		dead.Store(true)
		at.CloseClientConnections()
	}()
	began := time.Now()
	res := run(t, set, "mcp__srv__hangs", `{}`)
	if took := time.Since(began); !res.Failed || took > 30*time.Second { // without a look at the server it would be two minutes
		t.Errorf("after %s: %s", took, res.Blocks.Text())
	}
}

// An answer is read as its field wants it.
func TestAnswersFitTheirFields(t *testing.T) {
	t.Parallel()
	q := Question{Fields: fieldsOf(map[string]any{"required": []string{"size"}, "properties": map[string]any{
		"size":  map[string]any{"type": "string", "oneOf": []any{map[string]any{"const": "s", "title": "Small"}, map[string]any{"const": "l", "title": "Large"}}},
		"tags":  map[string]any{"type": "array", "items": map[string]any{"enum": []string{"red", "green"}}},
		"price": map[string]any{"type": "number", "default": 1.5}, "gift": map[string]any{"type": "boolean"}}})}
	for text, want := range map[string]string{
		"size: large\ntags: red, green\ngift: yes": "map[gift:true price:1.5 size:l tags:[red green]]",
		"s":                        "map[price:1.5 size:s]",
		"size=s; price=2":          "map[price:2 size:s]",
		"size: huge":               `size cannot be "huge": it is one of s = Small, l = Large`,
		"size: s\ntags: blue":      `tags cannot be "blue": it is some of red, green, may be left out`,
		"size: s\ngift: perhaps":   `gift must be yes or no, not "perhaps"`,
		"":                         "size is missing",
		`{"size":"s","price":"x"}`: `price must be a number, not "x"`,
		`{"size"`:                  "this is not a JSON object: it is incomplete",
	} {
		got, err := q.read(text)
		out := fmt.Sprint(got)
		if err != nil {
			out = err.Error()
		}
		if out != want {
			t.Errorf("%q: %s", text, out)
		}
	}
	yes := Question{Fields: []Field{{Name: "sure", Kind: "boolean", Required: true}}}
	if got, err := yes.read(""); err != nil || got["sure"] != true {
		t.Errorf("%v %v", got, err)
	}
}
