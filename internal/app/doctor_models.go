package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/doctor"
	"chorus/internal/model/ollama"
	"chorus/internal/modelrouter"
)

// oldList is when a list of models says little about the keys of today.
const oldList = 7 * 24 * time.Hour

// models says who can be asked. No key is ever part of what it says.
func (p *patient) models(ctx context.Context) []doctor.Finding {
	m := p.modelsOf()
	all, err := m.Vendors()
	var out []doctor.Finding
	if err != nil && p.read().bot != nil { // else the configuration's section says it
		out = append(out, doctor.Bad("vendors", "chorus config check", "%v", err))
	}
	list, when := modelrouter.Available{}, "just now"
	if p.Online {
		list = modelrouter.Discover(ctx, modelrouter.Discovery{Vendors: all, Open: func(v modelrouter.Vendor) (modelrouter.Lister, error) { return m.open(v) },
			Limits: modelrouter.Limits{Total: onlineTime - 2*time.Second, Each: 8 * time.Second}})
	} else if p.found().err == nil {
		if list, err = modelrouter.ReadAvailable(p.app.Home.Models()); err != nil {
			out = append(out, doctor.Warning("list", "chorus models --refresh", "%v", err))
		}
		when = age(list.LastUpdated, time.Now())
	}
	var without []string
	keys := 0
	for _, v := range all {
		switch {
		case v.Kind == modelrouter.Demo || v.Kind == modelrouter.Ollama && !v.Declared:
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

// modelsOf are the models with the choices of the configuration, where it can be used.
func (p *patient) modelsOf() *Models {
	bot := p.read().bot
	if bot == nil {
		return p.app.Models
	}
	return NewModels(p.app.Env, bot.DefaultProvider, bot.DefaultModel).In(p.app.Home)
}

// vendorFinding is a vendor with a key.
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
		return doctor.Good(v.Name, "%s: accepted, %s (%s)", where, number(len(offered.Models), "model"), when)
	case "valid, but":
		return doctor.Warning(v.Name, "chorus models --refresh", "%s: accepted, but %s (%s)", where, offered.Error, when)
	case "no":
		return doctor.Bad(v.Name, "look at the network and at "+v.KeySetting()+", then: chorus models --refresh", "%s: no answer that can be used (%s): %s", where, when, offered.Error)
	default:
		return doctor.Noted(v.Name, "chorus doctor --online", "%s is set; nobody has asked yet whether it is accepted", where)
	}
}

// defaultModel says what answers when nobody names a model.
func (p *patient) defaultModel(m *Models, all []modelrouter.Vendor, keys int) doctor.Finding {
	if p.read().bot == nil {
		return doctor.Noted("default", "", "not known: %s", unread(p.read().err))
	}
	name, err := m.Name("", "")
	if err != nil {
		return doctor.Bad("default", "chorus models", "%v", err)
	}
	if name == Offline && keys == 0 {
		return doctor.Warning("default", "export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY), or install Ollama",
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

// ollamaTime is long for a server on this machine.
const ollamaTime = time.Second

// ollama looks for one on this machine, or where OLLAMA_HOST says.
func (p *patient) ollama(ctx context.Context) []doctor.Finding {
	host := strings.TrimSpace(p.app.Env("OLLAMA_HOST"))
	ctx, cancel := context.WithTimeout(ctx, ollamaTime)
	defer cancel()
	models, err := ollama.New(ollama.Options{Host: host, APIKey: p.app.Env("OLLAMA_API_KEY")}).Models(ctx)
	switch {
	case err != nil && host == "":
		return []doctor.Finding{doctor.Good("ollama", "none runs on this machine; none is needed unless you want models of your own")}
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return []doctor.Finding{doctor.Warning("ollama", "ollama serve   (or unset OLLAMA_HOST)", "%s does not answer in %s", host, ollamaTime)}
	case err != nil:
		return []doctor.Finding{doctor.Warning("ollama", "ollama serve   (or unset OLLAMA_HOST)", "%s cannot be asked: %v", host, err)}
	case len(models) == 0:
		return []doctor.Finding{doctor.Noted("ollama", "ollama pull "+modelrouter.DefaultModel(modelrouter.Ollama), "it runs, and has no model yet")}
	default:
		return []doctor.Finding{doctor.Good("ollama", "it runs, %s; try: chorus chat -m ollama/%s", number(len(models), "model"), models[0])}
	}
}
