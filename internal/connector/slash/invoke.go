package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"chorus/internal/operation"
	"chorus/internal/platform"
)

// confirmation is a command that waits for a second yes.
type confirmation struct {
	entry
	in    any
	by    string
	until time.Time
}

// confirmTime is how long a confirmation is waited for.
const confirmTime = 10 * time.Minute

// maxFile is what goes along with an answer.
const maxFile = 8 << 20

func says(text string) platform.Answer { return platform.Answer{Text: text} }

// Invoke carries out a command; false: it is none of these.
func (s *Set) Invoke(ctx context.Context, i platform.Invocation) (platform.Answer, bool) {
	e, ok := s.paths[i.Path]
	if !ok {
		return platform.Answer{}, false
	}
	by := s.o.Caller(i.By, i.In, i.Absent)
	if wrong := s.mayNot(e, by, i.Allowed); wrong != "" {
		return says(wrong), true
	}
	in, err := s.input(ctx, e, i)
	if err != nil {
		return says(err.Error()), true
	}
	if e.line.First == "" && e.line.Speaks == "" && e.d.Effect != operation.Destroys {
		return s.execute(ctx, e, by, in.Interface()), true
	}
	key := i.ID
	if i.Written {
		key = "written/" + by.Principal.String() + "/" + i.Path + "/" + fmt.Sprint(i.Text, i.Flag)
		if c, waits := s.confirmed(key, by); i.Confirmed && waits {
			return s.execute(ctx, c.entry, by, c.in), true
		}
	}
	shown, err := s.showFirst(ctx, e, by, in)
	switch {
	case err != nil:
		return says(err.Error()), true
	case e.line.Speaks != "":
		return platform.Answer{Say: strings.TrimSpace(operation.Render(e.line.Speaks, in.Interface(), nil))}, true
	}
	return s.ask(key, shown, i.Written, confirmation{e, in.Interface(), by.Principal.String(), time.Now().Add(confirmTime)}), true
}

// mayNot says why somebody cannot use a command, and who can; "": they can.
func (s *Set) mayNot(e entry, by operation.Caller, allowed platform.Allowed) string {
	switch {
	case !by.May(e.d.Scope) && by.Principal.ID != "" && s.o.Refused != nil:
		return s.o.Refused(e.d)
	case e.d.Effect != operation.Reads && !allowed.Write:
		return "You may not write here, so you cannot do this here either."
	}
	return ""
}

// showFirst is what somebody must see before a command is carried out. What the command's input lacks is taken from it.
func (s *Set) showFirst(ctx context.Context, e entry, by operation.Caller, in reflect.Value) (string, error) {
	if e.line.First == "" {
		return cmp.Or(operation.Render(e.line.Ask, in.Interface(), nil), e.d.Help+"? This cannot be undone."), nil
	}
	first, ok := s.o.Operations.Named(e.line.First)
	if !ok {
		return "", operation.Errorf(operation.Failed, "there is no operation %s", e.line.First)
	}
	ask := reflect.New(first.In).Elem()
	for _, f := range first.Fields() {
		if mine, ok := e.d.Field(f.Name); ok && mine.Type == f.Type {
			ask.FieldByIndex(f.Index).Set(in.FieldByIndex(mine.Index))
		}
	}
	out, err := s.o.Executor.Execute(ctx, by, first, ask.Interface())
	if err != nil {
		return "", err
	}
	for _, f := range e.d.Fields() {
		if at := in.FieldByIndex(f.Index); f.Required && at.IsZero() {
			if v, ok := operation.Value(out, f.Name); ok && v.Type() == f.Type {
				at.Set(v)
			}
		}
	}
	shown := e
	shown.d, shown.line = first, operation.Slash{}
	for _, line := range first.Slash {
		shown.line = line
	}
	return shown.text(ask.Interface(), out, 0), nil
}

// execute runs an operation and says what came of it.
func (s *Set) execute(ctx context.Context, e entry, by operation.Caller, in any) platform.Answer {
	if e.d.Shape == operation.Streamed {
		return says("This cannot be followed here.")
	}
	out, err := s.o.Executor.Execute(ctx, by, e.d, in)
	if err != nil {
		return says(s.o.Operations.Words(operation.InSlash, e.d.NamedIn(operation.InSlash, err).Error()))
	}
	if file, ok := out.(operation.File); ok {
		data, err := io.ReadAll(io.LimitReader(file, maxFile))
		if err = errors.Join(err, file.Close()); err != nil {
			return says(err.Error())
		}
		return platform.Answer{Text: cmp.Or(e.d.Done, "Here it is."), File: platform.File{Name: cmp.Or(file.Name, "file"), Text: string(data)}}
	}
	return says(e.text(in, out, s.o.MaxText))
}

// WriteAgain says how a command that was written is confirmed.
const WriteAgain = "Write it again with --yes behind it if you mean it."

// pressConfirm is the action of a button that confirms.
const pressConfirm = "confirm"

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
	label, style := "Yes", platform.Danger
	if c.d.Effect != operation.Destroys {
		style = platform.Yes
	}
	return platform.Answer{Text: shown, Buttons: []platform.Button{{Label: label, Value: platform.ButtonValue(pressConfirm, key), Style: style}}}
}

// confirmed takes what the same person was asked before; false: nothing waits for them under this key.
func (s *Set) confirmed(key string, by operation.Caller) (confirmation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, waits := s.pending[key]
	if !waits || c.by != by.Principal.String() || time.Now().After(c.until) {
		return c, false
	}
	delete(s.pending, key)
	return c, true
}

// Press carries out what was confirmed; false: the button is none of these.
func (s *Set) Press(ctx context.Context, p platform.Press) (platform.Answer, bool) {
	action, id, ok := platform.ReadButton(p.Value)
	if !ok || action != pressConfirm {
		return platform.Answer{}, false
	}
	s.mu.Lock()
	asked, waits := s.pending[id]
	s.mu.Unlock()
	by := s.o.Caller(p.By, p.In, p.Absent)
	if waits && asked.by != by.Principal.String() {
		return says("Only whoever gave the command can confirm it."), true
	}
	c, mine := s.confirmed(id, by)
	if !mine {
		return says("That was too long ago; give the command again."), true
	}
	answer := says(s.mayNot(c.entry, by, p.Allowed))
	if answer.Text == "" {
		answer = s.execute(ctx, c.entry, by, c.in)
	}
	answer.Replace = true
	return answer, true
}
