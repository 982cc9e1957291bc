package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Ask says for whom the layers are merged.
type Ask struct {
	Bot   string // the name of its file; "": nobody's, for shared values
	Guild string

	GuildSettings map[string]any // what `/settings` stored for the guild
	Definition    map[string]any // of a built-in agent: overrides the values for everybody, but not those for this agent
	Agent         map[string]any // agent.json's values that are keys of ours
	AgentFile     string         // its path, for [Bot.Origin]
	Pins          []Pin          // outermost channel first, oldest first
	Flags         map[string]any // by key
	Assumed       map[string]any // by key: values that apply if nobody sets anything else, as if somebody had set them
}

// Bot merges the layers. If there is an error among the problems, it returns no bot.
func (f *Files) Bot(ask Ask) (*Bot, Problems) {
	r := &report{}
	b := &Bot{Name: ask.Bot}
	m := &b.merged
	m.lay(values(r, BuiltIn, "", ask.Assumed))
	m.lay(f.settings)
	m.lay(f.shared)
	if ask.Guild != "" {
		m.lay(f.guilds[ask.Guild])
		m.lay(values(r, GuildSettings, "settings of guild "+ask.Guild, ask.GuildSettings))
	}
	m.lay(values(r, Definition, "", ask.Definition))
	if ask.Bot != "" {
		m.lay(f.bots[ask.Bot])
		if ask.Guild != "" {
			both := slices.Clone(f.bots[ask.Bot+"-"+ask.Guild])
			for i := range both {
				both[i].at.Layer = BotGuild
			}
			m.lay(both)
		}
	}
	m.lay(values(r, AgentFile, cmp.Or(ask.AgentFile, "agent.json"), ask.Agent))
	inner := ""
	if l := m.get("innerName"); l != nil {
		inner = l.value.text
	}
	var limits []leaf
	for _, parent := range []bool{true, false} {
		for _, pin := range ask.Pins {
			if pin.Parent == parent {
				leaves := readPin(r, pin, ask.Bot, inner)
				limits = append(limits, leavesAt(leaves, "permissions")...)
				m.lay(slices.DeleteFunc(leaves, func(l leaf) bool { return l.path == "permissions" }))
			}
		}
	}
	m.lay(environment(r, f.Env, m))
	m.lay(flags(r, ask.Flags))
	b.fill(r, f.Env)
	for _, l := range limits {
		b.pinnedLimit(r, l)
	}
	if r.found.Err() != nil {
		return nil, r.found
	}
	return b, r.found
}

// leavesAt returns the leaves of one path.
func leavesAt(leaves []leaf, path string) (out []leaf) {
	for _, l := range leaves {
		if l.path == path {
			out = append(out, l)
		}
	}
	return out
}

// values reads a layer that is given as values. Mistakes in it are warnings
// and left out, because the operator did not write it.
func values(r *report, layer Layer, file string, from map[string]any) []leaf {
	if len(from) == 0 {
		return nil
	}
	own := &report{}
	leaves := shape(own, layer, nil, given(from, Place{Layer: layer, File: file}, 0))
	for _, p := range own.found {
		if !p.Warning {
			p.Warning, p.Text = true, p.Text+"; it is left out"
		}
		r.found = append(r.found, p)
	}
	return leaves
}

