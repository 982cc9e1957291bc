package slash_test

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room"
)

type cups interface {
	List(context.Context, operation.Caller, query) (operation.List[cup], error)
	Fill(context.Context, operation.Caller, filling) (cup, error)
	Break(context.Context, operation.Caller, ref) (operation.None, error)
	Pour(context.Context, operation.Caller, ref) (operation.File, error)
	Look(context.Context, operation.Caller, ref) (look, error)
	Polish(context.Context, operation.Caller, polish) (cup, error)
	Melt(context.Context, operation.Caller, ref) (operation.None, error)
}

type cup struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
}

type query struct {
	Colour string `json:"colour,omitempty" enum:"red,green"`
	Hidden string `json:"hidden,omitempty" maxLen:"9" slash:"-" doc:"not here"`
}

type filling struct {
	Hot     bool   `json:"hot,omitempty" doc:"whether it burns"`
	CupSize int    `json:"cupSize,omitempty" min:"1" default:"3" doc:"how much"`
	Name    string `json:"name" maxLen:"9" noun:"cup"`
	Room    string `json:"room" maxLen:"9" noun:"room" context:"room" doc:"where it stands"`
	Tea     string `json:"tea" maxLen:"9" doc:"which tea"`
	Key     string `json:"-" key:"true"`
}

// look is what a cup looks like at a moment.
type look struct {
	Name  string `json:"name"`
	Stain string `json:"stain"`
	Marks []cup  `json:"marks"`
	Note  string `json:"note,omitempty"`
}

type polish struct {
	Name  string `json:"name" maxLen:"9" noun:"cup"`
	Stain string `json:"stain" maxLen:"99" slash:"-" doc:"as it was seen"`
}

type ref struct {
	Name string `json:"name" maxLen:"9" noun:"cup"`
}

var all = operation.Collect([]operation.Any{
	operation.New(operation.Info{Name: "cup.list", Help: "List cups", Scope: operation.Read, Slash: []operation.Slash{{Words: "cup list"}},
		Columns: "NAME=name | SIZE=size", Empty: "there are none; look closer, or polish one: chorus cup polish BLUE --hard", Label: "{name}, {size} large"}, cups.List),
	operation.New(operation.Info{Name: "cup.look", Help: "Look at a cup", Scope: operation.Read, Page: "/cups",
		Slash: []operation.Slash{{Words: "cup look", Show: "**{name}**\n{note}\n{stain:block}\n{marks:list}"}}}, cups.Look),
	operation.New(operation.Info{Name: "cup.polish", Help: "Polish a cup", Scope: operation.Chat, Effect: operation.Changes,
		Slash: []operation.Slash{{Words: "cup polish", First: "cup.look"}, {Words: "cup order", First: "cup.look", Speaks: "/{name} please"}}, Done: "{name} shines"}, cups.Polish),
	operation.New(operation.Info{Name: "cup.melt", Help: "Melt a cup", Scope: operation.Admin, Slash: []operation.Slash{{Words: "cup melt"}}}, cups.Melt),
	operation.New(operation.Info{Name: "cup.fill", Help: "Fill a cup " + strings.Repeat("slowly ", 20), Scope: operation.Chat, Effect: operation.Creates,
		Slash: []operation.Slash{{Words: "cup fill", Permission: "manage guild"}, {Words: "tea", Options: "name", Set: map[string]any{"tea": "green", "room": "hall"}}},
		Done:  "{name} holds {size}"}, cups.Fill),
	operation.New(operation.Info{Name: "cup.break", Help: "Break a cup", Scope: operation.Chat, Effect: operation.Destroys,
		Slash: []operation.Slash{{Words: "smash"}}, Done: "{name} is gone"}, cups.Break),
	operation.NewDownload(operation.Info{Name: "cup.pour", Help: "Pour a cup", Scope: operation.Read, Slash: []operation.Slash{{Words: "pour"}}}, cups.Pour),
	operation.Names,
})

type cupboard struct {
	asked []string
	stain string
}

var _ cups = (*cupboard)(nil)

