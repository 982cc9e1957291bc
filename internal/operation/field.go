package operation

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Where a field may appear. A struct tag with that name renames the field there, or hides it with "-".
const (
	OverHTTP  = "http"
	InCLI     = "cli"
	InSlash   = "slash"
	AsTool    = "tool"
	everytime = ""
)

// Field is one value of an operation's input, with what its struct tags say:
//
//	json      name; omitempty or omitzero: it may be left out
//	doc       a phrase of help
//	enum      allowed values, separated by commas
//	min, max, minLen, maxLen, minItems, maxItems, pattern
//	          limits; of a value that is left out they do not hold
//	default   what is meant where it is left out, as text
//	noun      it names something of this kind: it is completed, and checked where it is required
//	context   where it is left out, people's surroundings fill it in ("agent": the one of this channel)
//	key       "true": the idempotency key, which travels beside the input
//	resume    "true": the number after which a stream goes on
//	slashDoc  a shorter phrase of help for chat commands
//	http, cli, slash, tool
//	          its name there; "-": it is not there. cli may add a one-letter flag: "model,m"
type Field struct {
	Index    []int  // for reflect.Value.FieldByIndex
	Name     string // in JSON
	Doc      string
	Type     reflect.Type
	Required bool
	Enum     []string
	Min, Max *float64
	MinLen   *int // of text: characters; of lists: items
	MaxLen   *int
	Pattern  string
	Default  string
	Noun     string
	Context  string
	Resume   bool
	File     bool
	Tag      reflect.StructTag
	matches  *regexp.Regexp
}

// In returns the field's name in a place (OverHTTP, InCLI, InSlash, AsTool) and the rest of its tag; false: the field does not appear there.
func (f Field) In(place string) (name, more string, ok bool) {
	name, more, _ = strings.Cut(f.Tag.Get(place), ",")
	switch name {
	case "-":
		return "", "", false
	case "":
		name = f.Name
	}
	return name, more, true
}

// Is reports whether a word names the field in a place, ignoring case.
func (f Field) Is(place, word string) bool {
	name, _, ok := f.In(place)
	return ok && strings.EqualFold(name, word) || strings.EqualFold(f.Name, word)
}

type fieldSet struct {
	list []Field
	key  []int
}

// Fields returns the input's fields in the order of the struct, including those of embedded structs. A definition with
// mistakes has none; see Check.
func (d *Definition) Fields() []Field {
	set, _ := d.fields()
	return set.list
}

// Field finds a field by its JSON name.
func (d *Definition) Field(name string) (Field, bool) {
	list := d.Fields()
	at := slices.IndexFunc(list, func(f Field) bool { return f.Name == name })
	if at < 0 {
		return Field{}, false
	}
	return list[at], true
}

// KeyIndex is the index of the idempotency key in the input; nil: it has none.
func (d *Definition) KeyIndex() []int {
	set, _ := d.fields()
	return set.key
}

// SetKey sets the idempotency key of an input, if it takes one. in must be settable.
func (d *Definition) SetKey(in reflect.Value, key string) {
	if index := d.KeyIndex(); index != nil && key != "" {
		in.FieldByIndex(index).SetString(key)
	}
}

