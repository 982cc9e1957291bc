// Package slash makes the commands of a chat platform from operations: their options, the values that are
// suggested while somebody types, and the answer. It also parses them from lines of text, for platforms and
// terminals without a list of commands.
//
// It knows no platform: commands and invocations are the neutral ones of internal/platform. It promises that an
// operation runs as the person who gave the command, with the scopes that the wiring gives them; that the invocation's
// id is the idempotency key; and that nothing is destroyed, and nothing that must be seen first is done, before the same
// person has confirmed what they were shown.
package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"chorus/internal/operation"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/text"
)

// Options configure the commands.
type Options struct {
	Executor   operation.Executor
	Operations *operation.Set
	Surroundings
	// MaxText is the maximum length of an answer; a longer one ends with where to find the rest. 0: unlimited.
	MaxText int
	// Groups describe commands with the same first word.
	Groups map[string]string
}

// Surroundings describe who gives a command, and where.
type Surroundings struct {
	// Caller is a person of the platform with their scopes, in a place that they see; absent: the bot does not see it.
	Caller func(by room.Author, in room.Channel, absent bool) operation.Caller
	// Context is the value for an omitted option: which agent answers in this channel, which session it is.
	// "" and nil: nothing.
	Context func(ctx context.Context, i platform.Invocation, what string) string
	// Named is the full name of what somebody named by a part of its name, if there is one of a noun in this place; "" and nil: there is none.
	Named func(ctx context.Context, i platform.Invocation, noun, part string) (string, error)
	// Choices are the first suggestions for a noun in this place; nil: none in particular.
	Choices func(ctx context.Context, i platform.Invocation, noun string) []platform.Choice
	// Refused is the answer for somebody who may not use an operation, and says who may; nil: the operation's own.
	Refused func(d *operation.Definition) string
}

// Set is the commands of a bot. It may be used from any goroutine.
type Set struct {
	o     Options
	list  []platform.Command
	paths map[string]entry
	*waiting
}

// waiting holds unconfirmed commands.
type waiting struct {
	mu      sync.Mutex
	pending map[string]confirmation // by the invocation's id, or by the written text
}

type entry struct {
	d    *operation.Definition
	line operation.Slash
	none string // the text for an empty list
}

// The limits of platforms: options of a command or suggested values, and characters of a description or a value.
const (
	maxOptions     = 25
	maxDescription = 100
	maxValue       = 100
)

// New makes the commands of a set. It fails if a platform would refuse them.
func New(o Options) (*Set, error) {
	s := &Set{o: o, paths: map[string]entry{}, waiting: &waiting{pending: map[string]confirmation{}}}
	for _, d := range o.Operations.All() {
		for _, line := range d.Slash {
			words := strings.Fields(line.Words)
			options := optionsOf(d, line)
			if len(options) > maxOptions {
				return nil, fmt.Errorf("/%s has %d options, and %d are possible; say which in Options", line.Words, len(options), maxOptions)
			}
			s.paths[strings.Join(words, "/")] = entry{d: d, line: line}
			leaf := platform.Command{Name: words[len(words)-1], Description: text.Clip(cmp.Or(line.Help, d.Help), maxDescription-1), Example: line.Example, Speaks: line.Speaks != "", Private: line.Private,
				Topic: topicOf(d), Anywhere: d.Effect == operation.Reads && len(words) == 1, Options: options, Needs: platform.Right(line.Permission), GuildOnly: line.Permission != ""}
			s.list = s.insert(s.list, words, leaf)
		}
	}
	for path, e := range s.paths {
		e.none = sentence(s.typedHere(e.d.Empty))
		s.paths[path] = e
	}
	return s, nil
}

// typedHere rewrites a terminal command in a sentence for people who type commands here: as the same slash command, or without it if there is none.
func (s *Set) typedHere(sentence string) string {
	before, command, ok := strings.Cut(sentence, "chorus ")
	if !ok {
		return sentence
	}
	words := strings.Fields(command)
	for n := min(len(words), 2); n > 0; n-- {
		if _, here := s.paths[strings.Join(words[:n], "/")]; here {
			return strings.TrimRight(before, "`") + "`/" + strings.Join(words[:n], " ") + "`"
		}
	}
	return strings.TrimSpace(before[:max(strings.LastIndexAny(before, ";,"), 0)])
}

// sentence begins a text with a capital letter, and ends it with a full stop unless it ends with a command.
func sentence(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	if size == 0 {
		return ""
	}
	words = string(unicode.ToUpper(first)) + words[size:]
	if strings.HasSuffix(words, "`") || strings.HasSuffix(words, ".") {
		return words
	}
	return words + "."
}

// topicOf is the help topic of an operation's command: reading is looking, anything else talking. Groups have their own.
func topicOf(d *operation.Definition) string {
	if d.Effect == operation.Reads {
		return platform.TopicLook
	}
	return platform.TopicTalk
}

// As returns the same commands for a bot that knows people and places.
func (s *Set) As(around Surroundings) *Set {
	own := *s
	own.o.Surroundings = around
	return &own
}

