package modelrouter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/model"
)

type lister func(context.Context) ([]string, error)

func (l lister) Models(ctx context.Context) ([]string, error) { return l(ctx) }

func TestDiscover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := map[string]string{"openai_api_key": "test-key", "api_base": "http://x"}
		vendors := Merge([]Vendor{declare(t, "slow", key), declare(t, "down", key), declare(t, "odd", key), declare(t, "good", key), declare(t, "keyless", map[string]string{"openai_api_key": "${NOT_SET}"})},
			BuiltIn(env("ANTHROPIC_API_KEY", "test-key")))
		start := time.Now()
		var heard []string
		got := Discover(t.Context(), Discovery{
			Vendors: vendors,
			Before:  Available{Providers: map[string]Offered{"down": {Valid: true, Models: []string{"kept"}}, "anthropic": {Valid: true, Models: []string{"lost"}}}},
			Heard:   func(name string, _ Offered) { heard = append(heard, name) },
			Open: func(v Vendor) (Lister, error) {
				if v.Name == "odd" {
					return nil, errors.New("cannot be made")
				}
				return lister(func(ctx context.Context) ([]string, error) {
					switch v.Name {
					case "slow":
						<-ctx.Done()
						return nil, &model.Error{Kind: model.Network, Provider: "slow", Message: "too late"}
					case "down":
						return nil, &model.Error{Kind: model.Network, Provider: "down"}
					case "good":
						time.Sleep(9 * time.Second)
						return []string{"b", "a", "b", "", "a-2024-08-06", "c-20250929"}, nil
					default:
						return nil, &model.Error{Kind: model.Auth, Provider: v.Name, Status: 401}
					}
				}), nil
			},
		})
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
		slices.Sort(heard)
		if want := []string{"anthropic", "down", "good", "odd", "slow"}; !slices.Equal(heard, want) || len(got.Providers) != len(want) {
			t.Errorf("heard of %v; %v", heard, got)
		}
		for name, want := range map[string]Offered{
			"good": {Valid: true, Models: []string{"a", "b", "c-20250929"}}, "anthropic": {Models: []string{}}, "down": {Valid: true, Models: []string{"kept"}},
			"slow": {Models: []string{}}, "odd": {Models: []string{}},
		} {
			o := got.Providers[name]
			if (o.Error == "") != (name == "good") {
				t.Errorf("%s: %q", name, o.Error)
			}
			if o.Error = ""; !reflect.DeepEqual(o, want) {
				t.Errorf("%s: %+v, want %+v", name, o, want)
			}
		}
		if !got.LastUpdated.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("%v", got.LastUpdated)
		}
	})
}

// TestDiscoverEnds: many vendors that say nothing do not hold it longer than the total.
func TestDiscoverEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vendors []Vendor
		for _, name := range strings.Split("abcdefghij", "") {
			vendors = append(vendors, declare(t, name, map[string]string{"ollama_host": "http://x"}))
		}
		start := time.Now()
		got := Discover(t.Context(), Discovery{Vendors: vendors, Limits: Limits{AtOnce: 2}, Open: func(Vendor) (Lister, error) {
			return lister(func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }), nil
		}})
		if took := time.Since(start); took != 30*time.Second || len(got.Providers) != 10 {
			t.Errorf("%d in %s", len(got.Providers), took)
		}
	})
}

// Lists kept gpt-4o-2024-08-06 beside gpt-4o; it is left out there and still found.
func TestDatedTwins(t *testing.T) {
	t.Parallel()
	got := tidy([]string{"gpt-4o-2024-08-06", "gpt-4o", "gpt-4o-mini-2024-07-18", "claude-x@20250929", "claude-x", "claude-y-20250929", "phi-2024", "-2024-08-06"})
	if want := []string{"-2024-08-06", "claude-x", "claude-y-20250929", "gpt-4o", "gpt-4o-mini-2024-07-18", "phi-2024"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	v := declare(t, "own", map[string]string{"openai_api_key": "test-key", "api_base": "http://x"})
	list := Available{Providers: map[string]Offered{"own": {Valid: true, Models: []string{"fable"}}}}
	if c, err := Resolve("fable-2024-08-06", []Vendor{v}, list, nil); err != nil || c.Model != "fable-2024-08-06" || c.Vendor != "own" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Resolve("tale-2024-08-06", []Vendor{v}, list, nil); err == nil {
		t.Errorf("found %+v", c)
	}
}

func TestAvailableFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "available_models.json")
	if v, err := ReadAvailable(path); err != nil || len(v.Providers) != 0 {
		t.Fatalf("%v %v", v, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v := Available{LastUpdated: at, Providers: map[string]Offered{"anthropic": {Valid: true, Models: []string{"a"}}, "openai": {Models: []string{}, Error: "no"}}}
	if err := v.Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAvailable(path); err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%+v %v", got, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAvailable(path); err == nil || !strings.Contains(err.Error(), "chorus models --refresh") || len(got.Providers) != 0 {
		t.Errorf("corrupt: %+v %v", got, err)
	}
}

func TestAvailableForms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"last_updated":"2026-01-02T03:04:05Z","providers":{"anthropic":{"valid":true,"models":["a","b"]}}}`,
		`{"last_updated":"2026-01-02T03:04:05.000000","providers":{"anthropic":{"valid":true,"models":["a","b"]}}}`,
		`{"last_updated":"2026-01-02T03:04:05Z","anthropic":{"valid":true,"models":["a","b"]}}`,
		`{"anthropic":{"valid":true,"models":["a","b"],"something":1}}`,
		`{"last_updated":7,"anthropic":{"valid":true,"models":["a","b"]}}`,
	} {
		v, err := ParseAvailable([]byte(text))
		if err != nil || !reflect.DeepEqual(v.Providers, map[string]Offered{"anthropic": {Valid: true, Models: []string{"a", "b"}}}) {
			t.Errorf("%s: %+v %v", text, v, err)
		}
		if strings.Contains(text, `"2026`) && !v.LastUpdated.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Errorf("%s: %v", text, v.LastUpdated)
		}
	}
	for _, bad := range []string{"", "[]", `{"providers":[]}`, `{"anthropic":{"valid":"yes"}}`, `{"anthropic":{"models":[1]}}`} {
		if v, err := ParseAvailable([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", bad, v)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	key := map[string]string{"openai_api_key": "test-key"}
	v := Available{Providers: map[string]Offered{"a": {Valid: true}, "b": {}, "c": {Valid: true, Error: "1 of 2"}}}
	for name, want := range map[string]string{"a": "valid", "b": "no", "c": "valid, but", "d": "not checked"} {
		if got := v.State(declare(t, name, key)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := v.State(BuiltIn(none)[0]); got != "none" {
		t.Error(got)
	}
	if got := v.State(declare(t, "demo", nil)); got != "none needed" {
		t.Error(got)
	}
}

func FuzzAvailable(f *testing.F) {
	f.Add(`{"last_updated":"2026-01-02T03:04:05Z","providers":{"anthropic":{"valid":true,"models":["a"]}}}`)
	f.Add(`{"anthropic":{"valid":false,"models":null}}`)
	f.Add(`{"providers":null}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseAvailable([]byte(text))
		if err != nil {
			return
		}
		for name, o := range v.Providers {
			if o.Models == nil {
				t.Errorf("%q has no list", name)
			}
		}
	})
}
