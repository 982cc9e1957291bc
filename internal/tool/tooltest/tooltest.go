// Package tooltest checks every tool against the rules of package tool. Call Run
// first, with a few example calls, when you write a new tool.
package tooltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/chat"
	"chorus/internal/pattern"
	"chorus/internal/tool"
)

// Fixture is what the suite needs of the tools under test.
type Fixture struct {
	// New creates the tools anew, and names the directories they may touch.
	New func(t *testing.T) (set *tool.Set, dirs []string)
	// Calls are example arguments by tool. Every tool needs at least one.
	// A call may fail as long as it is answered.
	Calls map[string][]string
}

// hostile are arguments that no tool should choke on.
var hostile = []string{
	``, `null`, `{}`, `[]`, `"x"`, `3`, `{"`, `{"path":null}`, `{"path":3}`, `{"path":["a"]}`, `{"path":"\u0000"}`, `{"path":""}`,
	`{"path":"../../../etc/passwd"}`, `{"command":""}`, `{"command":{}}`, `{"patch":"*** Begin Patch"}`, `{"query":"("}`, `{"x":1e999}`,
	"{\"path\":\"\xff\xfe\"}", `{"path":"a","path":"b"}`, `{"action":"nothing"}`, strings.Repeat("[", 20000), `{"offset":-9223372036854775808,"path":"x"}`,
}

var named = pattern.Lazy(`^[a-z][a-z0-9]*(_+[a-z0-9]+)*$`)

// Run runs the suite.
func Run(t *testing.T, fix Fixture) {
	t.Helper()
	set, _ := fix.New(t)
	again, _ := fix.New(t)
	if !reflect.DeepEqual(set.Specs(), again.Specs()) {
		t.Error("two sets made alike have different specs: the prompt's prefix would change")
	}
	for _, one := range set.Tools() {
		name := one.Spec().Name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(fix.Calls[name]) == 0 {
				t.Fatal("no example call was given")
			}
			t.Run("spec", func(t *testing.T) { t.Parallel(); spec(t, one) })
			t.Run("hostile", func(t *testing.T) { t.Parallel(); withHostile(t, fix, name) })
			t.Run("examples", func(t *testing.T) { t.Parallel(); examples(t, fix, name) })
			t.Run("cancelled", func(t *testing.T) { t.Parallel(); cancelled(t, fix, name) })
			t.Run("together", func(t *testing.T) { t.Parallel(); together(t, fix, name) })
		})
	}
}

