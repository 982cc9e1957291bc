package llmsim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Turn answers one request. The parts come in the order of the fields: reasoning,
// text, calls. An empty Turn is an empty answer.
type Turn struct {
	Thinking  string `yaml:"thinking"`
	Signature string `yaml:"signature"` // of the thinking; "": one is made up
	Redacted  string `yaml:"redacted"`  // a block of encrypted reasoning
	Text      string `yaml:"text"`
	Repeat    int    `yaml:"repeat"`  // the text is repeated this often: huge answers
	Refusal   string `yaml:"refusal"` // OpenAI's refusal text
	Calls     []Call `yaml:"calls"`

	Chunk      int           `yaml:"chunk"`      // characters a frame; 0: 20
	Delay      time.Duration `yaml:"delay"`      // before each frame
	Interleave bool          `yaml:"interleave"` // the calls' fragments alternate
	RepeatIDs  bool          `yaml:"repeatIds"`  // OpenAI: id and name in each fragment, like some servers
	PacketSize int           `yaml:"packetSize"` // bytes per packet, splitting characters; 0: whole frames

	Stop         string `yaml:"stop"` // end, tools, length, stop_sequence, refusal, pause; "": derived
	StopSequence string `yaml:"stopSequence"`
	Usage        *Usage `yaml:"usage"` // nil: counted, with a simulated prefix cache
	NoUsage      bool   `yaml:"noUsage"`
	NoDone       bool   `yaml:"noDone"` // OpenAI: end without [DONE], like some servers

	Fault *Fault `yaml:"fault"`
}

// Call is a tool call.
type Call struct {
	ID        string `yaml:"id"` // "": one is made up
	Name      string `yaml:"name"`
	Args      any    `yaml:"args"`      // a string or json.RawMessage is sent unchanged, anything else as JSON; nil: nothing
	Fragments int    `yaml:"fragments"` // number of frames for the arguments; 0: one
}

// Usage is the usage that the answer reports. Input excludes cached tokens.
type Usage struct {
	Input      int `yaml:"input"`
	Output     int `yaml:"output"`
	CacheRead  int `yaml:"cacheRead"`
	CacheWrite int `yaml:"cacheWrite"`
}

// FaultKind is how an answer fails.
type FaultKind string

// The faults. All but Status happen in the stream, after After whole frames.
const (
	Status      FaultKind = "status"    // an HTTP error instead of an answer
	StreamError FaultKind = "error"     // an error event
	Cut         FaultKind = "cut"       // half a frame, then the connection closes
	EOF         FaultKind = "eof"       // the stream ends cleanly, but too early
	Malformed   FaultKind = "malformed" // a frame that is not JSON; the rest follows
	Stall       FaultKind = "stall"     // silence until the client leaves
)

// Fault is a failure of a turn.
type Fault struct {
	Kind         FaultKind `yaml:"kind"`
	After        int       `yaml:"after"`
	Code         int       `yaml:"code"`       // HTTP status
	Type         string    `yaml:"type"`       // the provider's name for the error; "": the default for the status
	ErrCode      string    `yaml:"errCode"`    // OpenAI's code, for example context_length_exceeded
	Message      string    `yaml:"message"`    // "": a default message
	RetryAfter   string    `yaml:"retryAfter"` // header: seconds or an HTTP date
	RetryAfterMS int       `yaml:"retryAfterMs"`
	Body         string    `yaml:"body"` // instead of the default error body
}

// Text is a turn with a text.
func Text(text string) Turn { return Turn{Text: text} }

// Calls is a turn that calls tools.
func Calls(calls ...Call) Turn { return Turn{Calls: calls} }

// Fail is a turn that answers with an HTTP status.
func Fail(code int) Turn { return Turn{Fault: &Fault{Kind: Status, Code: code}} }

// With returns the turn with a fault after so many frames.
func (t Turn) With(kind FaultKind, after int) Turn {
	f := Fault{}
	if t.Fault != nil {
		f = *t.Fault
	}
	f.Kind, f.After = kind, after
	t.Fault = &f
	return t
}

// text is the whole text of the turn.
func (t Turn) text() string {
	if t.Repeat > 1 {
		return strings.Repeat(t.Text, t.Repeat)
	}
	return t.Text
}

// stop is the turn's stop, in our terms.
func (t Turn) stop() string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return "tools"
	case t.StopSequence != "":
		return "stop_sequence"
	default:
		return "end"
	}
}

// output is how many bytes of the turn a model would have written.
func (t Turn) output() int {
	n := len(t.Thinking) + len(t.text()) + len(t.Refusal)
	for _, c := range t.Calls {
		n += len(c.Name) + len(c.args())
	}
	return n
}

// args returns the arguments as sent.
func (c Call) args() string {
	switch args := c.Args.(type) {
	case nil:
		return ""
	case string:
		return args
	case json.RawMessage:
		return string(args)
	case []byte:
		return string(args)
	default:
		data, err := json.Marshal(args)
		if err != nil {
			return fmt.Sprintf("%q", err.Error()) // a script can only contain JSON; a Go test notices at once
		}
		return string(data)
	}
}

// fragments splits the arguments into as many pieces as requested, at character boundaries.
func (c Call) fragments() []string {
	args := c.args()
	n := max(c.Fragments, 1)
	var out []string
	runes := []rune(args)
	for i := range n {
		piece := string(runes[len(runes)*i/n : len(runes)*(i+1)/n])
		if piece != "" {
			out = append(out, piece)
		}
	}
	return out
}

// pieces splits text into frames of n characters.
func pieces(text string, n int) []string {
	if n <= 0 {
		n = 20
	}
	var out []string
	for text != "" {
		cut, runes := len(text), 0
		for i := range text {
			if runes == n {
				cut = i
				break
			}
			runes++
		}
		out = append(out, text[:cut])
		text = text[cut:]
	}
	return out
}
