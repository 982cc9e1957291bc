// Package slash makes the commands of a chat platform from operations: their options, the values that are
// suggested while somebody types, and the answer.
//
// It knows no platform: commands and invocations are the neutral ones of internal/platform. It promises that an
// operation runs as whoever gave the command, with the scopes that the wiring gives people of the platform; that
// an idempotency key is the invocation's id; and that nothing is destroyed before the same person has confirmed it.
package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/text"
)

// Options are what the commands are made of.
type Options struct {
	Executor   operation.Executor
	Operations *operation.Set
	// Scopes are what people of the platform may ask for.
	Scopes []operation.Scope
	// Principal is who somebody of the platform is; nil: As says it.
	Principal func(room.Author) chat.Principal
	// Context is what the surroundings say of something that was left out: which agent answers in this channel,
	// which session it is. "" and nil: nothing.
	Context func(ctx context.Context, i platform.Invocation, what string) string
}

// Set is the commands of a bot. It may be used from any goroutine.
type Set struct {
	o     Options
	list  []platform.Command
	paths map[string]entry
	*waiting
}

// waiting is what people have not confirmed yet.
type waiting struct {
	mu      sync.Mutex
	pending map[string]confirmation // by the invocation's id
}

type entry struct {
	d    *operation.Definition
	line operation.Slash
}

// confirmation is a command that destroys something and waits for a second yes.
type confirmation struct {
	entry
	in    any
	by    operation.Caller
	until time.Time
}

// What platforms take at most: options of a command or suggested values, and characters of a description.
const (
	maxOptions     = 25
	maxDescription = 100
	// confirmTime is how long a confirmation is waited for.
	confirmTime = 10 * time.Minute
)

// New makes the commands of a set. It fails where a platform would refuse them.
func New(o Options) (*Set, error) {
	s := &Set{o: o, paths: map[string]entry{}, waiting: &waiting{pending: map[string]confirmation{}}}
	for _, d := range o.Operations.All() {
		for _, line := range d.Slash {
			words := strings.Fields(line.Words)
			options := optionsOf(d, line)
			if len(options) > maxOptions {
				return nil, fmt.Errorf("/%s has %d options, and %d are possible; say which in Options", line.Words, len(options), maxOptions)
			}
			s.paths[strings.Join(words, "/")] = entry{d, line}
			leaf := platform.Command{Name: words[len(words)-1], Description: text.Clip(cmp.Or(line.Help, d.Help), maxDescription-1),
				Topic: topicOf(d), Anywhere: d.Effect == operation.Reads && len(words) == 1, Options: options, Needs: platform.Right(line.Permission), GuildOnly: line.Permission != ""}
			s.list = insert(s.list, words, leaf)
		}
	}
	return s, nil
}

// topicOf is under which topic the command of an operation is found: reading is looking. What
// else there is has its own.
func topicOf(d *operation.Definition) string {
	if d.Effect == operation.Reads {
		return platform.TopicLook
	}
	return ""
}

// As is the same commands for a bot that knows people as principals.
func (s *Set) As(principal func(room.Author) chat.Principal) *Set {
	own := *s
	own.o.Principal = principal
	return &own
}

func (s *Set) caller(who room.Author) operation.Caller {
	return operation.Caller{Principal: s.o.Principal(who), Scopes: s.o.Scopes}
}

// insert hangs a command below the groups that its words name.
func insert(list []platform.Command, words []string, leaf platform.Command) []platform.Command {
	if len(words) == 1 {
		return append(list, leaf)
	}
	at := slices.IndexFunc(list, func(c platform.Command) bool { return c.Name == words[0] })
	if at < 0 {
		list = append(list, platform.Command{Name: words[0], Description: "Commands about " + words[0], Needs: leaf.Needs, GuildOnly: leaf.GuildOnly})
		at = len(list) - 1
	}
	leaf.Needs, leaf.GuildOnly, leaf.Topic = "", false, "" // platforms ask for rights at the top
	list[at].Sub = insert(list[at].Sub, words[1:], leaf)
	return list
}

// fields are those of an operation that a command offers.
func (e entry) fields() (list []operation.Field) {
	only := strings.Fields(e.line.Options)
	for _, f := range e.d.Fields() {
		_, _, ok := f.In(operation.InSlash)
		_, set := e.line.Set[f.Name]
		if ok && !set && !f.File && (len(only) == 0 || slices.Contains(only, f.Name)) {
			list = append(list, f)
		}
	}
	return list
}

// optionsOf are the options, the required ones first as platforms want it.
func optionsOf(d *operation.Definition, line operation.Slash) []platform.Option {
	var required, others []platform.Option
	for _, f := range (entry{d, line}).fields() {
		o := platform.Option{Name: optionName(f), Description: text.Clip(cmp.Or(f.Doc, f.Name), maxDescription-1), Required: f.Required && f.Context == ""}
		switch f.Type.Kind() {
		case reflect.Bool:
			o.Kind = platform.Flag
		case reflect.Int, reflect.Int64:
			o.Kind = platform.Number
		}
		if len(f.Enum) <= maxOptions {
			for _, value := range f.Enum {
				o.Choices = append(o.Choices, platform.Choice{Label: value, Value: value})
			}
		}
		o.Completes = f.Noun != "" && len(o.Choices) == 0
		if o.Required {
			required = append(required, o)
		} else {
			others = append(others, o)
		}
	}
	return append(required, others...)
}

