package discordsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/yamltext"
)

// Step is one line of a script: somebody does one thing. Label names its result for later steps to use in On; there,
// "last" is the newest message of the channel.
type Step struct {
	After Span   `yaml:"after" json:"after,omitempty"` // how long to wait first, in the guild's time
	As    string `yaml:"as" json:"as,omitempty"`
	In    string `yaml:"in" json:"in,omitempty"`
	On    string `yaml:"on" json:"on,omitempty"`
	Label string `yaml:"label" json:"label,omitempty"`

	Say     string            `yaml:"say" json:"say,omitempty"`     // with On it is a reply
	Files   map[string]string `yaml:"files" json:"files,omitempty"` // with Say: texts by file name
	Edit    string            `yaml:"edit" json:"edit,omitempty"`
	Delete  bool              `yaml:"delete" json:"delete,omitempty"`
	React   string            `yaml:"react" json:"react,omitempty"`
	Unreact string            `yaml:"unreact" json:"unreact,omitempty"`
	Click   string            `yaml:"click" json:"click,omitempty"`
	Values  []string          `yaml:"values" json:"values,omitempty"`
	Slash   string            `yaml:"slash" json:"slash,omitempty"`
	Menu    string            `yaml:"menu" json:"menu,omitempty"` // an entry in the menu of the message On
	Bot     string            `yaml:"bot" json:"bot,omitempty"`
	Options map[string]any    `yaml:"options" json:"options,omitempty"`
	Submit  string            `yaml:"submit" json:"submit,omitempty"`
	Fields  map[string]string `yaml:"fields" json:"fields,omitempty"`
	Thread  string            `yaml:"thread" json:"thread,omitempty"`
	Pin     bool              `yaml:"pin" json:"pin,omitempty"`
	Fault   *Fault            `yaml:"fault" json:"fault,omitempty"`
	Clear   bool              `yaml:"clear" json:"clear,omitempty"`
	Invite  string            `yaml:"invite" json:"invite,omitempty"` // a bot that is away
	// Wait waits for a message of As in In that contains this text, and labels it.
	Wait   string `yaml:"wait" json:"wait,omitempty"`
	Within Span   `yaml:"within" json:"within,omitempty"`
}

// Span is a duration, written like 1.5s.
type Span time.Duration

// UnmarshalText parses a duration as time.ParseDuration does.
func (d *Span) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Span(v)
	return err
}

// MarshalText writes it the same way.
func (d Span) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// scriptState is the progress of a script.
type scriptState struct {
	Steps  int    `json:"steps"`
	Played int    `json:"played"`
	Error  string `json:"error,omitempty"`

	labels map[string]guild.ID
}

// ReadScenario reads a guild and its script from a YAML file.
func ReadScenario(file string) (Options, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Options{}, fmt.Errorf("read the scenario: %w", err)
	}
	o, err := ParseScenario(raw)
	if err != nil {
		return Options{}, fmt.Errorf("%s: %w", file, err)
	}
	return o, nil
}

