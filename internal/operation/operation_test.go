package operation_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
)

// A small catalogue: things that can be listed, made, followed, sent and fetched.
type things interface {
	List(context.Context, operation.Caller, thingQuery) (operation.List[thing], error)
	Create(context.Context, operation.Caller, newThing) (thing, error)
	Count(context.Context, operation.Caller, countTo) iter.Seq2[int, error]
	Send(context.Context, operation.Caller, sending) (thing, error)
	Fetch(context.Context, operation.Caller, thingRef) (operation.File, error)
}

type thing struct {
	Name string    `json:"name"`
	Size int       `json:"size,omitempty"`
	Made time.Time `json:"made,omitzero"`
}

type thingQuery struct {
	Colour string `json:"colour,omitempty" enum:"red,green"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"9" default:"3"`
}

type newThing struct {
	Name string   `json:"name" minLen:"2" maxLen:"4" pattern:"^[a-z]+$" doc:"its name"`
	Tags []string `json:"tags,omitempty" maxItems:"2" doc:"words"`
	Size *int     `json:"size,omitempty" min:"0" doc:"how large"`
	Key  string   `json:"-" key:"true"`
}

type thingRef struct {
	Name string `json:"name" maxLen:"9" noun:"thing" cli:"thing,t" slash:"-"`
}

type countTo struct {
	Last int `json:"last" min:"1" doc:"where it ends"`
}

type sending struct {
	Name string         `json:"name" maxLen:"9" noun:"thing"`
	File operation.File `json:"-"`
}

var (
	list = operation.New(operation.Info{Name: "thing.list", Help: "List things", Scope: operation.Read,
		Columns: "THING=name | KB=size | MADE ON=made:day", Empty: "there are none"}, things.List)
	create = operation.New(operation.Info{Name: "thing.create", Help: "Create a thing", Scope: operation.Admin, Effect: operation.Creates,
		HTTP: []operation.HTTP{{Route: "POST /things", ID: "createThing"}}, Done: "{name} is made"}, things.Create)
	count = operation.NewStream(operation.Info{Name: "thing.count", Help: "Count things", Scope: operation.Read}, things.Count, operation.Wire[int]{})
	send  = operation.NewUpload(operation.Info{Name: "thing.send", Help: "Send a thing", Scope: operation.Chat, Effect: operation.Changes}, things.Send)
	fetch = operation.NewDownload(operation.Info{Name: "thing.fetch", Help: "Fetch a thing", Scope: operation.Read,
		CLI: []operation.CLI{{Words: "thing fetch", Args: "THING"}}}, things.Fetch)
)

func all() *operation.Set {
	return operation.Collect([]operation.Any{list, create, count, send, fetch, operation.Names})
}

// service carries the operations out.
type service struct{ names []string }

var _ things = (*service)(nil)

func (s *service) List(context.Context, operation.Caller, thingQuery) (operation.List[thing], error) {
	return operation.List[thing]{Items: []thing{{Name: "cup", Size: 3, Made: time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)}}}, nil
}

func (s *service) Create(_ context.Context, _ operation.Caller, in newThing) (thing, error) {
	if slices.Contains(s.names, in.Name) {
		return thing{}, operation.Errorf(operation.Conflict, "%s is there already", in.Name)
	}
	s.names = append(s.names, in.Name)
	return thing{Name: in.Name}, nil
}

func (s *service) Count(_ context.Context, _ operation.Caller, in countTo) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for n := 1; n <= in.Last; n++ {
			if !yield(n, nil) {
				return
			}
		}
	}
}

func (s *service) Send(_ context.Context, _ operation.Caller, in sending) (thing, error) {
	data, err := io.ReadAll(in.File)
	return thing{Name: in.File.Name, Size: len(data)}, err
}

func (s *service) Fetch(_ context.Context, _ operation.Caller, in thingRef) (operation.File, error) {
	return operation.File{Name: in.Name, ReadCloser: operation.Generated(func(w io.Writer) error {
		_, err := io.WriteString(w, "bytes of "+in.Name)
		return err
	})}, nil
}