func (c *cupboard) List(_ context.Context, by operation.Caller, in query) (operation.List[cup], error) {
	c.asked = append(c.asked, fmt.Sprintf("%s %+v", by.Principal, in))
	if in.Colour == "red" {
		return operation.List[cup]{}, nil
	}
	if in.Colour == "green" {
		return operation.List[cup]{Items: []cup{{"jug", 9}}, Next: "jug"}, nil
	}
	return operation.List[cup]{Items: []cup{{"mug", 3}, {"bowl", 5}}}, nil
}

func (c *cupboard) Fill(_ context.Context, _ operation.Caller, in filling) (cup, error) {
	c.asked = append(c.asked, fmt.Sprintf("%+v", in))
	return cup{in.Name, in.CupSize}, nil
}

func (c *cupboard) Break(_ context.Context, _ operation.Caller, in ref) (operation.None, error) {
	c.asked = append(c.asked, "break "+in.Name)
	return operation.None{}, nil
}

func (c *cupboard) Pour(_ context.Context, _ operation.Caller, in ref) (operation.File, error) {
	return operation.File{Name: in.Name + ".txt", ReadCloser: operation.Generated(func(w io.Writer) error {
		_, err := io.WriteString(w, "tea")
		return err
	})}, nil
}

func (c *cupboard) Look(_ context.Context, _ operation.Caller, in ref) (look, error) {
	if in.Name == "none" {
		return look{}, operation.Errorf(operation.NotFound, "there is no cup none")
	}
	return look{Name: in.Name, Stain: c.stain, Marks: []cup{{"scratch", 1}, {"dent", 2}}}, nil
}

func (c *cupboard) Polish(_ context.Context, _ operation.Caller, in polish) (cup, error) {
	c.asked = append(c.asked, fmt.Sprintf("%+v", in))
	return cup{in.Name, 1}, nil
}

func (c *cupboard) Melt(context.Context, operation.Caller, ref) (operation.None, error) {
	c.asked = append(c.asked, "melt")
	return operation.None{}, nil
}

func newSet(t *testing.T, h *cupboard) *slash.Set {
	t.Helper()
	local := operation.NewLocal(operation.LocalOptions{Handlers: []any{h}, Nouns: map[string]operation.Noun{"room": {
		Suggest: func(_ context.Context, by operation.Caller, prefix string) ([]string, error) {
			return []string{prefix + "1 of " + by.Principal.ID, prefix + "2"}, nil
		}}}})
	s, err := slash.New(slash.Options{Executor: local, Operations: all, MaxText: 300})
	if err != nil {
		t.Fatal(err)
	}
	return s.As(slash.Surroundings{
		Caller: func(a room.Author, in room.Channel, _ bool) operation.Caller {
			return operation.Caller{Principal: chat.Principal{Kind: "discord", ID: a.ID}, Scopes: []operation.Scope{operation.Chat}, Here: "discord:" + in.Place()}
		},
		Context: func(_ context.Context, i platform.Invocation, what string) string { return what + i.In.ID },
		Refused: func(d *operation.Definition) string { return "only the barkeeper can " + d.Name }})
}

// writer may write where they are.
var writer = platform.Allowed{Write: true}

func TestCommandsAreData(t *testing.T) {
	t.Parallel()
	list := newSet(t, &cupboard{}).List()
	if len(list) != 4 || list[0].Name != "cup" || len(list[0].Sub) != 6 || list[1].Name != "tea" {
		t.Fatalf("%+v", list)
	}
	if o := list[0].Sub[0].Options; len(o) != 1 || len(o[0].Choices) != 2 || o[0].Choices[1].Value != "green" {
		t.Errorf("%+v", o)
	}
	fill := list[0].Sub[5]
	var names []string
	for _, o := range fill.Options {
		names = append(names, fmt.Sprintf("%s %s %v %v", o.Name, o.Kind, o.Required, o.Completes))
	}
	// The required ones come first; what the surroundings can say is not required.
	want := []string{"name  true true", "tea  true false", "hot flag false false", "cup_size number false false", "room  false true"}
	if !reflect.DeepEqual(names, want) || len([]rune(fill.Description)) > 100 {
		t.Errorf("%q, %q", names, fill.Description)
	}
	if tea := list[1]; len(tea.Options) != 1 || tea.Needs != "" {
		t.Errorf("%+v", tea)
	}
}

