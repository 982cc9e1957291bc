package operation

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// PageByKey returns a page of a list: up to limit items whose keys come after the cursor, in the order of their keys. It
// works even if the item at the cursor is gone.
func PageByKey[T any](list []T, key func(T) string, cursor string, limit int) List[T] {
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	at := slices.IndexFunc(list, func(item T) bool { return cursor == "" || key(item) > cursor })
	if at < 0 {
		at = len(list)
	}
	return firstOf(list[at:], key, limit)
}

// PageBehind returns a page of a list that is not sorted by key: up to limit items after the one that the cursor names.
// It fails if that item is gone.
func PageBehind[T any](list []T, key func(T) string, cursor string, limit int) (List[T], error) {
	at := -1
	if cursor != "" {
		if at = slices.IndexFunc(list, func(item T) bool { return key(item) == cursor }); at < 0 {
			return List[T]{Items: []T{}}, ChangedList()
		}
	}
	return firstOf(list[at+1:], key, limit), nil
}

func firstOf[T any](list []T, key func(T) string, limit int) List[T] {
	out := List[T]{Items: append([]T{}, list[:min(len(list), limit)]...)}
	if len(list) > limit {
		out.Next = key(list[limit-1])
	}
	return out
}

// Limit is the size of a page: the requested one, within bounds.
func Limit(asked, otherwise, most int) int {
	if asked <= 0 {
		return otherwise
	}
	return min(asked, most)
}

// BadCursor is the error for a cursor that no page returned.
func BadCursor() error {
	return InvalidField("cursor", "cursor: it is not from this list; leave it out to start")
}

// ChangedList is the error for a cursor whose item is gone, in a list that cannot continue without it.
func ChangedList() error {
	return InvalidField("cursor", "cursor: the list has changed; start again without a cursor")
}

// Pages runs a list operation page by page. The limit of the input is the total number of items; 0: all. An output
// without pages is passed on as one.
func (d *Definition) Pages(ctx context.Context, to Executor, by Caller, in any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		cursor, paged := d.Field("cursor")
		limit, limited := d.Field("limit")
		if !paged || !limited || limit.Max == nil {
			yield(to.Execute(ctx, by, d, in))
			return
		}
		ask := reflect.New(d.In).Elem()
		ask.Set(reflect.ValueOf(in))
		left := ask.FieldByIndex(limit.Index).Int()
		for all := left == 0; ; {
			page := int64(*limit.Max)
			if !all {
				page = min(page, left)
			}
			ask.FieldByIndex(limit.Index).SetInt(page)
			out, err := to.Execute(ctx, by, d, ask.Interface())
			if !yield(out, err) || err != nil {
				return
			}
			next, _ := Value(out, "next")
			n := int64(len(Items(out)))
			if left -= n; !next.IsValid() || next.String() == "" || n == 0 || !all && left <= 0 {
				return
			}
			ask.FieldByIndex(cursor.Index).SetString(next.String())
		}
	}
}

// Whole runs a list operation as often as needed to get everything, or as much as the limit of the input says.
func (d *Definition) Whole(ctx context.Context, to Executor, by Caller, in any) (any, error) {
	var all reflect.Value
	for out, err := range d.Pages(ctx, to, by, in) {
		if err != nil {
			return nil, err
		}
		got := reflect.New(d.Out).Elem()
		got.Set(reflect.ValueOf(out))
		if all.IsValid() {
			list := got.FieldByName("Items")
			list.Set(reflect.AppendSlice(all.FieldByName("Items"), list))
		}
		all = got
	}
	return all.Interface(), nil
}

// CallWhole runs a list operation as often as needed to get everything.
func CallWhole[In, T any](ctx context.Context, o Operation[In, List[T]], to Executor, by Caller, in In) ([]T, error) {
	out, err := o.Whole(ctx, to, by, in)
	typed, _ := out.(List[T])
	return typed.Items, err
}
