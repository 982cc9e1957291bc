// Package provider creates the models that a home can use: which providers there are, with which keys, and
// what each offers. What a provider supports and costs is in internal/model/catalog.
package provider

import (
	"context"
	"slices"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
)

// Discovery asks providers which models they offer, and stores their answers in the home.
type Discovery struct {
	Home   *datadir.Home
	Models *Models
}

// Available returns what each vendor offered according to the stored list.
func (d *Discovery) Available(warn func(string)) modelrouter.Available {
	list, err := modelrouter.ReadAvailable(d.Home.Models())
	if err != nil {
		warn(err.Error())
	}
	return list
}

// staleAfter is when a long-running process requests a list of models again.
const staleAfter = 24 * time.Hour

// Stale reports whether somebody has a key and the list of models is old or missing.
func (m *Models) Stale() bool {
	vendors, err := m.Vendors()
	if err != nil || !slices.ContainsFunc(vendors, func(v modelrouter.Vendor) bool { return !v.Provider().Offline && v.Configured() }) {
		return false
	}
	return time.Since(m.Listed().LastUpdated) > staleAfter
}

// RefreshModels asks every vendor that has a key what it offers, which also shows whether the key is
// accepted, and stores the answers. It takes half a minute at most; a server does it in the
// background when it starts. heard receives each answer; it may be nil.
func (d *Discovery) RefreshModels(ctx context.Context, heard func(vendor string, offered modelrouter.Offered)) (modelrouter.Available, error) {
	vendors, err := d.Models.Vendors()
	if err != nil {
		return modelrouter.Available{}, err
	}
	before, _ := modelrouter.ReadAvailable(d.Home.Models()) // an unreadable file is replaced
	list := modelrouter.Discover(ctx, modelrouter.Discovery{
		Vendors: vendors, Before: before, Heard: heard,
		Open: func(v modelrouter.Vendor) (modelrouter.Lister, error) { return d.Models.Open(v) },
	})
	if err := ctx.Err(); err != nil {
		return before, err
	}
	return list, list.Write(d.Home.Models())
}

// VendorView is a vendor as people see it.
type VendorView struct {
	Name     string           `json:"name"`
	Kind     modelrouter.Kind `json:"kind"`
	Key      string           `json:"key"` // valid, no, not checked, none, none needed
	Provides []string         `json:"provides,omitempty"`
	Listed   int              `json:"listed"`
	Error    string           `json:"error,omitempty"`
}

// ModelView is a model as people see it.
type ModelView struct {
	Name      string   `json:"name"` // vendor/model
	Window    int      `json:"contextWindow"`
	Output    int      `json:"maxOutput"`
	Input     int64    `json:"inputNanos"` // for one token, like all prices
	OutputFor int64    `json:"outputNanos"`
	Cached    int64    `json:"cachedNanos"`
	Can       []string `json:"can"`  // prefill, images, thinking, tools
	From      string   `json:"from"` // catalog, list or both
	Known     bool     `json:"known"`
}

// Catalog is everything that can be asked.
type Catalog struct {
	modelrouter.Available
	Vendors []VendorView `json:"vendors"`
	Models  []ModelView  `json:"models"`
	Default string       `json:"default"`
	Age     string       `json:"-"` // age of the lists, for people; "": there are none
}

// Catalog combines the lists, the catalog and the vendors.
func (d *Discovery) Catalog(list modelrouter.Available) (Catalog, error) {
	vendors, err := d.Models.Vendors()
	if err != nil {
		return Catalog{}, err
	}
	out := Catalog{Available: list, Default: d.Models.Default(), Vendors: []VendorView{}, Models: []ModelView{}}
	if len(list.Providers) > 0 {
		out.Age = Age(list.LastUpdated, time.Now())
	}
	for _, v := range vendors {
		o := list.Providers[v.Name]
		view := VendorView{Name: v.Name, Kind: v.Kind, Key: list.State(v), Listed: len(o.Models), Error: o.Error}
		for _, p := range v.Provides {
			view.Provides = append(view.Provides, p.String())
		}
		out.Vendors = append(out.Vendors, view)
		out.Models = append(out.Models, modelViews(v, o.Models)...)
	}
	return out, nil
}

// modelViews returns the models of the catalog that the vendor has, and those of its list.
func modelViews(v modelrouter.Vendor, listed []string) []ModelView {
	var out []ModelView
	at := map[string]int{}
	for _, e := range catalog.All() {
		if e.Provider == v.Catalog() {
			at[e.Model] = len(out)
			out = append(out, modelView(v, e.Model, "catalog"))
		}
	}
	for _, name := range listed {
		if i, there := at[name]; there {
			out[i].From = "both"
		} else {
			out = append(out, modelView(v, name, "list"))
		}
	}
	return out
}

func modelView(v modelrouter.Vendor, name, from string) ModelView {
	e := v.Entry(name)
	view := ModelView{Name: v.Name + "/" + name, Window: e.ContextWindow, Output: e.MaxOutput, From: from, Can: []string{}, Known: e.Free || e.Price.Known(),
		Input: e.Price.Input, OutputFor: e.Price.Output, Cached: e.Price.CacheRead}
	for _, can := range []struct {
		word string
		has  bool
	}{{"prefill", e.Prefill}, {"images", e.Images}, {"thinking", e.Thinking}, {"tools", e.Tools}} {
		if can.has {
			view.Can = append(view.Can, can.word)
		}
	}
	return view
}
