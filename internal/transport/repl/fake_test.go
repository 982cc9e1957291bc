package repl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/theme"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a small conversation: a journal in memory, and a script that writes
// into it when something is handed in.
type fake struct {
	mu        sync.Mutex
	items     []Item
	seq       int64
	changed   chan struct{} // closed and replaced at each append
	approvals map[string]approval.Approval
	calls     []string // what was asked of the session, in order

	onSend    func(f *fake, text string, seq int64) Receipt
	onSteer   func(f *fake, text string, mode chat.Intake)
	onAbort   func(f *fake)
	onAnswer  func(f *fake, id string, ok bool, note string)
	onCommand func(line string) (string, error)
	failWatch error
	failSend  error
	failNext  error // the next Answer fails with it
	info      Info

	always      approval.Always
	failPropose error
}

var _ Session = (*fake)(nil)

func newFake() *fake {
	return &fake{changed: make(chan struct{}), approvals: map[string]approval.Approval{},
		info: Info{Agent: "helper", Model: "demo/guide", Profile: "standard", ID: "01SESSION", Dir: "/repo"}}
}

// put appends events, and live pieces, in order.
func (f *fake) put(things ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, thing := range things {
		switch v := thing.(type) {
		case chat.Body:
			f.seq++
			run := "r1"
			switch v.(type) {
			case chat.Received, chat.Steered, chat.Refused:
				run = ""
			}
			f.items = append(f.items, Item{Event: &chat.Event{Seq: f.seq, Run: run, Body: v}})
		case chat.Live:
			f.items = append(f.items, Item{Live: v})
		default:
			panic(fmt.Sprintf("put %T", thing))
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) log(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fake) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.calls, "\n")
}

func (f *fake) Send(_ context.Context, text string) (Receipt, error) {
	f.log("send %q", text)
	if f.failSend != nil {
		return Receipt{}, f.failSend
	}
	f.put(chat.Received{From: chat.Participant{Name: "ada"}, Blocks: chat.TextBlocks(text), Prompt: true})
	f.mu.Lock()
	seq := f.seq
	f.mu.Unlock()
	if f.onSend == nil {
		return Receipt{Seq: seq}, nil
	}
	r := f.onSend(f, text, seq)
	r.Seq = seq
	return r, nil
}

func (f *fake) Steer(_ context.Context, text string, mode chat.Intake) (bool, error) {
	f.log("steer %q %s", text, mode)
	f.put(chat.Steered{From: chat.Participant{Name: "ada"}, Blocks: chat.TextBlocks(text), Mode: mode})
	if f.onSteer != nil {
		f.onSteer(f, text, mode)
	}
	return false, nil
}

func (f *fake) Abort(_ context.Context, all bool) error {
	f.log("abort %v", all)
	if f.onAbort != nil {
		f.onAbort(f)
	}
	return nil
}

func (f *fake) Answer(_ context.Context, id string, ok bool, note string, always bool) error {
	f.log("answer %s %v %q %v", id, ok, note, always)
	if err := f.failNext; err != nil {
		f.failNext = nil
		return err
	}
	f.mu.Lock()
	a, found := f.approvals[id]
	a.State = map[bool]approval.State{true: approval.Approved, false: approval.Refused}[ok]
	f.approvals[id] = a
	f.mu.Unlock()
	if !found {
		return errors.New("no such approval")
	}
	f.put(chat.ApprovalAnswered{ID: id, Call: a.Call.ID, By: "local:ada", OK: ok, Note: note})
	if f.onAnswer != nil {
		f.onAnswer(f, id, ok, note)
	}
	return nil
}

func (f *fake) Propose(_ context.Context, id string) (approval.Always, error) {
	f.log("propose %s", id)
	return f.always, f.failPropose
}

func (f *fake) Keep(ctx context.Context, id string, rules []string) error {
	f.log("keep %s %q", id, rules)
	return f.Answer(ctx, id, true, "", false)
}

