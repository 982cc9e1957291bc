package operation

import (
	"context"
	"reflect"
	"slices"
	"strings"
)

// Prefix is the part of a name typed so far.
type Prefix struct {
	Noun   string `json:"noun" minLen:"1" maxLen:"64" doc:"the kind of name: agent, session, model …"`
	Prefix string `json:"prefix,omitempty" maxLen:"200" doc:"the start of the name"`
}

// Names suggests names for completion. Local runs it itself, with its nouns.
var Names = New(Info{
	Name: "name.suggest", Help: "Suggest names with a prefix", Scope: Read, Errors: []Kind{NotFound},
	HTTP: []HTTP{{Route: "GET /api/names/{noun}", ID: "suggestNames", Tag: "system"}},
}, namer.names)

type namer interface {
	names(ctx context.Context, by Caller, in Prefix) (List[string], error)
}

// suggester is a Local as the handler of Names.
type suggester Local

var _ namer = (*suggester)(nil)

// maxSuggested limits suggestions: more than anybody reads and than any platform shows.
const maxSuggested = 50

// maxLooked limits the pages of a list that are searched for names, because somebody waits while typing.
const maxLooked = 20

func begins(name, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
}

func (s *suggester) names(ctx context.Context, by Caller, in Prefix) (out List[string], err error) {
	suggest := s.o.Nouns[in.Noun].Suggest
	if suggest == nil {
		if suggest = s.listed(in.Noun); suggest == nil {
			return out, Errorf(NotFound, "no names are suggested for %.40q", in.Noun)
		}
	}
	names, err := suggest(ctx, by, in.Prefix)
	for _, name := range names {
		if begins(name, in.Prefix) && len(out.Items) < maxSuggested {
			out.Items = append(out.Items, name)
		}
	}
	return out, err
}

// listed suggests items of the operation "noun.list"; nil: there is no such operation.
func (s *suggester) listed(noun string) func(context.Context, Caller, string) ([]string, error) {
	d, ok := s.o.Operations.Named(noun + ".list")
	if !ok {
		return nil
	}
	return func(ctx context.Context, by Caller, prefix string) (names []string, err error) {
		looked := 0
		for out, err := range d.Pages(ctx, (*Local)(s), by, reflect.Zero(d.In).Interface()) {
			if err != nil {
				return nil, err
			}
			for _, item := range Items(out) {
				if name := NameOf(item); begins(name, prefix) {
					names = append(names, name)
				}
			}
			if looked++; len(names) >= maxSuggested || looked == maxLooked {
				break
			}
		}
		return names, nil
	}
}

// NameOf returns how inputs name an item of a list: by its id, name or path.
func NameOf(item any) string {
	for _, field := range []string{"id", "name", "path"} {
		if v, ok := byJSONName(reflect.ValueOf(item), field); ok {
			return v.String()
		}
	}
	return ""
}

// IsList reports whether an output is a list, even an empty one.
func IsList(out any) bool {
	list, ok := byJSONName(reflect.ValueOf(out), "items")
	return ok && list.Kind() == reflect.Slice
}

// Value returns a field of an output by its JSON name; false: it has none.
func Value(out any, name string) (reflect.Value, bool) { return byJSONName(reflect.ValueOf(out), name) }

// Items returns the items of a list; nil: it is not a list.
func Items(out any) (items []any) {
	list, ok := byJSONName(reflect.ValueOf(out), "items")
	if !ok || list.Kind() != reflect.Slice {
		return nil
	}
	for i := range list.Len() {
		items = append(items, list.Index(i).Interface())
	}
	return items
}

// Complete expands a prefix to the full name. It fails if several names match. If none does, or none can be suggested,
// the text is unchanged and the operation reports the error.
func Complete(ctx context.Context, to Executor, by Caller, noun, text string) (string, error) {
	list, err := Names.Call(ctx, to, by, Prefix{Noun: noun, Prefix: text})
	switch {
	case KindOf(err) == NotFound && err != nil, err == nil && len(list.Items) == 0:
		return text, nil
	case err != nil:
		return text, err
	case slices.Contains(list.Items, text):
		return text, nil
	case len(list.Items) == 1 && strings.HasPrefix(list.Items[0], strings.ToLower(text)):
		return list.Items[0], nil
	case len(list.Items) == 1:
		return text, nil
	}
	some := strings.Join(list.Items[:min(len(list.Items), 5)], ", ")
	if len(list.Items) > 5 {
		some += ", …"
	}
	return text, InvalidField(noun, "%d %ss start with %s (%s); give more of the name", len(list.Items), noun, text, some)
}
