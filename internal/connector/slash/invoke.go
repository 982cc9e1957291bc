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

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// confirmation is a command that waits for confirmation.
type confirmation struct {
	entry
	in    any
	by    chat.Principal
	until time.Time
	over  bool // it was answered: a second press changes nothing
}

// confirmTime is how long a confirmation is accepted.
const confirmTime = 10 * time.Minute

// maxFile limits the file of an answer.
const maxFile = 8 << 20

func says(text string) platform.Answer { return platform.Answer{Text: text} }

// Invoke runs a command; false: it is not one of these.
func (s *Set) Invoke(ctx context.Context, i platform.Invocation) (platform.Answer, bool) {
	e, ok := s.paths[i.Path]
	if !ok {
		return platform.Answer{}, false
	}
	by := s.caller(i.By, i.In, i.Absent, i.Allowed)
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
	return s.ask(key, shown, i.Written, confirmation{e, in.Interface(), by.Principal, time.Now().Add(confirmTime), false}), true
}

// caller is the person who asks, with what the platform lets them do in this place.
func (s *Set) caller(who room.Author, in room.Channel, absent bool, allowed platform.Allowed) operation.Caller {
	by := s.o.Caller(who, in, absent)
	by.Manages = by.Here != "" && allowed.ManageMessages
	return by
}

// mayNot says why somebody cannot use a command, and who can; "": they can.
func (s *Set) mayNot(e entry, by operation.Caller, allowed platform.Allowed) string {
	switch {
	case !by.May(e.d.Scope) && by.Principal.ID != "" && s.o.Refused != nil:
		return s.o.Refused(e.d)
	case e.d.Effect != operation.Reads && !allowed.Write:
		return "You may not write here, so you cannot do this here."
	}
	return ""
}

// showFirst returns what somebody must see before a command runs. It fills in missing input from that.
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
	if e.line.Ask != "" {
		return operation.Render(e.line.Ask, in.Interface(), out), nil
	}
	shown := e
	shown.d, shown.line = first, operation.Slash{}
	for _, line := range first.Slash {
		shown.line = line
	}
	return shown.text(ask.Interface(), out, 0), nil
}

// execute runs an operation and describes the result.
func (s *Set) execute(ctx context.Context, e entry, by operation.Caller, in any) platform.Answer {
	if e.d.Shape == operation.Streamed {
		return says("This cannot be streamed here.")
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