func TestCommandsAreCarriedOut(t *testing.T) {
	t.Parallel()
	h := &cupboard{}
	s := newSet(t, h)
	for _, c := range []struct {
		i     platform.Invocation
		says  string
		asked string
	}{
		{platform.Invocation{Path: "cup/list"}, "- mug · 3\n- bowl · 5", "discord:7 {Colour: Hidden:}"},
		{platform.Invocation{Path: "cup/list", Text: map[string]string{"colour": "red"}}, "There are none; look closer, or polish one: `/cup polish`", "Colour:red"},
		{platform.Invocation{Path: "cup/list", Text: map[string]string{"colour": "green"}}, "- jug · 9\nThere is more", "Colour:green"},
		{platform.Invocation{Path: "cup/list", Text: map[string]string{"colour": "blue"}}, `colour: there is no "blue"; there are red, green`, ""},
		{platform.Invocation{ID: "i1", Path: "cup/fill", Text: map[string]string{"name": "mug", "tea": "black", "cup_size": "9"}, Flag: map[string]bool{"hot": true}}, "mug holds 9",
			"{Hot:true CupSize:9 Name:mug Room:roomhall Tea:black Key:i1}"},
		{platform.Invocation{Path: "cup/fill", Text: map[string]string{"name": "mug", "tea": "black", "cup_size": "many"}}, "cup_size: it must be a whole number, not \"many\"", ""},
		{platform.Invocation{Path: "tea", Text: map[string]string{"name": "mug"}}, "mug holds 0", "Room:hall Tea:green"},
	} {
		h.asked = nil
		c.i.By, c.i.In, c.i.Allowed = room.Author{ID: "7"}, room.Channel{ID: "hall"}, writer
		answer, ok := s.Invoke(t.Context(), c.i)
		if !ok || answer.Text != c.says || c.asked != "" && !strings.Contains(strings.Join(h.asked, ""), c.asked) || c.asked == "" && h.asked != nil {
			t.Errorf("%s: %+v, asked %q", c.i.Path, answer, h.asked)
		}
	}
	if answer, ok := s.Invoke(t.Context(), platform.Invocation{Path: "pour", Text: map[string]string{"name": "mug"}, By: room.Author{ID: "7"}}); !ok || answer.File.Name != "mug.txt" || answer.File.Text != "tea" {
		t.Errorf("%+v", answer)
	}
	if _, ok := s.Invoke(t.Context(), platform.Invocation{Path: "nothing"}); ok {
		t.Error("a command that is none of these was carried out")
	}
	choices, ok := s.Complete(t.Context(), platform.Invocation{Path: "smash", Text: map[string]string{"name": "M"}, By: room.Author{ID: "7"}}, "name")
	if !ok || len(choices) != 1 || choices[0].Value != "mug" {
		t.Errorf("%+v", choices)
	}
}

// What destroys something waits for a second yes of the same person, and is done once.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	h := &cupboard{}
	s := newSet(t, h)
	answer, ok := s.Invoke(t.Context(), platform.Invocation{ID: "i7", Path: "smash", Text: map[string]string{"name": "mug"}, By: room.Author{ID: "7"}, Allowed: writer})
	if !ok || len(answer.Buttons) != 2 || answer.Buttons[0].Label != "Smash" || answer.Buttons[1].Label != "Keep" || h.asked != nil {
		t.Fatalf("%+v, asked %v", answer, h.asked)
	}
	press := platform.Press{Value: answer.Buttons[0].Value, By: room.Author{ID: "8"}, Allowed: writer}
	if a, ok := s.Press(t.Context(), press); !ok || h.asked != nil || a.Replace {
		t.Errorf("somebody else confirmed: %+v", a)
	}
	press.By.ID = "7"
	if a, ok := s.Press(t.Context(), press); !ok || a.Text != "mug is gone" || !a.Replace || len(h.asked) != 1 {
		t.Errorf("%+v, asked %v", a, h.asked)
	}
	if a, ok := s.Press(t.Context(), press); !ok || !strings.Contains(a.Text, "already answered") || a.Replace || len(h.asked) != 1 {
		t.Errorf("it was done twice: %+v", a)
	}
	if _, ok := s.Press(t.Context(), platform.Press{Value: platform.ButtonValue(platform.PressStop, "x")}); ok {
		t.Error("a button that is none of these was taken")
	}
}