// fill sets the fields from what was merged.
func (b *Bot) fill(r *report, env func(string) string) {
	b.decode(r, env)
	b.InnerName = cmp.Or(b.InnerName, b.Name)
	b.SystemPrompt = b.fromFile(r, "systemPrompt", b.SystemPrompt)
	b.ContextPrefix = b.fromFile(r, "contextPrefix", b.ContextPrefix)
	if b.WindowHardMax < b.WindowCharacters {
		r.warn(b.Origin("recencyWindow.hardMax"), "recencyWindow.hardMax", "recencyWindow.hardMax (%d) is below recencyWindow.characters (%d), so that it counts as that",
			b.WindowHardMax, b.WindowCharacters)
		b.WindowHardMax = b.WindowCharacters
	}
	m := &b.merged
	for _, name := range m.names("vendors") {
		v, err := b.vendor(name, env)
		if err != nil {
			r.fail(b.Origin("vendors."+name), "vendors."+name, "%s", joinLines(err))
			continue
		}
		b.Vendors = append(b.Vendors, v)
	}
	for _, name := range m.names("mcpServers") {
		b.server(r, name, env)
	}
	b.WorkerEnv = Values{}
	if err := b.values("worker.env", b.WorkerEnv, env); err != nil {
		r.fail(b.Origin("worker.env"), "worker.env", "%s", joinLines(err))
	}
	for _, name := range m.names("searchProviders") {
		b.searchProvider(r, name, env)
	}
	for _, name := range m.names("toolHooks") {
		b.toolHook(r, name)
	}
	b.Profiles = map[string]Profile{}
	for _, name := range m.names("profiles") {
		at := "profiles." + name + "."
		b.Profiles[unescape(name)] = Profile{b.list(at + "allow"), b.list(at + "ask"), b.list(at + "deny"), b.text(at + "sandbox"), b.list(at + "hosts"), b.text(at + "children")}
	}
	for _, name := range m.names("secrets") {
		value, err := b.secret("secrets."+name+".value", env)
		if err != nil || value == "" {
			r.fail(b.Origin("secrets."+name), "secrets."+name, "the secret %q has no value", unescape(name))
			continue
		}
		b.Secrets = append(b.Secrets, SecretRule{unescape(name), Secret(value), b.list("secrets." + name + ".hosts")})
	}
	b.access(r)
	b.approvals(r)
	b.prices(r)
	b.budgets()
}

// fromFile returns the text of the key, or of its file if that was set in a
// stronger layer. In the same layer the text itself wins.
func (b *Bot) fromFile(r *report, key, text string) string {
	named := b.merged.get(key + "File")
	if named == nil || named.value.text == "" || b.IsSet(key) && b.Origin(key).Layer >= named.at.Layer {
		return text
	}
	dir := filepath.Dir(named.at.File)
	path := named.value.text
	if named.at.Layer == Environment || named.at.Layer == Flag { // the operator's own setting, relative to the working directory
		dir, path = filepath.Dir(path), filepath.Base(path)
	}
	found, err := textFile(path, dir)
	if err != nil {
		r.fail(named.at, key+"File", "%sFile: %v", key, err)
		return text
	}
	return found
}

// vendor reads a vendor and resolves its references now.
func (b *Bot) vendor(name string, env func(string) string) (Vendor, error) {
	at := "vendors." + name
	v := Vendor{Name: unescape(name), Config: Values{}, Headers: Values{}, Provides: b.list(at + ".provides"), Extra: map[string]any{}}
	for into, part := range map[*Values]string{&v.Config: ".config", &v.Headers: ".headers"} {
		if err := b.values(at+part, *into, env); err != nil {
			return Vendor{}, err
		}
	}
	for _, l := range b.merged.under(at + ".extra") {
		put(v.Extra, strings.Split(strings.TrimPrefix(l.path, at+".extra."), "."), l.value.plain())
	}
	v.Reread = func() (Vendor, error) { return b.vendor(name, env) }
	return v, nil
}

// toolHook reads a tool hook and reports what it lacks.
func (b *Bot) toolHook(r *report, name string) {
	at := "toolHooks." + name
	h := ToolHook{Name: unescape(name), Event: cmp.Or(b.text(at+".event"), "before"), Tools: b.text(at + ".tools"), Command: b.text(at + ".command")}
	if l := b.merged.get(at + ".timeout"); l != nil {
		h.Seconds = int(l.value.number)
	}
	if h.Command == "" {
		r.fail(b.Origin(at), at, "the tool hook %q has no command", h.Name)
		return
	}
	b.ToolHooks = append(b.ToolHooks, h)
}

// searchProvider reads a search provider and reports what it lacks.
func (b *Bot) searchProvider(r *report, name string, env func(string) string) {
	at := "searchProviders." + name
	p := SearchProvider{Name: unescape(name), Type: b.text(at + ".type"), URL: b.text(at + ".url")}
	key, err := b.secret(at+".key", env)
	p.Type, p.Key = cmp.Or(p.Type, p.Name), Secret(key)
	known := table().keys["searchProviders.*.type"].Choices
	switch {
	case err != nil:
		r.fail(b.Origin(at), at, "%s.key: %v", shownPath(at), err)
	case !slices.Contains(known, p.Type):
		r.fail(b.Origin(at), at, "the search provider %q needs a type: %s", p.Name, strings.Join(known, ", "))
	case p.Type == "searxng" && p.URL == "":
		r.fail(b.Origin(at), at, "the search provider %q needs the url of its instance", p.Name)
	case p.Type != "searxng" && p.Key == "":
		r.fail(b.Origin(at), at, "the search provider %q has no key", p.Name)
	case p.URL != "" && !strings.HasPrefix(p.URL, "http://") && !strings.HasPrefix(p.URL, "https://"):
		r.fail(b.Origin(at), at, "the url of the search provider %q must begin with https:// or http://", p.Name)
	default:
		b.SearchProviders = append(b.SearchProviders, p)
	}
}

