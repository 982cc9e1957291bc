package store

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store/pgtest"
)

// Every method of a store, with arguments that are filled in and with ones that are not: whatever the answer is, PostgreSQL
// understands what is said to it. Methods that are new are tried without anybody thinking of it.
func TestPostgresUnderstandsEverything(t *testing.T) {
	t.Parallel()
	db := openURL(t, Options{URL: pgtest.Database(t)})
	say(t, db, "words")
	row, err := db.Take(t.Context(), "cli:home:one@main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Commit(t.Context(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Events: []chat.Event{
		{Body: chat.RunStarted{Run: "x"}}, {Body: chat.RunEnded{Run: "x"}}}}); err != nil {
		t.Fatal(err)
	}
	known := reflect.ValueOf(db)
	for i := range known.NumMethod() {
		name := known.Type().Method(i).Name
		switch name {
		case "Close", "CloseIndex", "Write", "TryWrite", "TryTogether", "HoldCommits", "Overwriting", "WriteWithin", "WriteAll", "ReadAsOfNow", "Query", "QueryWithin", "Count", "Any":
			continue
		case "WithoutTx", "Queued", "CopyFile": // SQLite's alone
			continue
		case "WriteBlob", "RemoveBlob", "BlobPath", "WriteBlobFile", "BytesAt": // of a transaction, or of a file
			continue
		}
		for _, filled := range []bool{true, false} {
			method := known.Method(i)
			var args []reflect.Value
			for j := range method.Type().NumIn() {
				if method.Type().IsVariadic() && j == method.Type().NumIn()-1 && !filled {
					break
				}
				at := method.Type().In(j)
				if method.Type().IsVariadic() && j == method.Type().NumIn()-1 {
					at = at.Elem()
				}
				args = append(args, argument(t.Context(), at, filled, 0))
			}
			for _, result := range method.Call(args) {
				if err, ok := result.Interface().(error); ok && misunderstood(err) {
					t.Errorf("%s, filled %v: %v", name, filled, err)
				}
				if seq, ok := result.Interface().(func(func(chat.Event, error) bool)); ok {
					seq(func(_ chat.Event, err error) bool {
						if misunderstood(err) {
							t.Errorf("%s: %v", name, err)
						}
						return err == nil
					})
				}
			}
		}
	}
}

// misunderstood reports whether a statement was wrong, or an argument of another kind than its column.
func misunderstood(err error) bool {
	var code string
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		code = e.Code
	}
	return err != nil && (strings.HasPrefix(code, "42") || strings.HasPrefix(code, "22") || strings.HasPrefix(code, "0A") ||
		strings.Contains(err.Error(), "encode") || strings.Contains(err.Error(), "Scan error"))
}

// argument makes a value of a type: something in every field, or nothing.
func argument(ctx context.Context, of reflect.Type, filled bool, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	switch {
	case of == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(ctx)
	case of == reflect.TypeFor[json.RawMessage]():
		return reflect.ValueOf(json.RawMessage(`{}`))
	case !filled || depth > 4:
		return v
	case of == reflect.TypeFor[time.Time]():
		return reflect.ValueOf(time.Now())
	case of == reflect.TypeFor[chat.ThreadID]():
		return reflect.ValueOf(chat.ThreadID("cli:home:one@main"))
	}
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.Append(v, argument(ctx, of.Elem(), filled, depth+1)))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(argument(ctx, of.Elem(), filled, depth+1))
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(argument(ctx, of.Field(i).Type, filled, depth+1))
			}
		}
	}
	return v
}
