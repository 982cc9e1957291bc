package modelrouter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"chorus/internal/model"
	"chorus/internal/pattern"
)

// Lister returns what a vendor offers, which also shows whether its key is accepted.
type Lister interface {
	Models(context.Context) ([]string, error)
}

// Limits limit a discovery.
type Limits struct {
	Total, Each time.Duration // 0: 30 and 10 seconds
	AtOnce      int           // vendors asked at the same time; 0: 8
}

// Discovery says how the vendors are asked.
type Discovery struct {
	Vendors []Vendor
	Open    func(Vendor) (Lister, error)
	Before  Available                            // what was known; kept for vendors that cannot be reached
	Heard   func(vendor string, offered Offered) // called for each vendor, one at a time; may be nil
	Limits
}

// Discover asks all configured vendors in parallel what they offer. It does not fail: a vendor that does not
// answer is marked so in its place. For a key that is not accepted, the list is empty and not valid.
func Discover(ctx context.Context, d Discovery) Available {
	total, each, atOnce := d.Total, d.Each, d.AtOnce
	if total <= 0 {
		total = 30 * time.Second
	}
	if each <= 0 {
		each = 10 * time.Second
	}
	if atOnce <= 0 {
		atOnce = 8
	}
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	out := Available{Providers: map[string]Offered{}}
	places := make(chan struct{}, atOnce)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, v := range d.Vendors {
		if v.Provider().Offline || !v.Configured() {
			continue
		}
		all.Go(func() {
			offered := d.ask(ctx, v, each, places)
			mu.Lock()
			defer mu.Unlock()
			out.Providers[v.Name] = offered
			if d.Heard != nil {
				d.Heard(v.Name, offered)
			}
		})
	}
	all.Wait()
	out.LastUpdated = time.Now().UTC().Truncate(time.Second)
	return out
}

func (d Discovery) ask(ctx context.Context, v Vendor, limit time.Duration, places chan struct{}) Offered {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return d.failed(v, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	lister, err := d.Open(v)
	if err != nil {
		return d.failed(v, err)
	}
	names, err := lister.Models(ctx)
	var some *SomeKeys
	if err != nil && !errors.As(err, &some) {
		return d.failed(v, err)
	}
	o := Offered{Valid: true, Models: tidy(names)}
	if some != nil {
		o.Error = some.Error()
	}
	return o
}

// failed returns the entry of a vendor without an answer. Only a key that was not accepted makes
// the entry invalid and the list empty; a short network failure does not.
func (d Discovery) failed(v Vendor, err error) Offered {
	o := Offered{Models: []string{}, Error: err.Error()}
	if before, ok := d.Before.Providers[v.Name]; ok && model.KindOf(err) != model.Auth && before.Models != nil {
		o.Valid, o.Models = before.Valid, tidy(before.Models)
	}
	return o
}

// tidy returns the list as people want to see it: sorted, without duplicates, and
// without the dated name of a model that is also listed without a date.
func tidy(names []string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(s string) bool {
		name, dated := withoutDate(s)
		return s == "" || dated && slices.Contains(names, name)
	})
	slices.Sort(out)
	return append([]string{}, slices.Compact(out)...)
}

// date matches the version date that vendors add to a model's name:
// gpt-4o-2024-08-06, claude-sonnet-4-5-20250929, claude-sonnet-4-5@20250929.
var date = pattern.Lazy(`[-@](20\d\d-\d\d-\d\d|20\d{6})$`)

// withoutDate returns a model's name without its version date, and whether it has one.
func withoutDate(name string) (string, bool) {
	at := date().FindStringIndex(name)
	if at == nil || at[0] == 0 {
		return name, false
	}
	return name[:at[0]], true
}