// put sets a value deep in an object.
func put(into map[string]any, path []string, value any) {
	name := unescape(path[0])
	if len(path) == 1 {
		into[name] = value
		return
	}
	next, ok := into[name].(map[string]any)
	if !ok {
		next = map[string]any{}
		into[name] = next
	}
	put(next, path[1:], value)
}

func (b *Bot) server(r *report, name string, env func(string) string) {
	at := "mcpServers." + name
	s := MCPServer{Name: unescape(name), Type: b.text(at + ".type"), Command: b.text(at + ".command"), Args: b.list(at + ".args"), Dir: b.text(at + ".cwd"),
		URL: b.text(at + ".url"), Env: Values{}, Headers: Values{}, StartTimeout: b.seconds(at + ".startTimeout"), CallTimeout: b.seconds(at + ".callTimeout"), TaskTimeout: b.seconds(at + ".taskTimeout"),
		Hosts: b.list(at + ".hosts"), HostsNamed: b.merged.get(at+".hosts") != nil, Sandbox: b.text(at + ".sandbox")}
	if l := b.merged.get(at + ".disabled"); l != nil && l.value.truth {
		return
	}
	for into, part := range map[*Values]string{&s.Env: ".env", &s.Headers: ".headers"} {
		if err := b.values(at+part, *into, env); err != nil {
			r.fail(b.Origin(at), at, "%s", joinLines(err))
			return
		}
	}
	switch s.Type {
	case "":
		if s.Type = "stdio"; s.Command == "" {
			s.Type = "http"
		}
	case "streamable-http":
		s.Type = "http"
	}
	switch {
	case s.Command == "" && s.URL == "":
		r.fail(b.Origin(at), at, "the MCP server %q needs a command or a url", s.Name)
	case s.Type == "stdio" && s.Command == "":
		r.fail(b.Origin(at), at, "the MCP server %q is of type stdio and needs a command", s.Name)
	case s.Type != "stdio" && s.URL == "":
		r.fail(b.Origin(at), at, "the MCP server %q is of type %s and needs a url", s.Name, s.Type)
	case s.Command != "" && s.URL != "":
		r.fail(b.Origin(at), at, "the MCP server %q has both a command and a url; keep one", s.Name)
	default:
		b.MCPServers = append(b.MCPServers, s)
	}
}

func (b *Bot) seconds(path string) time.Duration {
	seconds := 0.0
	if l := b.merged.get(path); l != nil {
		seconds = l.value.number
	} else if def, ok := table().lookup(path).Default.(int); ok {
		seconds = float64(def)
	}
	return time.Duration(seconds * float64(time.Second))
}

// prices reads the configured prices. An incomplete price is a mistake, because the model would seem cheap.
func (b *Bot) prices(r *report) {
	b.Prices = map[string]Price{}
	for _, name := range b.merged.names("prices") {
		at := "prices." + name
		number := func(part string, otherwise float64) float64 {
			if l := b.merged.get(at + "." + part); l != nil {
				return l.value.number
			}
			return otherwise
		}
		if !b.IsSet(at+".input") || !b.IsSet(at+".output") {
			r.fail(b.Origin(at), at, "the price of %q needs both input and output", unescape(name))
			continue
		}
		in := number("input", 0)
		b.Prices[unescape(name)] = Price{in, number("output", 0), number("cacheRead", in), number("cacheWrite", in)}
	}
}

// budgets reads the configured limits.
func (b *Bot) budgets() {
	add := func(scope, role, path string) {
		for _, period := range []string{"day", "month"} {
			if l := b.merged.get(path + "." + period); l != nil {
				b.Budgets = append(b.Budgets, Budget{scope, role, period, l.value.number})
			}
		}
	}
	for _, scope := range []string{"guild", "channel", "agent", "person"} {
		add(scope, "", "budgets."+scope)
	}
	for _, role := range b.merged.names("budgets.role") {
		add("role", unescape(role), "budgets.role."+role)
	}
}