// insert adds a command below the groups that its words name.
func (s *Set) insert(list []platform.Command, words []string, leaf platform.Command) []platform.Command {
	if len(words) == 1 {
		return append(list, leaf)
	}
	at := slices.IndexFunc(list, func(c platform.Command) bool { return c.Name == words[0] })
	if at < 0 {
		list = append(list, platform.Command{Name: words[0], Description: cmp.Or(s.o.Groups[words[0]], "Commands about "+words[0]), Needs: leaf.Needs, GuildOnly: leaf.GuildOnly})
		at = len(list) - 1
	}
	leaf.Needs, leaf.GuildOnly, leaf.Topic = "", false, "" // platforms ask for rights at the top
	list[at].Sub = s.insert(list[at].Sub, words[1:], leaf)
	return list
}

// fields are the operation's fields that a command offers.
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

// optionsOf returns the options, the required ones first as platforms want it.
func optionsOf(d *operation.Definition, line operation.Slash) []platform.Option {
	var required, others []platform.Option
	for _, f := range (entry{d: d, line: line}).fields() {
		o := platform.Option{Name: optionName(f), Description: text.Clip(cmp.Or(f.Tag.Get("slashDoc"), f.Doc, f.Name), maxDescription-1), Required: f.Required && f.Context == "" || slices.Contains(strings.Fields(line.Require), f.Name)}
		kind := f.Type.Kind()
		if kind == reflect.Pointer {
			kind = f.Type.Elem().Kind()
		}
		switch kind {
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

// List returns the commands for a platform.
func (s *Set) List() []platform.Command { return s.list }

// input builds the operation's input from an invocation.
func (s *Set) input(ctx context.Context, e entry, i platform.Invocation) (reflect.Value, error) {
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
		given = cmp.Or(given, f.Default)
		if given == "" && f.Required && f.Context != "" && s.o.Context != nil {
			return in, errors.New(cmp.Or(e.line.None, "there is none here yet; choose one with the option "+name))
		}
		if given == "" {
			continue
		}
		if ok && f.Noun != "" && s.o.Named != nil {
			whole, err := s.o.Named(ctx, i, f.Noun, given)
			if err != nil {
				return in, err
			}
			given = cmp.Or(whole, given)
		}
		if err := f.SetText(at, given, time.Now()); err != nil {
			return in, fmt.Errorf("%s: %w", name, err)
		}
	}
	e.d.SetKey(in, i.ID)
	return in, nil
}

// Complete suggests values for an option that somebody types; false: the command is not one of these.
func (s *Set) Complete(ctx context.Context, i platform.Invocation, option string) ([]platform.Choice, bool) {
	e, ok := s.paths[i.Path]
	if !ok {
		return nil, false
	}
	for _, f := range e.fields() {
		if optionName(f) == option && f.Noun != "" {
			typed := strings.ToLower(i.Text[option])
			if s.o.Choices != nil {
				if here := likeTyped(s.o.Choices(ctx, i, f.Noun), typed); len(here) > 0 {
					return here, true
				}
			}
			delete(i.Text, option) // an incomplete value is no input
			in, err := s.input(ctx, e, i)
			if err != nil {
				in = reflect.New(e.d.In).Elem()
			}
			return s.choices(ctx, s.caller(i.By, i.In, i.Absent, i.Allowed), f.Noun, typed, e, in), true
		}
	}
	return nil, true
}

// likeTyped returns the choices that contain what somebody has typed, as many as platforms show.
func likeTyped(list []platform.Choice, typed string) (out []platform.Choice) {
	for _, c := range list {
		if strings.Contains(strings.ToLower(c.Value+" "+c.Label), typed) && len(c.Value) <= maxValue && len(out) < maxOptions {
			out = append(out, platform.Choice{Label: text.Clip(c.Label, maxValue-1), Value: c.Value})
		}
	}
	return out
}

// choices returns things of a noun, with a description if their list has one. Required input of the list is
// taken from the command's options so far.
func (s *Set) choices(ctx context.Context, by operation.Caller, noun, typed string, e entry, in reflect.Value) (out []platform.Choice) {
	if list, ok := s.o.Operations.Named(noun + ".list"); ok && list.Label != "" {
		ask := reflect.New(list.In).Elem()
		for _, f := range list.Fields() {
			if mine, ok := e.d.Field(f.Name); ok && f.Required && mine.Type == f.Type {
				ask.FieldByIndex(f.Index).Set(in.FieldByIndex(mine.Index))
			}
		}
		found, err := s.o.Executor.Execute(ctx, by, list, ask.Interface())
		if err != nil {
			return nil
		}
		for _, item := range operation.Items(found) {
			out = append(out, platform.Choice{Label: text.OneLine(operation.Render(list.Label, nil, item)), Value: operation.NameOf(item)})
		}
		if out = likeTyped(out, typed); len(out) > 0 {
			return out
		}
	}
	list, err := operation.Names.Call(ctx, s.o.Executor, by, operation.Prefix{Noun: noun, Prefix: typed})
	if err != nil {
		return nil
	}
	for _, name := range list.Items {
		if len(name) <= maxValue {
			out = append(out, platform.Choice{Label: name, Value: name})
		}
	}
	return out[:min(len(out), maxOptions)]
}