func caller(scopes ...operation.Scope) operation.Caller {
	return operation.Caller{Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Scopes: scopes}
}

func newLocal() *operation.Local {
	return operation.NewLocal(operation.LocalOptions{
		Handlers: []any{"somebody else", &service{}},
		Nouns: map[string]operation.Noun{"thing": {
			Find: func(_ context.Context, _ operation.Caller, name string) error {
				if name != "cup" && name != "can" {
					return operation.Errorf(operation.NotFound, "there is no %s", name)
				}
				return nil
			},
			Suggest: func(_ context.Context, _ operation.Caller, prefix string) ([]string, error) {
				return slices.DeleteFunc([]string{"cup", "can"}, func(n string) bool { return !strings.HasPrefix(n, prefix) }), nil
			},
		}},
	})
}

func TestEveryShapeRuns(t *testing.T) {
	t.Parallel()
	l, ada := newLocal(), caller(operation.Admin)
	if err := all().Check(); err != nil {
		t.Fatal(err)
	}
	if got, err := create.Call(t.Context(), l, ada, newThing{Name: "mug"}); err != nil || got.Name != "mug" {
		t.Errorf("%v, %v", got, err)
	}
	sum := 0
	for n, err := range count.Follow(t.Context(), l, ada, countTo{Last: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != 6 {
		t.Errorf("the stream gave %d", sum)
	}
	if got, err := send.Call(t.Context(), l, ada, sending{Name: "cup", File: operation.Upload("a.txt", strings.NewReader("four"))}); err != nil || got.Size != 4 || got.Name != "a.txt" {
		t.Errorf("%v, %v", got, err)
	}
	file, err := fetch.Call(t.Context(), l, ada, thingRef{Name: "cup"})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if data, err := io.ReadAll(file); err != nil || string(data) != "bytes of cup" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestWhoMayNotAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := newLocal()
	for name, c := range map[string]struct {
		by    operation.Caller
		in    newThing
		kind  operation.Kind
		field string
	}{
		"nobody":      {operation.Caller{}, newThing{Name: "mug"}, operation.Unsigned, ""},
		"weak token":  {caller(operation.Chat), newThing{Name: "mug"}, operation.Forbidden, ""},
		"too short":   {caller(operation.Admin), newThing{Name: "m"}, operation.Invalid, "name"},
		"too long":    {caller(operation.Admin), newThing{Name: "mugmug"}, operation.Invalid, "name"},
		"pattern":     {caller(operation.Admin), newThing{Name: "M1"}, operation.Invalid, "name"},
		"many":        {caller(operation.Admin), newThing{Name: "mug", Tags: []string{"a", "b", "c"}}, operation.Invalid, "tags"},
		"negative":    {caller(operation.Admin), newThing{Name: "mug", Size: ptr(-1)}, operation.Invalid, "size"},
		"their error": {caller(operation.Admin), newThing{Name: "twin"}, operation.Conflict, ""},
	} {
		if name == "their error" {
			if _, err := create.Call(t.Context(), l, c.by, c.in); err != nil {
				t.Fatal(err)
			}
		}
		_, err := create.Call(t.Context(), l, c.by, c.in)
		var ours *operation.Error
		if !errors.As(err, &ours) || ours.Kind != c.kind || ours.Field != c.field {
			t.Errorf("%s: %#v", name, err)
		}
	}
	if _, err := fetch.Call(t.Context(), l, caller(operation.Read), thingRef{Name: "fork"}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("a noun that is not there: %v", err)
	}
	if _, err := l.Execute(t.Context(), caller(operation.Read), list.Definition, countTo{}); operation.KindOf(err) != operation.Failed {
		t.Errorf("an input of another operation: %v", err)
	}
	for _, err := range l.Follow(t.Context(), operation.Caller{}, count.Definition, countTo{Last: 1}) {
		if operation.KindOf(err) != operation.Unsigned {
			t.Errorf("a stream for nobody: %v", err)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	l, ada := newLocal(), caller(operation.Read)
	for text, want := range map[string]string{"cu": "cup", "cup": "cup", "x": "x"} {
		if got, err := operation.Complete(t.Context(), l, ada, "thing", text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := operation.Complete(t.Context(), l, ada, "thing", "c"); operation.KindOf(err) != operation.Invalid {
		t.Errorf("two begin with c: %v", err)
	}
	if got, err := operation.Complete(t.Context(), l, ada, "unknown", "c"); err != nil || got != "c" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestMistakesInDefinitionsAreFound(t *testing.T) {
	t.Parallel()
	type untold struct {
		Any string `json:"any"`
	}
	run := func(things, context.Context, operation.Caller, untold) (thing, error) { return thing{}, nil }
	bad := operation.New(operation.Info{Name: "bad", Effect: operation.Creates, Scope: "all",
		HTTP: []operation.HTTP{{Route: "FETCH things/{nothing}"}}, CLI: []operation.CLI{{Words: "bad", Args: "WHO", Set: map[string]any{"any": 5}}},
		Slash: []operation.Slash{{Words: "a b c d", Options: "none"}}, Columns: "A"}, run)
	err := operation.Collect([]operation.Any{bad, bad}).Check()
	for _, want := range []string{"not noun.verb", "the help is missing", `no scope "all"`, "no field with the tag key", "no doc", "any length",
		"no method", "no field nothing", "no field who", "cannot be set to 5", "4 words", "no field none", "columns cannot be read", "both have the name bad"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among %v", want, err)
		}
	}
}

func TestTablesAndSentences(t *testing.T) {
	t.Parallel()
	out, err := list.Call(t.Context(), newLocal(), caller(operation.Read), thingQuery{})
	if err != nil {
		t.Fatal(err)
	}
	table := list.TableOf(out)
	if want := (operation.Table{Head: []string{"THING", "KB", "MADE ON"}, Rows: [][]string{{"cup", "3", "2026-01-02"}}}); !reflect.DeepEqual(table, want) {
		t.Errorf("%+v", table)
	}
	if one := create.TableOf(out.Items[0]); one.Head != nil || len(one.Rows) != 3 {
		t.Errorf("%+v", one)
	}
	if got := operation.Sentence("{name} of {colour}: {what}", thingQuery{Colour: "red"}, thing{Name: "cup"}); got != "cup of red: {what}" {
		t.Error(got)
	}
}

func TestTextBecomesValues(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, c := range []struct {
		into any
		text string
		want any
	}{
		{new(string), "a,b", "a,b"}, {new(bool), "true", true}, {new(int), "-4", -4}, {new(float64), "1.5", 1.5},
		{new([]string), "a, b,", []string{"a", "b"}}, {new([]operation.Scope), "read", []operation.Scope{operation.Read}},
		{new(time.Time), "2026-01-31", time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}, {new(time.Time), "24h", now.Add(-24 * time.Hour)},
		{new(map[string]int), `{"a":1}`, map[string]int{"a": 1}},
	} {
		v := reflect.ValueOf(c.into).Elem()
		if err := (operation.Field{}).SetText(v, c.text, now); err != nil || !reflect.DeepEqual(v.Interface(), c.want) {
			t.Errorf("%q: %v, %v", c.text, v, err)
		}
	}
	for _, c := range []struct {
		into any
		text string
	}{{new(bool), "maybe"}, {new(int), "four"}, {new(time.Time), "soon"}, {new([]int), "1"}, {new(map[string]int), "{"}} {
		if err := (operation.Field{}).SetText(reflect.ValueOf(c.into).Elem(), c.text, now); err == nil {
			t.Errorf("%T took %q", c.into, c.text)
		}
	}
}

// Content that is made while it is read ends with its error, and with whoever stops reading.
func TestGeneratedContent(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	body := operation.Generated(func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	data := make([]byte, 4)
	if _, err := io.ReadFull(body, data); err != nil || string(data) != "half" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := body.Read(data); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	stopped := make(chan error, 1)
	body = operation.Generated(func(w io.Writer) error {
		for {
			if _, err := io.WriteString(w, "more"); err != nil {
				stopped <- err
				return err
			}
		}
	})
	if _, err := body.Read(data); err != nil {
		t.Fatal(err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}
