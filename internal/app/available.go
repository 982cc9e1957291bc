package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"chorus/internal/home"
	"chorus/internal/model"
)

// Available is available_models.json: what each provider said it offers.
type Available struct {
	LastUpdated time.Time          `json:"last_updated"`
	Providers   map[string]Offered `json:"providers"`
}

// Offered is one provider's answer.
type Offered struct {
	Valid  bool     `json:"valid"`
	Models []string `json:"models"`
	Error  string   `json:"error,omitempty"`
}

// State says in a word whether a provider can be used.
func (v Available) State(provider string) string {
	o, ok := v.Providers[provider]
	switch {
	case provider == "demo":
		return "none needed"
	case !ok:
		return "not checked"
	case o.Valid:
		return "valid"
	default:
		return "no"
	}
}

// Beyond lists models that a provider offers and the catalog does not have.
func (v Available) Beyond(known []model.Entry) []string {
	var out []string
	for p, o := range v.Providers {
		for _, m := range o.Models {
			if !slices.ContainsFunc(known, func(e model.Entry) bool { return e.Provider == p && e.Model == m }) {
				if e, ok := model.Lookup(p, m); !ok || e.Model != m {
					out = append(out, p+"/"+m)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// listTimeout bounds asking one provider for its models.
const listTimeout = 20 * time.Second

// Available reads the cache, or with refresh asks each provider and rewrites it.
func (a *App) Available(ctx context.Context, refresh bool, warn func(string)) (Available, error) {
	path := a.Home.Models()
	if !refresh {
		return readAvailable(path, warn)
	}
	v := Available{LastUpdated: time.Now().UTC().Truncate(time.Second), Providers: map[string]Offered{}}
	for _, p := range Providers() {
		v.Providers[p] = a.offered(ctx, p)
		if o := v.Providers[p]; !o.Valid {
			warn(fmt.Sprintf("%s: %s", p, o.Error))
		}
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return v, err
	}
	return v, home.WriteFile(path, append(data, '\n'), 0o600)
}

func (a *App) offered(ctx context.Context, provider string) Offered {
	o := Offered{Models: []string{}}
	made, err := a.Models.make(provider)
	if err == nil {
		lister, ok := made.(interface {
			Models(context.Context) ([]string, error)
		})
		if ok {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			if models, lerr := lister.Models(ctx); lerr != nil {
				err = lerr
			} else {
				o.Models = models
			}
		}
	}
	if err != nil {
		o.Error = err.Error()
		return o
	}
	o.Valid = true
	return o
}

// readAvailable reads the cache in its form with providers, or in the flat one.
func readAvailable(path string, warn func(string)) (Available, error) {
	v := Available{Providers: map[string]Offered{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, fmt.Errorf("read the list of models: %w", err)
	}
	err = json.Unmarshal(data, &v)
	if err == nil && len(v.Providers) == 0 {
		err = json.Unmarshal(data, &v.Providers)
	}
	if err != nil {
		warn(fmt.Sprintf("%s cannot be read (%v); write it anew with: chorus models --refresh", path, err))
		return Available{Providers: map[string]Offered{}}, nil
	}
	return v, nil
}