func spec(t *testing.T, one tool.Tool) {
	s := one.Spec()
	if !named().MatchString(s.Name) {
		t.Errorf("name %q is not lower case with underscores", s.Name)
	}
	if strings.TrimSpace(s.Description) == "" || s.Description != strings.TrimSpace(s.Description) {
		t.Errorf("description %q", s.Description)
	}
	switch s.Risk {
	case tool.Low, tool.Medium, tool.High:
	default:
		t.Errorf("risk %q", s.Risk)
	}
	if s.ReadOnly && s.Risk != tool.Low {
		t.Errorf("it changes nothing, and its risk is %s", s.Risk)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(s.Schema, &schema); err != nil {
		t.Fatalf("schema: %v", err)
	}
	if schema.Type != "object" {
		t.Errorf("schema is of type %q, not object", schema.Type)
	}
	if _, err := schema.Resolve(nil); err != nil {
		t.Errorf("schema: %v", err)
	}
	for name, prop := range schema.Properties {
		if prop.Description == "" {
			t.Errorf("parameter %s has no description", name)
		}
	}
	for range 3 {
		if !reflect.DeepEqual(one.Spec(), s) {
			t.Error("the spec changes from call to call")
		}
	}
}

// get returns a tool of a fresh set.
func get(t *testing.T, fix Fixture, name string) (*tool.Set, tool.Tool, []string) {
	t.Helper()
	set, dirs := fix.New(t)
	for _, one := range set.Tools() {
		if one.Spec().Name == name {
			return set, one, dirs
		}
	}
	t.Fatalf("the set has no %s", name)
	return nil, nil, nil
}

// quiet calls everything that must not change anything.
func quiet(t *testing.T, one tool.Tool, args []byte) {
	t.Helper()
	before := string(args)
	first := one.Access(args)
	if second := one.Access(args); !reflect.DeepEqual(first, second) {
		t.Errorf("%.100q: access is %v, then %v", args, first, second)
	}
	for _, a := range first {
		if a.Tool == "" {
			t.Errorf("%.100q: an access without a tool", args)
		}
	}
	if l, ok := one.(tool.Labeler); ok {
		if first, second := l.Label(args), l.Label(args); first != second {
			t.Errorf("%.100q: the label is %q, then %q", args, first, second)
		}
	}
	if p, ok := one.(tool.Previewer); ok {
		if text := p.Preview(t.Context(), args); !utf8.ValidString(text) || len(text) > tool.MaxBytes {
			t.Errorf("%.100q: a preview of %d bytes, valid %v", args, len(text), utf8.ValidString(text))
		}
	}
	if string(args) != before {
		t.Errorf("%.100q: the arguments were changed", before)
	}
}

func withHostile(t *testing.T, fix Fixture, name string) {
	set, one, dirs := get(t, fix, name)
	before := snapshot(t, dirs)
	for _, args := range hostile {
		quiet(t, one, []byte(args))
	}
	if after := snapshot(t, dirs); !maps.Equal(before, after) {
		t.Error("access, label or preview changed something on disk")
	}
	for _, args := range hostile {
		check(t, one, []byte(args))
		if found, corrected, err := set.Resolve(name, []byte(args)); err == nil && set.Validate(found, corrected) == nil {
			check(t, found, corrected)
		}
	}
	if one.Spec().ReadOnly && !maps.Equal(before, snapshot(t, dirs)) {
		t.Error("a read-only tool changed something on disk")
	}
}

func examples(t *testing.T, fix Fixture, name string) {
	for _, args := range fix.Calls[name] {
		set, _, dirs := get(t, fix, name)
		before := snapshot(t, dirs)
		one, corrected, err := set.Resolve(name, []byte(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if err := set.Validate(one, corrected); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		quiet(t, one, corrected)
		if set.Label(name, corrected) == "" {
			t.Errorf("%s: no label", args)
		}
		if !maps.Equal(before, snapshot(t, dirs)) {
			t.Errorf("%s: access, label or preview changed something on disk", args)
		}
		check(t, one, corrected)
		if one.Spec().ReadOnly && !maps.Equal(before, snapshot(t, dirs)) {
			t.Errorf("%s: a read-only tool changed something on disk", args)
		}
	}
}

// check runs one call and checks the answer.
func check(t *testing.T, one tool.Tool, args []byte) {
	t.Helper()
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "call_tooltest"})
	res, err := one.Run(ctx, args)
	if err != nil {
		t.Errorf("%.100q: a mistake ended the run: %v", args, err)
		return
	}
	text := res.Blocks.Text()
	if !utf8.ValidString(text) || len(text) > tool.MaxBytes+1024 {
		t.Errorf("%.100q: %d bytes of text, valid %v", args, len(text), utf8.ValidString(text))
	}
	if len(res.Blocks) == 0 || res.Failed && strings.TrimSpace(text) == "" {
		t.Errorf("%.100q: an empty answer", args)
	}
	blobs := map[string]bool{}
	for _, blob := range res.Blobs {
		sum := sha256.Sum256(blob.Data)
		if hex.EncodeToString(sum[:]) != blob.Hash {
			t.Errorf("%.100q: blob %s has another hash", args, blob.Hash)
		}
		blobs[blob.Hash] = true
	}
	for _, block := range res.Blocks {
		switch b := block.(type) {
		case chat.Text:
		case chat.Image:
			if !blobs[b.Blob] {
				t.Errorf("%.100q: an image without its bytes", args)
			}
		default:
			t.Errorf("%.100q: a block of type %T", args, block)
		}
	}
}

// cancelled checks that a call whose context has ended returns promptly and does nothing.
func cancelled(t *testing.T, fix Fixture, name string) {
	for _, args := range fix.Calls[name] {
		_, one, dirs := get(t, fix, name)
		before := snapshot(t, dirs)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, err := one.Run(ctx, []byte(args))
			if err == nil && !res.Failed {
				t.Errorf("%s: it succeeded after all", args)
			}
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: it did not return", args)
		}
		if !maps.Equal(before, snapshot(t, dirs)) {
			t.Errorf("%s: it changed something", args)
		}
	}
}

// together checks that calls of one tool may run at the same time.
func together(t *testing.T, fix Fixture, name string) {
	_, one, _ := get(t, fix, name)
	var group sync.WaitGroup
	for _, args := range fix.Calls[name] {
		for i := range 3 {
			group.Go(func() {
				ctx := tool.WithCall(t.Context(), tool.Call{ID: fmt.Sprint("call_", i)})
				if _, err := one.Run(ctx, []byte(args)); err != nil {
					t.Errorf("%s: %v", args, err)
				}
				one.Access([]byte(args))
			})
		}
	}
	group.Wait()
}

// snapshot returns everything below the directories: names, modes, contents.
func snapshot(t *testing.T, dirs []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			out[name] = info.Mode().String()
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				out[name] += string(data)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return out
}
