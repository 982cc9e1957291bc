package config

import (
	"fmt"
	"reflect"
	"strings"
)

// decode sets every tagged field to the merged value, or else the built-in default.
func (b *Bot) decode(r *report, env func(string) string) {
	v := reflect.ValueOf(b).Elem()
	for i := range v.NumField() {
		path, ok := v.Type().Field(i).Tag.Lookup("key")
		if !ok {
			continue
		}
		if err := b.set(v.Field(i), path, env); err != nil {
			r.fail(b.Origin(path), path, "%s: %s", path, joinLines(err))
		}
	}
}

func (b *Bot) set(into reflect.Value, path string, env func(string) string) error {
	if into.Kind() == reflect.Pointer { // nil unless somebody set it
		if b.IsSet(path) {
			into.Set(reflect.New(into.Type().Elem()))
			return b.set(into.Elem(), path, env)
		}
		return nil
	}
	l := b.merged.get(path)
	if l == nil {
		return setDefault(into, table().keys[path])
	}
	switch into.Kind() {
	case reflect.String:
		text := l.value.text
		if l.key.Secret {
			var err error
			if text, err = resolve(l.value, env); err != nil {
				return err
			}
		}
		into.SetString(text)
	case reflect.Int:
		into.SetInt(int64(l.value.number))
	case reflect.Float64:
		into.SetFloat(l.value.number)
	case reflect.Bool:
		into.SetBool(l.value.truth)
	case reflect.Slice:
		into.Set(reflect.ValueOf(b.list(path)))
	default:
		return fmt.Errorf("there is no way to read a %s", into.Type())
	}
	return nil
}

func setDefault(into reflect.Value, k *Key) error {
	if k == nil || k.Default == nil {
		return nil
	}
	from := reflect.ValueOf(k.Default)
	if !from.CanConvert(into.Type()) {
		return fmt.Errorf("the default %v does not fit", k.Default)
	}
	into.Set(from.Convert(into.Type()))
	return nil
}

func (b *Bot) text(path string) string {
	if l := b.merged.get(path); l != nil {
		return l.value.text
	}
	return ""
}

func (b *Bot) list(path string) []string {
	l := b.merged.get(path)
	if l == nil {
		return nil
	}
	out := make([]string, 0, len(l.value.items))
	for _, item := range l.value.items {
		out = append(out, item.text)
	}
	return out
}

func (b *Bot) secret(path string, env func(string) string) (string, error) {
	l := b.merged.get(path)
	if l == nil {
		return "", nil
	}
	return resolve(l.value, env)
}

// values resolves the entries of a map of secrets.
func (b *Bot) values(path string, into Values, env func(string) string) error {
	for _, l := range b.merged.under(path) {
		value, err := resolve(l.value, env)
		if err != nil {
			return fmt.Errorf("%s: %w", shownPath(l.path), err)
		}
		into[unescape(strings.TrimPrefix(l.path, path+"."))] = value
	}
	return nil
}