// optionName is a field's name in snake case.
func optionName(f operation.Field) string {
	name, _, _ := f.In(operation.InSlash)
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// List is the commands, as a platform is told.
func (s *Set) List() []platform.Command { return s.list }

// Invoke carries out a command; false: it is none of these.
func (s *Set) Invoke(ctx context.Context, i platform.Invocation) (platform.Answer, bool) {
	e, ok := s.paths[i.Path]
	if !ok {
		return platform.Answer{}, false
	}
	in, err := s.input(ctx, e, i)
	if err != nil {
		return says(err), true
	}
	by := s.caller(i.By)
	if e.d.Effect == operation.Destroys {
		return s.ask(i.ID, confirmation{e, in, by, time.Now().Add(confirmTime)}), true
	}
	return s.execute(ctx, e.d, by, in), true
}

func says(err error) platform.Answer { return platform.Answer{Text: err.Error()} }

// input makes the operation's input of an invocation.
func (s *Set) input(ctx context.Context, e entry, i platform.Invocation) (any, error) {
	in := reflect.New(e.d.In).Elem()
	for name, value := range e.line.Set {
		if f, ok := e.d.Field(name); ok {
			in.FieldByIndex(f.Index).Set(reflect.ValueOf(value))
		}
	}
	for _, f := range e.fields() {
		at, name := in.FieldByIndex(f.Index), optionName(f)
		given, ok := i.Text[name]
		if flag, is := i.Flag[name]; is {
			given, ok = fmt.Sprint(flag), true
		}
		if !ok && f.Context != "" && s.o.Context != nil {
			given = s.o.Context(ctx, i, f.Context)
		}
		if given = cmp.Or(given, f.Default); given == "" {
			continue
		}
		if err := f.SetText(at, given, time.Now()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	e.d.SetKey(in, i.ID)
	return in.Interface(), nil
}

// execute runs an operation and says what came of it.
func (s *Set) execute(ctx context.Context, d *operation.Definition, by operation.Caller, in any) platform.Answer {
	if d.Shape == operation.Streamed {
		return platform.Answer{Text: "This cannot be followed here."}
	}
	out, err := s.o.Executor.Execute(ctx, by, d, in)
	if err != nil {
		return says(err)
	}
	if file, ok := out.(operation.File); ok {
		data, err := io.ReadAll(io.LimitReader(file, maxFile))
		if err = errors.Join(err, file.Close()); err != nil {
			return says(err)
		}
		return platform.Answer{Text: cmp.Or(d.Done, "Here it is."), File: platform.File{Name: cmp.Or(file.Name, "file"), Text: string(data)}}
	}
	return platform.Answer{Text: Text(d, in, out)}
}

// maxFile is what goes along with an answer.
const maxFile = 8 << 20

// Text is an output for people: a sentence, or a table.
func Text(d *operation.Definition, in, out any) string {
	if d.Done != "" {
		return operation.Sentence(d.Done, in, out)
	}
	t := d.TableOf(out)
	if len(t.Rows) == 0 {
		return cmp.Or(d.Empty, "done")
	}
	var b strings.Builder
	for _, row := range t.Rows {
		switch {
		case t.Head == nil:
			fmt.Fprintf(&b, "**%s** %s\n", row[0], row[1])
		default:
			b.WriteString("- " + strings.Join(slices.DeleteFunc(row, func(cell string) bool { return cell == "" }), " · ") + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// Complete suggests values for an option that somebody types; false: the command is none of these.
func (s *Set) Complete(ctx context.Context, i platform.Invocation, option string) ([]platform.Choice, bool) {
	e, ok := s.paths[i.Path]
	if !ok {
		return nil, false
	}
	for _, f := range e.fields() {
		if optionName(f) != option || f.Noun == "" {
			continue
		}
		list, err := operation.Names.Call(ctx, s.o.Executor, s.caller(i.By), operation.Prefix{Noun: f.Noun, Prefix: i.Text[option]})
		if err != nil {
			return nil, true
		}
		var choices []platform.Choice
		for _, name := range list.Items[:min(len(list.Items), maxOptions)] {
			choices = append(choices, platform.Choice{Label: name, Value: name})
		}
		return choices, true
	}
	return nil, true
}

// pressConfirm is the action of a button that confirms.
const pressConfirm = "confirm"

// ask keeps a command until the same person confirms it.
func (s *Set) ask(id string, c confirmation) platform.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, p := range s.pending {
		if time.Now().After(p.until) {
			delete(s.pending, old)
		}
	}
	s.pending[id] = c
	return platform.Answer{Text: c.d.Help + "? This cannot be undone.",
		Buttons: []platform.Button{{Label: "Yes", Value: platform.ButtonValue(pressConfirm, id), Style: platform.Danger}}}
}

// Press carries out what was confirmed; false: the button is none of these.
func (s *Set) Press(ctx context.Context, p platform.Press) (platform.Answer, bool) {
	action, id, ok := platform.ReadButton(p.Value)
	if !ok || action != pressConfirm {
		return platform.Answer{}, false
	}
	by := s.caller(p.By)
	s.mu.Lock()
	c, waiting := s.pending[id]
	mine := waiting && c.by.Principal.String() == by.Principal.String()
	if mine {
		delete(s.pending, id)
	}
	s.mu.Unlock()
	switch {
	case !waiting || time.Now().After(c.until):
		return platform.Answer{Text: "That was too long ago; give the command again."}, true
	case !mine:
		return platform.Answer{Text: "Only whoever gave the command can confirm it."}, true
	}
	answer := s.execute(ctx, c.d, by, c.in)
	answer.Replace = true
	return answer, true
}
