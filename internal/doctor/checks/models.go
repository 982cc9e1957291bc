package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/doctor"
	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
	"chorus/internal/provider"
	"chorus/internal/text"
)

// oldList is the age at which a list of models says little about today's keys.
const oldList = 7 * 24 * time.Hour

// models says who can be asked. It never shows a key.
func (p *checker) models(ctx context.Context) []doctor.Finding {
	m := p.modelsOf()
	all, err := m.Vendors()
	var out []doctor.Finding
	if err != nil && p.read().bot != nil { // otherwise the configuration's section reports it
		out = append(out, doctor.Bad("vendors", "chorus config check", "%v", err))
	}
	list, when := modelrouter.Available{}, "just now"
	if p.Online {
		list = modelrouter.Discover(ctx, modelrouter.Discovery{Vendors: all, Open: func(v modelrouter.Vendor) (modelrouter.Lister, error) { return m.Open(v) },
			Limits: modelrouter.Limits{Total: onlineTime - 2*time.Second, Each: 8 * time.Second}})
	} else if p.found().err == nil {
		if list, err = modelrouter.ReadAvailable(p.app.Home.Models()); err != nil {
			out = append(out, doctor.Warning("list", "chorus models --refresh", "%v", err))
		}
		when = provider.Age(list.LastUpdated, time.Now())
	}
	var without []string
	keys := 0
	for _, v := range all {
		switch {
		case v.Provider().Offline || v.Provider().Local != nil && !v.Declared:
		case v.Configured():
			keys++
			out = append(out, vendorFinding(v, list, when))
		case v.Declared:
			_, err := v.Accounts()
			out = append(out, doctor.Warning(v.Name, "chorus config check", "%v", err))
		default:
			without = append(without, v.Name)
		}
	}
	out = append(out, p.defaultModel(m, all, keys))
	if len(without) > 0 {
		out = append(out, doctor.Good("no key", "for %s; none is needed unless you want to use them", strings.Join(without, ", ")))
	}
	if keys > 0 && !p.Online && len(list.Providers) > 0 && time.Since(list.LastUpdated) > oldList {
		out = append(out, doctor.Noted("list", "chorus models --refresh", "what the vendors offer is %s", when))
	}
	return out
}

// modelsOf returns the models with the configured choices, if the configuration is usable.
func (p *checker) modelsOf() *provider.Models {
	bot := p.read().bot
	if bot == nil {
		return p.app.Models
	}
	return provider.NewModels(p.app.Env, bot.DefaultProvider, bot.DefaultModel).In(p.app.Home)
}

// vendorFinding reports on a vendor with a key.
func vendorFinding(v modelrouter.Vendor, list modelrouter.Available, when string) doctor.Finding {
	accounts, err := v.Accounts()
	if err != nil {
		return doctor.Bad(v.Name, "look at "+v.KeySetting(), "its key cannot be read: %v", err)
	}
	where := v.KeySetting()
	if len(accounts) > 1 {
		where = fmt.Sprintf("%d keys in %s", len(accounts), where)
	}
	offered := list.Providers[v.Name]
	switch list.State(v) {
	case "valid":
		return doctor.Good(v.Name, "%s: accepted, %s (%s)", where, text.Count(len(offered.Models), "model"), when)
	case "valid, but":
		return doctor.Warning(v.Name, "chorus models --refresh", "%s: accepted, but %s (%s)", where, offered.Error, when)
	case "no":
		return doctor.Bad(v.Name, "check the network and "+v.KeySetting()+", then: chorus models --refresh", "%s: no usable answer (%s): %s", where, when, offered.Error)
	default:
		return doctor.Noted(v.Name, "chorus doctor --online", "%s is set; not yet checked whether it is accepted", where)
	}
}

// defaultModel says what answers if nobody names a model.
func (p *checker) defaultModel(m *provider.Models, all []modelrouter.Vendor, keys int) doctor.Finding {
	if p.read().bot == nil {
		return doctor.Noted("default", "", "not known: %s", unread(p.read().err))
	}
	name, err := m.Name("", "")
	if err != nil {
		return doctor.Bad("default", "chorus models", "%v", err)
	}
	if name == provider.Offline && keys == 0 {
		first, others := keyVariables()
		return doctor.Warning("default", "export "+first+"=…   (or "+others+"), or install Ollama",
			"%s, the built-in offline model: there is no key for a real one", name)
	}
	who, _, _ := strings.Cut(name, "/")
	if i := slices.IndexFunc(all, func(v modelrouter.Vendor) bool { return v.Name == who }); i >= 0 {
		if _, err := all[i].Accounts(); err != nil {
			fix := "export " + all[i].KeySetting() + "=…"
			if all[i].Declared {
				fix = "chorus config check"
			}
			return doctor.Bad("default", fix, "%s cannot be asked: %v", name, err)
		}
	}
	return doctor.Good("default", "%s", name)
}

// keyVariables returns the variables of which one is enough to have a model to talk to.
func keyVariables() (first, others string) {
	var names []string
	for _, p := range catalog.Providers() {
		if p.Key != catalog.KeyOptional && !p.BaseModels {
			names = append(names, p.KeyVariable())
		}
	}
	return names[0], strings.Join(names[1:], ", ")
}

// localTime is long for a server on this machine.
const localTime = time.Second

// Local looks for providers that run on this machine, or where their variable says.
func (p *checker) Local(ctx context.Context) []doctor.Finding {
	var out []doctor.Finding
	for _, v := range modelrouter.BuiltIn(p.app.Env) {
		if v.Provider().Local != nil {
			out = append(out, p.localServer(ctx, v))
		}
	}
	return out
}

func (p *checker) localServer(ctx context.Context, v modelrouter.Vendor) doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	provider := v.Provider()
	variable := provider.Env[provider.Settings.Address[0]][0]
	fix := fmt.Sprintf("%s   (or unset %s)", provider.Local.Start, variable)
	host := strings.TrimSpace(p.app.Env(variable))
	var models []string
	pool, err := p.app.Models.Open(v)
	if err == nil {
		models, err = pool.Models(ctx)
	}
	switch {
	case err != nil && host == "":
		return doctor.Good(v.Name, "none is running on this machine; you only need one for local models")
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return doctor.Warning(v.Name, fix, "%s does not answer in %s", host, localTime)
	case err != nil:
		return doctor.Warning(v.Name, fix, "%s cannot be asked: %v", host, err)
	case len(models) == 0:
		return doctor.Noted(v.Name, provider.Local.Pull+" "+provider.DefaultModel, "it is running, but has no model yet")
	default:
		return doctor.Good(v.Name, "it is running, %s; try: chorus chat -m %s/%s", text.Count(len(models), "model"), v.Name, models[0])
	}
}