// ParseScenario is ReadScenario for a text. An unknown key is an error.
func ParseScenario(raw []byte) (Options, error) {
	var o Options
	if err := yamltext.Read(raw, &o); err != nil {
		return Options{}, err
	}
	for i, step := range o.Script {
		if err := step.check(); err != nil {
			return Options{}, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return o, nil
}

// check requires exactly one action.
func (t Step) check() error {
	done := 0
	for _, is := range []bool{t.Say != "", t.Edit != "", t.Delete, t.React != "", t.Unreact != "", t.Click != "", t.Slash != "", t.Menu != "",
		t.Submit != "", t.Thread != "", t.Pin, t.Fault != nil, t.Clear, t.Wait != "", t.Invite != ""} {
		if is {
			done++
		}
	}
	switch {
	case done != 1:
		return fmt.Errorf("a step does one thing (say, edit, delete, react, unreact, click, slash, menu, submit, thread, pin, fault, clear, invite or wait); this one does %d", done)
	case t.As == "" && t.Fault == nil && !t.Clear && t.Wait == "" && t.Invite == "":
		return errors.New("it must say who does it: as: NAME")
	case (t.Say != "" || t.Slash != "") && t.In == "" && t.On == "":
		return errors.New("it must say where: in: CHANNEL")
	case t.On == "" && (t.Edit != "" || t.Delete || t.React != "" || t.Unreact != "" || t.Click != "" || t.Menu != "" || t.Thread != "" || t.Pin):
		return errors.New("it must say which message: on: LABEL")
	}
	return nil
}

// checkScript validates a script against the guild: its people and channels must exist.
func (s *Sim) checkScript(script []Step) error {
	for i, t := range script {
		if t.As != "" && s.guild.AccountNamed(t.As) == nil {
			return fmt.Errorf("step %d: there is nobody called %q", i+1, t.As)
		}
	}
	s.script = scriptState{Steps: len(script), labels: map[string]guild.ID{}}
	return nil
}

// play runs the script in its own goroutine, which Stop waits for.
func (s *Sim) play() {
	if len(s.opts.Script) == 0 || !s.begin() {
		return
	}
	go func() {
		defer s.tasks.Done()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for i, step := range s.opts.Script {
			if !waitOr(s.quit, nil, s.guild.Scale(time.Duration(step.After))) {
				return
			}
			err := s.actUntilEnd(ctx, step)
			s.mu.Lock()
			s.script.Played = i + 1
			if err != nil {
				s.script.Error = fmt.Sprintf("step %d: %v", i+1, err)
			}
			s.connectionsChanged()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

func (s *Sim) actUntilEnd(ctx context.Context, t Step) error {
	within := time.Duration(t.Within)
	if within == 0 {
		within = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, s.guild.Scale(within))
	defer cancel()
	_, err := s.act(ctx, t)
	return err
}

// WaitScript waits until the script has finished, and returns its error.
func (s *Sim) WaitScript(ctx context.Context) error {
	var said string
	err := s.wait(ctx, "the script", func() bool {
		said = s.script.Error
		return said != "" || s.script.Played == s.script.Steps
	})
	if err == nil && said != "" {
		return errors.New(said)
	}
	return err
}

// act runs one step and returns what it created.
func (s *Sim) act(ctx context.Context, t Step) (guild.ID, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	on, err := s.labelled(t.On, t.In)
	if err != nil {
		return 0, err
	}
	id, err := s.do(ctx, t, on)
	if err == nil && t.Label != "" && id != 0 {
		s.mu.Lock()
		s.script.labels[t.Label] = id
		s.mu.Unlock()
	}
	return id, err
}

func (s *Sim) do(ctx context.Context, t Step, on guild.ID) (guild.ID, error) {
	switch {
	case t.Say != "":
		in := t.In
		if in == "" {
			return s.Reply(t.As, on, t.Say)
		}
		s.mu.Lock()
		if id, ok := s.script.labels[in]; ok {
			in = id.String() // a thread that an earlier step opened
		}
		s.mu.Unlock()
		return s.Post(t.As, in, guild.Said{Text: t.Say, Reply: on, Files: t.files()})
	case t.Edit != "":
		return on, s.Edit(t.As, on, t.Edit)
	case t.Delete:
		return on, s.Delete(t.As, on)
	case t.React != "":
		return on, s.React(t.As, on, t.React)
	case t.Unreact != "":
		return on, s.Unreact(t.As, on, t.Unreact)
	case t.Pin:
		return on, s.Pin(t.As, on, true)
	case t.Thread != "":
		return s.OpenThread(t.As, on, t.Thread)
	case t.Click != "":
		i, err := s.Click(t.As, on, t.Click, t.Values...)
		return i.ID, err
	case t.Slash != "":
		i, err := s.Slash(t.As, t.In, t.Bot, strings.TrimPrefix(t.Slash, "/"), t.Options)
		return i.ID, err
	case t.Menu != "":
		i, err := s.Menu(t.As, t.Bot, t.Menu, on)
		return i.ID, err
	case t.Submit != "":
		i, err := s.Submit(t.As, t.Submit, t.Fields)
		return i.ID, err
	case t.Fault != nil:
		_, err := s.Inject(*t.Fault)
		return 0, err
	case t.Clear:
		s.Clear(0)
		return 0, nil
	case t.Invite != "":
		return 0, s.Invite(t.Invite)
	}
	m, err := s.waitFor(ctx, t.As, t.In, t.Wait, on)
	return m.ID, err
}

// labelled returns the message that a step refers to.
func (s *Sim) labelled(label, in string) (guild.ID, error) {
	if label == "" {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.script.labels[label]; ok {
		return id, nil
	}
	if label == "last" {
		c, err := s.guild.FindChannel(in)
		if err != nil {
			return 0, err
		}
		if m := c.Newest(); m != nil {
			return m.ID, nil
		}
	}
	if id, err := guild.ParseID(label); err == nil {
		return id, nil
	}
	return 0, fmt.Errorf("no step before was labelled %q", label)
}

// files returns the step's texts as files.
func (t Step) files() map[string][]byte {
	out := make(map[string][]byte, len(t.Files))
	for name, text := range t.Files {
		out[name] = []byte(text)
	}
	return out
}