// Whoever asked has ended since: the next process understands the yes of the same person, once, and while it is fresh. What was only
// shown to them, and is not in the button, must be seen again.
func TestConfirmationOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	asks := func(path string) platform.Answer {
		t.Helper()
		a, ok := newSet(t, &cupboard{stain: "tea"}).Invoke(t.Context(), platform.Invocation{ID: "i7", Path: path, Text: map[string]string{"name": "mug"}, By: room.Author{ID: "7"}, Allowed: writer})
		if !ok || len(a.Buttons) != 2 {
			t.Fatalf("%+v", a)
		}
		return a
	}
	asked := asks("smash")
	for name, c := range map[string]struct {
		button string
		by     string
		old    time.Duration
		says   string
		done   int
	}{
		"yes":            {asked.Buttons[0].Value, "7", time.Minute, "mug is gone", 1},
		"no":             {asked.Buttons[1].Value, "7", time.Minute, "Nothing was changed.", 0},
		"somebody else":  {asked.Buttons[0].Value, "8", time.Minute, "too long ago", 0},
		"an hour later":  {asked.Buttons[0].Value, "7", time.Hour, "too long ago", 0},
		"another button": {platform.ButtonValue("confirm", "i7:7:melt?name=mug"), "7", time.Minute, "too long ago", 0},
		"shown first":    {asks("cup/polish").Buttons[0].Value, "7", time.Minute, "too long ago", 0},
	} {
		h := &cupboard{}
		s := newSet(t, h)
		press := platform.Press{Value: c.button, By: room.Author{ID: c.by}, Allowed: writer, MessageAt: time.Now().Add(-c.old)}
		if a, ok := s.Press(t.Context(), press); !ok || !strings.Contains(a.Text, c.says) || len(h.asked) != c.done {
			t.Errorf("%s: %+v, asked %v", name, a, h.asked)
		}
		if a, _ := s.Press(t.Context(), press); c.done > 0 && (!strings.Contains(a.Text, "already answered") || a.Replace) || len(h.asked) != c.done {
			t.Errorf("%s, twice: %+v, asked %v", name, a, h.asked)
		}
	}
	if a, _ := newSet(t, &cupboard{}).Press(t.Context(), platform.Press{Value: asked.Buttons[0].Value, By: room.Author{ID: "7"}, MessageAt: time.Now()}); !strings.Contains(a.Text, "may not write here") {
		t.Errorf("somebody who lost their right in between is told %+v", a)
	}
}

// The commands of the real catalogue are ones that platforms take.
func TestTheCatalogueFits(t *testing.T) {
	t.Parallel()
	if _, err := slash.New(slash.Options{Operations: operations.All()}); err != nil {
		t.Error(err)
	}
}

// What must be seen first is shown, and the yes holds for what was shown, also where it is written.
func TestShownFirst(t *testing.T) {
	t.Parallel()
	h := &cupboard{stain: "tea"}
	s := newSet(t, h)
	i := platform.Invocation{ID: "i1", Path: "cup/polish", Text: map[string]string{"name": "mug"}, By: room.Author{ID: "7"}, Allowed: writer}
	answer, _ := s.Invoke(t.Context(), i)
	if answer.Text != "**mug**\n```\ntea\n```\n- scratch  1\n- dent  2" || len(answer.Buttons) != 2 || answer.Buttons[0].Label != "Yes" || h.asked != nil {
		t.Fatalf("%+v, asked %v", answer, h.asked)
	}
	h.stain = "ink"
	if a, _ := s.Press(t.Context(), platform.Press{Value: answer.Buttons[0].Value, By: room.Author{ID: "7"}, Allowed: writer}); a.Text != "mug shines" || h.asked[0] != "{Name:mug Stain:tea}" {
		t.Errorf("%+v, asked %v", a, h.asked)
	}
	h.asked = nil
	line := func(words string) string {
		t.Helper()
		a, ok := s.Line(t.Context(), platform.Invocation{By: room.Author{ID: "7"}, Allowed: writer}, words)
		if !ok {
			t.Fatalf("%s is no command", words)
		}
		return a.Text
	}
	if got := line("/cup polish mug --yes"); !strings.Contains(got, "with --yes at the end") || h.asked != nil {
		t.Errorf("a yes to nothing: %q, asked %v", got, h.asked)
	}
	h.stain = "wine"
	if got := line("/cup polish mug --yes"); got != "mug shines" || h.asked[0] != "{Name:mug Stain:ink}" {
		t.Errorf("%q, asked %v", got, h.asked)
	}
	if got := line("/cup spill mug"); !strings.HasPrefix(got, "there is no /cup spill; choose one of\n/cup list [COLOUR]") || !strings.Contains(got, "/cup polish NAME  Polish a cup") {
		t.Errorf("%q", got)
	}
	if _, ok := s.Line(t.Context(), platform.Invocation{}, "/bowl"); ok {
		t.Error("a word that is none of these was taken")
	}
}