func readFields(t reflect.Type) (set fieldSet, err error) {
	if t.Kind() != reflect.Struct {
		return set, fmt.Errorf("the input %s is not a struct", t)
	}
	for _, sf := range reflect.VisibleFields(t) {
		if sf.Anonymous || !sf.IsExported() {
			continue
		}
		if sf.Tag.Get("key") == "true" {
			set.key = sf.Index
			continue
		}
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		file := sf.Type == fileType
		if name == "-" && !file {
			continue
		}
		if file {
			name = "file"
		}
		if name == "" {
			return set, fmt.Errorf("field %s has no json name", sf.Name)
		}
		f := Field{Index: sf.Index, Name: name, Type: sf.Type, File: file, Tag: sf.Tag, Doc: sf.Tag.Get("doc"), Pattern: sf.Tag.Get("pattern"),
			Default: sf.Tag.Get("default"), Noun: sf.Tag.Get("noun"), Context: sf.Tag.Get("context"), Resume: sf.Tag.Get("resume") == "true",
			Required: !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")}
		if err := f.readLimits(); err != nil {
			return set, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		set.list = append(set.list, f)
	}
	return set, nil
}

func (f *Field) readLimits() error {
	if values := f.Tag.Get("enum"); values != "" {
		f.Enum = strings.Split(values, ",")
	}
	for name, into := range map[string]**float64{"min": &f.Min, "max": &f.Max} {
		text := f.Tag.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("tag %s: %w", name, err)
		}
		*into = &n
	}
	for name, into := range map[string]**int{"minLen": &f.MinLen, "minItems": &f.MinLen, "maxLen": &f.MaxLen, "maxItems": &f.MaxLen} {
		text := f.Tag.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("tag %s: %w", name, err)
		}
		*into = &n
	}
	if f.Default != "" {
		if err := f.SetText(reflect.New(f.Type).Elem(), f.Default, time.Now()); err != nil {
			return fmt.Errorf("tag default: %w", err)
		}
	}
	var err error
	if f.Pattern != "" {
		f.matches, err = regexp.Compile(f.Pattern)
	}
	return err
}

// check says what is wrong with a value. A zero value of an optional field counts as left out, because the two cannot be told apart.
func (f *Field) check(v reflect.Value) error {
	if v.IsZero() && (f.Type.Kind() == reflect.Pointer || !f.Required || f.Noun != "" || f.File) {
		if f.Required && (f.Noun != "" || f.File) {
			return InvalidField(f.Name, "%s: it is required", f.Name)
		}
		return nil
	}
	return f.CheckGiven(v)
}

// CheckGiven says what is wrong with a value that was certainly given, even if it is zero.
func (f *Field) CheckGiven(v reflect.Value) error {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return f.checkText(v.String())
	case reflect.Int, reflect.Int64:
		return f.checkNumber(float64(v.Int()))
	case reflect.Float64:
		return f.checkNumber(v.Float())
	case reflect.Slice, reflect.Map:
		return f.checkLength(v.Len(), "entries")
	}
	return nil
}

func (f *Field) checkText(text string) error {
	switch {
	case len(f.Enum) > 0 && !slices.Contains(f.Enum, text):
		return InvalidField(f.Name, "%s: there is no %.40q; there are %s", f.Name, text, strings.Join(f.Enum, ", "))
	case f.matches != nil && !f.matches.MatchString(text):
		return InvalidField(f.Name, "%s: %.40q must match %s", f.Name, text, f.Pattern)
	case !utf8.ValidString(text):
		return InvalidField(f.Name, "%s: it is not UTF-8 text", f.Name)
	}
	return f.checkLength(utf8.RuneCountInString(text), "characters")
}

func (f *Field) checkLength(n int, unit string) error {
	switch {
	case f.MinLen != nil && n < *f.MinLen && n == 0:
		return InvalidField(f.Name, "%s: it must not be empty", f.Name)
	case f.MinLen != nil && n < *f.MinLen:
		return InvalidField(f.Name, "%s: it must have at least %d %s", f.Name, *f.MinLen, unit)
	case f.MaxLen != nil && n > *f.MaxLen:
		return InvalidField(f.Name, "%s: it has %d %s; the limit is %d", f.Name, n, unit, *f.MaxLen)
	}
	return nil
}

func (f *Field) checkNumber(n float64) error {
	switch {
	case f.Min != nil && n < *f.Min:
		return InvalidField(f.Name, "%s: it must be at least %v", f.Name, *f.Min)
	case f.Max != nil && n > *f.Max:
		return InvalidField(f.Name, "%s: it must be at most %v", f.Name, *f.Max)
	}
	return nil
}

// Validate says what is wrong with an input of the definition's type.
func (d *Definition) Validate(in any) error {
	set, err := d.fields()
	if err != nil {
		return err
	}
	v := reflect.ValueOf(in)
	if !v.IsValid() || v.Type() != d.In {
		return Errorf(Failed, "operation %s takes %s, not %T", d.Name, d.In, in)
	}
	for i := range set.list {
		f := &set.list[i]
		if err := f.check(v.FieldByIndex(f.Index)); err != nil {
			return err
		}
	}
	return nil
}
