package slash

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/platform"
)

// WriteAgain explains how to confirm a written command.
const WriteAgain = "To confirm, write it again with --yes at the end."

// The actions of the buttons below a question: pressConfirm runs the command, pressLeave drops it.
const (
	pressConfirm = "confirm"
	pressLeave   = "leave"
)

// maxButton is how many bytes platforms store in a button.
const maxButton = 100

// ask keeps a command until the same person confirms it.
func (s *Set) ask(key, shown string, written bool, c confirmation) platform.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, p := range s.pending {
		if time.Now().After(p.until) {
			delete(s.pending, old)
		}
	}
	s.pending[key] = c
	if written {
		return platform.Answer{Text: shown + "\n" + WriteAgain, Asks: shown}
	}
	yes, no, style := "Yes", "No", platform.Yes
	if c.d.Effect == operation.Destroys {
		words := strings.Fields(c.line.Words)
		last := words[len(words)-1]
		yes, no, style = strings.ToUpper(last[:1])+last[1:], "Keep", platform.Danger
	}
	value := platform.ButtonValue(pressConfirm, key)
	if carried, ok := carry(key, c); ok {
		value = platform.ButtonValue(pressConfirm, carried)
	}
	return platform.Answer{Text: shown, Buttons: []platform.Button{{Label: yes, Value: value, Style: style}, {Label: no, Value: platform.ButtonValue(pressLeave, key)}}}
}

// carry encodes a command in the button that confirms it, so that the next process also understands a press: key, person,
// command and input. False: it does not fit, or the confirmation is for something shown that is only in memory.
func carry(key string, c confirmation) (string, bool) {
	in, values := reflect.ValueOf(c.in), url.Values{}
	rest := reflect.New(in.Type()).Elem()
	rest.Set(in)
	for name := range c.line.Set {
		if f, ok := c.d.Field(name); ok {
			rest.FieldByIndex(f.Index).SetZero()
		}
	}
	for _, f := range c.fields() {
		switch at := in.FieldByIndex(f.Index); at.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
			if !at.IsZero() {
				values.Set(optionName(f), fmt.Sprint(at.Interface()))
			}
			rest.FieldByIndex(f.Index).SetZero()
		}
	}
	if index := c.d.KeyIndex(); index != nil {
		rest.FieldByIndex(index).SetZero() // it belongs to the question
	}
	out := key + ":" + c.by.ID + ":" + strings.ReplaceAll(c.line.Words, " ", "/") + "?" + values.Encode()
	return out, rest.IsZero() && c.by.ID != "" && !strings.Contains(c.by.ID, ":") && len(platform.ButtonValue(pressConfirm, out)) <= maxButton
}

// carried decodes what carry wrote for the person who presses; false: the button contains nothing, or another person or an unknown command.
func (s *Set) carried(ctx context.Context, rest, key string, by chat.Principal) (confirmation, bool) {
	who, rest, _ := strings.Cut(rest, ":")
	path, query, ok := strings.Cut(rest, "?")
	e, known := s.paths[path]
	values, err := url.ParseQuery(query)
	if !ok || !known || err != nil || who != by.ID {
		return confirmation{}, false
	}
	i := platform.Invocation{ID: key, Path: path, Text: map[string]string{}}
	for name := range values {
		i.Text[name] = values.Get(name)
	}
	bare := *s
	bare.o.Context = nil // the confirmation is about the original context, not the current one
	in, err := bare.input(ctx, e, i)
	if err != nil {
		return confirmation{}, false
	}
	return confirmation{entry: e, in: in.Interface(), by: by}, true
}

// confirmed takes what the same person was asked before; false: nothing waits for them under this key.
func (s *Set) confirmed(key string, by operation.Caller) (confirmation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, waits := s.pending[key]
	if !waits || c.over || c.by.String() != by.Principal.String() || time.Now().After(c.until) {
		return c, false
	}
	s.pending[key] = confirmation{by: c.by, until: c.until, over: true}
	return c, true
}

// Answers to presses without effect.
const (
	answeredBefore = "This was already answered."
	tooLate        = "That was too long ago; repeat the command."
)

// Press runs a confirmed command; false: the button is not one of these.
func (s *Set) Press(ctx context.Context, p platform.Press) (platform.Answer, bool) {
	action, id, ok := platform.ReadButton(p.Value)
	if !ok || action != pressConfirm && action != pressLeave {
		return platform.Answer{}, false
	}
	key, rest, _ := strings.Cut(id, ":")
	by := s.caller(p.By, p.In, p.Absent, p.Allowed)
	s.mu.Lock()
	asked, waits := s.pending[key]
	s.mu.Unlock()
	switch {
	case waits && asked.by.String() != by.Principal.String():
		return says("Only the person who gave the command can confirm it."), true
	case asked.over:
		return says(answeredBefore), true
	}
	c, mine := s.confirmed(key, by)
	if !mine && !waits && action == pressConfirm && time.Since(p.MessageAt) < confirmTime {
		if c, mine = s.carried(ctx, rest, key, by.Principal); mine { // asked by a process that has ended
			mine = s.takeCarried(key, by.Principal)
		}
	}
	switch {
	case action == pressLeave:
		return platform.Answer{Text: "Nothing was changed.", Replace: true}, true
	case !mine:
		return says(tooLate), true
	}
	answer := says(s.mayNot(c.entry, by, p.Allowed))
	if answer.Text == "" {
		answer = s.execute(ctx, c.entry, by, c.in)
	}
	answer.Replace = true
	return answer, true
}

// takeCarried records that a question of another process is answered; false: it already was.
func (s *Set) takeCarried(key string, by chat.Principal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.pending[key]; taken {
		return false
	}
	s.pending[key] = confirmation{by: by, until: time.Now().Add(confirmTime), over: true}
	return true
}