// A command that speaks gives words to be said, once what they need is there.
func TestSpeaks(t *testing.T) {
	t.Parallel()
	s := newSet(t, &cupboard{})
	i := platform.Invocation{Path: "cup/order", Text: map[string]string{"name": "mug"}, By: room.Author{ID: "7"}, Allowed: writer}
	if a, _ := s.Invoke(t.Context(), i); a.Say != "/mug please" {
		t.Errorf("%+v", a)
	}
	i.Text["name"] = "none"
	if a, _ := s.Invoke(t.Context(), i); a.Say != "" || a.Text != "there is no cup none" {
		t.Errorf("%+v", a)
	}
}

// Who may not use a command is told who may, and nothing happens.
func TestWhoMayNot(t *testing.T) {
	t.Parallel()
	h := &cupboard{}
	s := newSet(t, h)
	give := func(path string, allowed platform.Allowed) string {
		a, _ := s.Invoke(t.Context(), platform.Invocation{Path: path, Text: map[string]string{"name": "mug", "tea": "green"}, By: room.Author{ID: "7"}, Allowed: allowed})
		return a.Text
	}
	if got := give("cup/melt", writer); got != "only the barkeeper can cup.melt" {
		t.Errorf("%q", got)
	}
	if got := give("cup/fill", platform.Allowed{}); !strings.Contains(got, "You may not write here") {
		t.Errorf("%q", got)
	}
	if got := give("cup/list", platform.Allowed{}); !strings.Contains(got, "mug") {
		t.Errorf("reading needs no right to write: %q", got)
	}
	if len(h.asked) != 1 {
		t.Errorf("asked %v", h.asked)
	}
}

// Long answers end with where the rest is, and a block that was cut is closed.
func TestLongAnswersAreCapped(t *testing.T) {
	t.Parallel()
	s := newSet(t, &cupboard{stain: strings.Repeat("tea and ink\n", 100)})
	a, _ := s.Invoke(t.Context(), platform.Invocation{Path: "cup/look", Text: map[string]string{"name": "mug"}, By: room.Author{ID: "7"}})
	if len(a.Text) > 450 || strings.Count(a.Text, "```") != 2 || !strings.HasSuffix(a.Text, "This is not complete; the rest: the page /cups in the browser") {
		t.Errorf("%d %q", len(a.Text), a.Text)
	}
}

// What somebody chooses from is shown with what it is, and found by that, too.
func TestChoicesHaveLabels(t *testing.T) {
	t.Parallel()
	s := newSet(t, &cupboard{})
	got, _ := s.Complete(t.Context(), platform.Invocation{Path: "smash", Text: map[string]string{"name": "5 large"}, By: room.Author{ID: "7"}}, "name")
	if len(got) != 1 || got[0] != (platform.Choice{Label: "bowl, 5 large", Value: "bowl"}) {
		t.Errorf("%+v", got)
	}
	got, _ = s.Complete(t.Context(), platform.Invocation{Path: "cup/fill", Text: map[string]string{"room": "h"}, By: room.Author{ID: "7"}}, "room")
	if len(got) != 2 || got[0].Value != "h1 of 7" {
		t.Errorf("%+v", got)
	}
}
