package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
	"chorus/internal/participants"
	"chorus/internal/suggest"
	"chorus/internal/usage"
)

// Rendering says what a request is rendered with. Empty fields take the request's own values.
type Rendering struct {
	Mode     string
	Provider string
	Window   time.Duration // how old messages may be; 0: any age
}

// Render returns the body that would be sent for a participant-based request. It sends nothing and
// reads nothing but data. left says which messages are too old to be included.
func Render(data []byte, o Rendering) (body []byte, left string, err error) {
	doc, err := participants.ParseDocument(data)
	if err != nil {
		return nil, "", err
	}
	bot, err := doc.Bot()
	if err != nil {
		return nil, "", err
	}
	mode := doc.Config.Mode
	if o.Mode != "" {
		mode = participants.Mode(o.Mode)
	}
	switch mode {
	case "":
		mode = participants.Prefill
	case participants.Prefill, participants.Chat:
	default:
		return nil, "", &usage.Error{Err: fmt.Errorf("unknown mode %q; there are prefill and chat", mode)}
	}
	name := o.Provider
	if name == "" {
		name = providerOf(doc.Config.Model)
	}
	p, ok := catalog.Find(name)
	if !ok || p.Offline {
		return nil, "", unknownProvider(name)
	}
	if left, err = doc.Since(o.Window); err != nil {
		return nil, "", err
	}
	r, err := doc.Request()
	if err != nil {
		return nil, "", err
	}
	if r.Model = strings.TrimPrefix(r.Model, p.Name+"/"); r.Model == "" {
		r.Model = p.DefaultModel
	}
	entry, _ := catalog.Lookup(p.Name, r.Model)
	// Nothing is sent, so no key is needed.
	made, err := new(Models).provide(modelrouter.Vendor{Name: p.Name, Kind: modelrouter.Kind(p.Name)}, modelrouter.Account{})
	if err != nil {
		return nil, "", err
	}
	prepared, err := participants.Style{Mode: mode, Bot: bot}.Wrap(made, entry).Prepare(r)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, prepared.Body, "", "  "); err != nil {
		return nil, "", fmt.Errorf("the request for %s is no JSON: %w", p.Name, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), left, nil
}

// providerOf returns the provider of a model: the one before the
// slash, or else the first that knows the model.
func providerOf(name string) string {
	all := catalog.Providers()
	if before, _, ok := strings.Cut(name, "/"); ok {
		if p, ok := catalog.Find(before); ok && !p.Offline {
			return p.Name
		}
	}
	for _, p := range all {
		if _, known := catalog.Lookup(p.Name, name); known && !p.Offline {
			return p.Name
		}
	}
	return all[0].Name
}

func unknownProvider(name string) error {
	names := catalog.Names(func(p catalog.Provider) bool { return !p.Offline })
	hint := ""
	if best := suggest.Best(name, names); best != "" {
		hint = fmt.Sprintf("did you mean %s? ", best)
	}
	return &usage.Error{Err: fmt.Errorf("unknown provider %q; %sthere are %s", name, hint, strings.Join(names, ", "))}
}
