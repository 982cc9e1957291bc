package sheet

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
)

// plain follows interfaces and pointers to what they hold.
func plain(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		if v.IsNil() {
			return reflect.Value{}
		}
		v = v.Elem()
	}
	return v
}

// fields goes down a path of field names and map keys. An entry that a map does not have
// is nothing; a field that a struct does not have is a mistake in the template.
func fields(n parse.Node, v reflect.Value, path []string) reflect.Value {
	for _, name := range path {
		v = plain(v)
		if !v.IsValid() {
			fail(n, "there is nothing that could have a %s", name)
		}
		switch v.Kind() {
		case reflect.Struct:
			field, ok := v.Type().FieldByName(name)
			if !ok || !field.IsExported() {
				fail(n, "a %s has no field %s", v.Type(), name)
			}
			found, err := v.FieldByIndexErr(field.Index)
			if err != nil {
				fail(n, "%w", err)
			}
			v = found
		case reflect.Map:
			v = v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
		default:
			fail(n, "a %s has no fields", v.Type())
		}
	}
	return v
}

// truth is what counts as yes: whatever is not empty, zero or nothing. A struct is
// something, whatever is in it.
func truth(v reflect.Value) bool {
	if v = plain(v); !v.IsValid() {
		return false
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return v.Len() > 0
	case reflect.Struct:
		return true
	default:
		return !v.IsZero()
	}
}

// call calls a function by its name. Of and, or: only as many operands as are needed.
func (f *filling) call(name *parse.IdentifierNode, args []parse.Node, dot reflect.Value, last []reflect.Value) reflect.Value {
	if name.Ident == "and" || name.Ident == "or" {
		var v reflect.Value
		for _, a := range args {
			if v = f.operand(a, dot); truth(v) == (name.Ident == "or") {
				return v
			}
		}
		return append(last, v)[0]
	}
	fn := reflect.ValueOf(f.set.funcs[name.Ident])
	in := make([]reflect.Value, 0, len(args)+1)
	for _, a := range args {
		in = append(in, f.operand(a, dot))
	}
	in = append(in, last...)
	t := fn.Type()
	if least := t.NumIn(); len(in) != least && (!t.IsVariadic() || len(in) < least-1) {
		fail(name, "takes %d arguments, not %d", least, len(in))
	}
	for i := range in {
		want := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= t.NumIn()-1 {
			want = want.Elem()
		}
		in[i] = fitted(name, in[i], want)
	}
	results := fn.Call(in)
	if len(results) == 2 && !results[1].IsNil() {
		fail(name, "%w", results[1].Interface().(error))
	}
	return results[0]
}

// fitted is a value as a parameter of a function.
func fitted(n parse.Node, v reflect.Value, want reflect.Type) reflect.Value {
	if !v.IsValid() {
		switch want.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func:
			return reflect.Zero(want)
		}
		fail(n, "there is nothing where a %s is needed", want)
	}
	if v.Type().AssignableTo(want) {
		return v
	}
	if v = plain(v); v.IsValid() {
		same := v.Kind() == want.Kind() || number(v.Kind()) && number(want.Kind())
		switch {
		case v.Type().AssignableTo(want):
			return v
		case same && v.CanConvert(want):
			return v.Convert(want)
		case v.Kind() == reflect.Slice && want.Kind() == reflect.String && v.CanConvert(want):
			return v.Convert(want)
		}
	}
	fail(n, "something else was given where a %s is needed", want)
	return v
}

func number(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }

// builtins are the functions of the language itself.
func builtins() FuncMap {
	return FuncMap{
		"and": false, "or": false, // done by call
		"not":    func(v any) bool { return !truth(reflect.ValueOf(v)) },
		"url":    safeURL,
		"len":    length,
		"index":  index,
		"printf": fmt.Sprintf,
		"print":  fmt.Sprint,
		"eq":     func(a, b any) (bool, error) { c, err := compare(a, b); return c == 0, err },
		"ne":     func(a, b any) (bool, error) { c, err := compare(a, b); return c != 0, err },
		"lt":     func(a, b any) (bool, error) { c, err := compare(a, b); return c < 0, err },
		"gt":     func(a, b any) (bool, error) { c, err := compare(a, b); return c > 0, err },
	}
}

func length(v any) (int, error) {
	r := plain(reflect.ValueOf(v))
	if !r.IsValid() {
		return 0, nil
	}
	switch r.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return r.Len(), nil
	}
	return 0, fmt.Errorf("a %s has no length", r.Type())
}

// index is an entry of a map, or of a list; nothing where there is none.
func index(of, at any) (any, error) {
	r, k := plain(reflect.ValueOf(of)), plain(reflect.ValueOf(at))
	if !r.IsValid() || !k.IsValid() {
		return nil, nil
	}
	switch r.Kind() {
	case reflect.Map:
		if !k.CanConvert(r.Type().Key()) {
			return nil, fmt.Errorf("a %s is no key of a %s", k.Type(), r.Type())
		}
		if v := r.MapIndex(k.Convert(r.Type().Key())); v.IsValid() {
			return v.Interface(), nil
		}
		return nil, nil
	case reflect.Slice, reflect.Array:
		if !k.CanInt() {
			return nil, fmt.Errorf("a %s is no place in a list", k.Type())
		}
		if i := k.Int(); i >= 0 && i < int64(r.Len()) {
			return r.Index(int(i)).Interface(), nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("a %s has no entries", r.Type())
}

// compare orders two values of one kind.
func compare(a, b any) (int, error) {
	x, y := plain(reflect.ValueOf(a)), plain(reflect.ValueOf(b))
	switch {
	case !x.IsValid() || !y.IsValid():
		if x.IsValid() == y.IsValid() {
			return 0, nil
		}
		return 1, nil
	case x.Kind() == reflect.String && y.Kind() == reflect.String:
		return cmp.Compare(x.String(), y.String()), nil
	case x.CanInt() && y.CanInt():
		return cmp.Compare(x.Int(), y.Int()), nil
	case x.CanFloat() && y.CanFloat():
		return cmp.Compare(x.Float(), y.Float()), nil
	case x.Kind() == reflect.Bool && y.Kind() == reflect.Bool:
		if x.Bool() == y.Bool() {
			return 0, nil
		}
		return 1, nil
	}
	return 0, fmt.Errorf("a %s cannot be compared with a %s", x.Type(), y.Type())
}

// sorted puts keys into an order that is the same every time.
func sorted(keys []reflect.Value) []reflect.Value {
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if c, err := compare(a.Interface(), b.Interface()); err == nil {
			return c
		}
		return cmp.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
	})
	return keys
}