func (f *fake) Watch(ctx context.Context, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for i, seen := 0, int64(0); ; {
			f.mu.Lock()
			changed := f.changed
			var item *Item
			if i < len(f.items) {
				item = &f.items[i]
			}
			fail := f.failWatch
			f.mu.Unlock()
			if item == nil {
				if fail != nil {
					yield(Item{}, fail)
					return
				}
				select {
				case <-changed:
				case <-ctx.Done():
					return
				}
				continue
			}
			i++
			if item.Event != nil {
				seen = item.Event.Seq
			}
			if seen > after && !yield(*item, nil) {
				return
			}
		}
	}
}

func (f *fake) Approval(_ context.Context, id string) (approval.Approval, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.approvals[id]
	if !ok {
		return a, errors.New("no such approval")
	}
	return a, nil
}

func (f *fake) Command(_ context.Context, line string) (string, error) {
	f.log("command %q", line)
	if f.onCommand != nil {
		return f.onCommand(line)
	}
	return "answer to " + line, nil
}

func (f *fake) Label(name string, args []byte) string {
	return strings.TrimSpace(name + " " + strings.Trim(string(args), `{}"`))
}

func (f *fake) Info() Info {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.info
}

// The parts of a run, shortly.

func starts(seqs ...int64) []any {
	return []any{chat.RunStarted{Run: "r1", Model: "demo/guide"}, chat.Took{Run: "r1", Seqs: seqs}}
}

func asking(step, attempt int) any {
	return chat.Asked{Step: step, Attempt: attempt, Purpose: chat.ForTurn}
}

func delta(step, attempt, offset int, text string) any {
	return chat.Delta{Run: "r1", Step: step, Attempt: attempt, What: chat.DeltaText, Offset: offset, Text: text}
}

func says(step, attempt int, text string, calls ...chat.ToolUse) any {
	blocks := chat.Blocks{}
	if text != "" {
		blocks = append(blocks, chat.Text{Text: text})
	}
	stop := chat.StopEnd
	for _, c := range calls {
		blocks, stop = append(blocks, c), chat.StopTools
	}
	return chat.Said{Step: step, Attempt: attempt, Blocks: blocks, Stop: stop, Usage: chat.Usage{Input: 900, Output: 100}}
}

func use(id, name, args string) chat.ToolUse {
	return chat.ToolUse{ID: id, Name: name, Args: []byte(args)}
}

func ran(id, name string, ms int64) chat.ToolRan {
	return chat.ToolRan{Call: id, Name: name, Outcome: chat.Ran, TookMS: ms, Blocks: chat.TextBlocks("ok")}
}

func ends(reason chat.Reason) any {
	return chat.RunEnded{Run: "r1", Reason: reason, Steps: 2, Usage: chat.Usage{Input: 1900, Output: 100}, Cost: 12_300_000}
}

// asks puts a question and its story.
func (f *fake) asks(a approval.Approval) {
	a.State = approval.Open
	f.mu.Lock()
	f.approvals[a.ID] = a
	f.mu.Unlock()
	f.put(chat.ApprovalAsked{ID: a.ID, Call: a.Call.ID, Name: a.Call.Name, Actions: a.Actions, Rule: a.Rule, Preview: a.Preview})
}

// tape records two writers in the order they were used.
type tape struct {
	mu  sync.Mutex
	buf bytes.Buffer
	out bytes.Buffer
}

type track struct {
	t    *tape
	name string
}

func (w track) Write(p []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	if w.name == "out" {
		w.t.out.Write(p)
	}
	text := strings.ReplaceAll(string(p), "\x1b", "␛")
	text = strings.ReplaceAll(text, "\r", "␍")
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" {
			continue
		}
		if n := w.t.buf.Len(); n == 0 || w.t.buf.Bytes()[n-1] == '\n' {
			fmt.Fprintf(&w.t.buf, "%s| ", w.name)
		}
		w.t.buf.WriteString(line)
	}
	return len(p), nil
}

func (t *tape) console(in io.Reader) Console {
	return Console{In: in, Out: track{t, "out"}, Err: track{t, "err"}, Size: func() (int, int) { return 72, 20 }}
}

func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// within gives a test a context that ends before the test binary is killed.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// sixteen is the theme of the terminal's own colours.
func sixteen() theme.Theme { return theme.Of(theme.Terminal, theme.Unknown, false) }
