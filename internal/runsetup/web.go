package runsetup

import (
	"chorus/internal/config"
	"chorus/internal/egress"
	"chorus/internal/tool/web"
)

// webConfig returns what the web tools of a run may reach: public addresses, those
// that the hosts name with their port, and the search providers.
func (s *Setup) webConfig(bot *config.Bot, hosts []string) web.Config {
	return web.Config{Private: egress.PrivateHosts(hosts), Providers: SearchProviders(bot, s.Settings.Env)}
}

// SearchProviders returns the providers that web_search asks: the
// configured ones, or else those of the environment.
func SearchProviders(bot *config.Bot, env func(string) string) []web.Provider {
	var out []web.Provider
	for _, p := range bot.SearchProviders {
		out = append(out, web.Provider{Name: p.Name, Type: p.Type, Key: string(p.Key), URL: p.URL})
	}
	if len(out) == 0 {
		out = web.FromEnvironment(env)
	}
	return out
}
