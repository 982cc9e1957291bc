package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"chorus/internal/config"
	"chorus/internal/doctor"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/text"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/mcp/serverconfig"
	"chorus/internal/tool/web"
)

func (p *checker) configuration(context.Context) []doctor.Finding {
	c := p.read()
	if errors.Is(c.err, errNoHome) {
		return []doctor.Finding{doctor.Noted("files", "", "not checked: %v", c.err)}
	}
	var out []doctor.Finding
	if c.files != nil {
		out = append(out, p.configFiles(c.files))
	}
	if c.err != nil {
		out = append(out, doctor.Bad("error", "chorus config check", "%v", c.err))
	}
	for _, problem := range c.problems {
		fix := edit(problem.Place)
		if problem.Warning {
			out = append(out, doctor.Warning("warning", fix, "%v", problem))
		} else {
			out = append(out, doctor.Bad("error", fix, "%v", problem))
		}
	}
	if c.bot != nil {
		out = append(out, p.profiles(c)...)
	}
	return out
}

// edit says how to correct what is written at a place.
func edit(at config.Place) string {
	if at.Line == 0 {
		return "chorus config check"
	}
	return fmt.Sprintf("edit %s at line %d, then: chorus config check", Quoted(at.File), at.Line)
}

// configFiles says what was read.
func (p *checker) configFiles(files *config.Files) doctor.Finding {
	var read []string
	for _, path := range []string{files.Settings, filepath.Join(files.Dir, "shared.yaml")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			read = append(read, filepath.Base(path))
		}
	}
	for what, names := range map[string][]string{"bot": files.Bots(), "guild": files.Guilds()} {
		if len(names) > 0 {
			read = append(read, text.Count(len(names), what))
		}
	}
	slices.Sort(read)
	if len(read) == 0 {
		return doctor.Good("files", "none in %s; the built-in defaults apply", files.Dir)
	}
	return doctor.Good("files", "%s in %s", strings.Join(read, ", "), files.Dir)
}

// profiles tries the rules of everybody who has a file, and those they may choose.
func (p *checker) profiles(c readConfig) []doctor.Finding {
	good := map[string]bool{}
	var out []doctor.Finding
	for _, bot := range p.bots(c) {
		for _, name := range append(ownProfiles(bot), bot.Permissions) {
			if good[name] {
				continue
			}
			if _, err := settings.Profile(bot, name); err != nil {
				out = append(out, doctor.Bad("rules", edit(bot.Origin("permissions")), "%s: %v", bot.Origin("permissions"), err))
			}
			good[name] = true
		}
	}
	if len(out) > 0 {
		return out
	}
	names := make([]string, 0, len(good))
	for name := range good {
		names = append(names, name)
	}
	slices.Sort(names)
	return []doctor.Finding{doctor.Good("rules", "%s", strings.Join(names, ", "))}
}

func ownProfiles(bot *config.Bot) []string {
	var out []string
	for name := range bot.Profiles {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// bots returns the configuration for everybody, and for each bot that has a file or a folder.
func (p *checker) bots(c readConfig) []*config.Bot {
	names := c.files.Bots()
	folders, _ := os.ReadDir(p.app.Home.Agents())
	for _, f := range folders {
		if f.IsDir() && !slices.Contains(names, f.Name()) {
			names = append(names, f.Name())
		}
	}
	out := []*config.Bot{c.bot}
	for _, name := range names {
		ask, err := settings.ConfigAsk(p.app.Env, p.app.Home.Dir(), name, "")
		if err != nil {
			continue // the configuration's section reports it
		}
		if bot, problems := c.files.Bot(ask); problems.Err() == nil {
			out = append(out, bot)
		}
	}
	return out
}

func (p *checker) tools(context.Context) []doctor.Finding {
	out := []doctor.Finding{program("git", "warn", "git", "agents cannot see or make commits without it")}
	shell := program("bash", "", "bash", "")
	if shell.Mark != doctor.OK {
		shell = program("sh", "broken", "bash", "commands cannot be run without a shell")
	}
	shell.Name = "shell"
	node := program("node", "note", "nodejs", "only MCP servers that are npm packages need it")
	npx := program("npx", "note", "npm", "only MCP servers that are npm packages need it")
	out = append(out, shell, p.search())
	return append(out, program("rg", "note", "ripgrep", "searching large trees is slower without it"), node, npx)
}

// search says which providers web_search asks. It makes no request, because searches cost money.
func (p *checker) search() doctor.Finding {
	c := p.read()
	if c.bot == nil {
		return doctor.Noted("web_search", "", "not checked: %s", unread(c.err))
	}
	var names []string
	for _, bot := range p.bots(c) {
		for _, provider := range runsetup.SearchProviders(bot, p.app.Env) {
			if !slices.Contains(names, provider.Name) {
				names = append(names, provider.Name)
			}
		}
	}
	if len(names) == 0 {
		return doctor.Noted("web_search", "export BRAVE_API_KEY=…", "agents do not have it: %s", web.HowToConfigure)
	}
	return doctor.Good("web_search", "asks %s", strings.Join(names, ", then "))
}

// program looks for a program in the PATH. If it is missing, the finding has the given mark.
func program(name string, mark doctor.Mark, pack, why string) doctor.Finding {
	if path, err := exec.LookPath(name); err == nil {
		return doctor.Good(name, "%s", path)
	}
	return doctor.Finding{Name: name, Mark: mark, Detail: "not there: " + why, Fix: install(pack)}
}

// install says how to install a package on this machine.
func install(pack string) string {
	for _, m := range []struct{ name, command string }{
		{"apt-get", "sudo apt-get install "}, {"dnf", "sudo dnf install "}, {"apk", "sudo apk add "}, {"pacman", "sudo pacman -S "}, {"brew", "brew install "},
	} {
		if _, err := exec.LookPath(m.name); err == nil {
			return m.command + pack
		}
	}
	if runtime.GOOS == "darwin" {
		return "brew install " + pack
	}
	return "install " + pack
}

func (p *checker) servers(context.Context) []doctor.Finding {
	c := p.read()
	if c.bot == nil {
		return []doctor.Finding{doctor.Noted("servers", "", "not checked: %s", unread(c.err))}
	}
	here, _ := os.Getwd()
	var out []doctor.Finding
	seen := map[string]bool{}
	for _, bot := range p.bots(c) {
		for _, s := range bot.MCPServers {
			server := mcp.Server{Name: s.Name, Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL, Hosts: s.Hosts}
			if !s.HostsNamed {
				server.Hosts = bot.EgressHosts
			}
			if s.Sandbox == serverconfig.SandboxOff || bot.Sandbox == "host" {
				server.Sandbox = serverconfig.SandboxOff
			}
			if key := fmt.Sprint(s.Name, s.Command, s.URL, s.Dir); !seen[key] {
				seen[key] = true
				fix := "install it, or take the server out: " + bot.Origin("mcpServers."+s.Name).String()
				out = append(out, p.server(server, here, fix))
			}
		}
	}
	out = append(out, p.repository(here)...)
	if len(out) == 0 {
		out = append(out, doctor.Good("servers", "none are configured"))
	}
	return out
}

func (p *checker) server(s mcp.Server, dir, fix string) doctor.Finding {
	if s.URL != "" {
		return doctor.Good(s.Name, "is contacted on first use")
	}
	path, err := mcp.Program(s, dir, p.app.Environ)
	if err != nil {
		return doctor.Bad(s.Name, fix, "%v", err)
	}
	if s.Sandbox == serverconfig.SandboxOff {
		return doctor.Good(s.Name, "%s, without a sandbox", path)
	}
	reaches := "no host"
	if len(s.Hosts) > 0 {
		reaches = strings.Join(s.Hosts, ", ")
	}
	if named := p.app.Settings.NamedFiles(dir, s); len(named) > 0 && !s.Workspace {
		return doctor.Noted(s.Name, "move it out of the directory, or name it in .mcp.json, where a change needs approval", "%s starts %s of this directory, which agents can change; it reaches %s", path, strings.Join(named, ", "), reaches)
	}
	return doctor.Good(s.Name, "%s, in a sandbox if commands have one; it reaches %s", path, reaches)
}

// repository says what the .mcp.json of this directory wants.
func (p *checker) repository(dir string) []doctor.Finding {
	repo, err := p.app.Settings.RepositoryServers(dir)
	switch {
	case err != nil:
		return []doctor.Finding{doctor.Warning(".mcp.json", "edit "+Quoted(repo.File), "%v", err)}
	case len(repo.Servers) == 0:
		return nil
	case len(repo.Changes) > 0:
		return []doctor.Finding{doctor.Warning(".mcp.json", "chorus config trust", "the servers of this directory are left out: they are not what was trusted%s", repo.Changed())}
	case !repo.Trusted:
		return []doctor.Finding{doctor.Noted(".mcp.json", "chorus config trust", "%s of this directory left out until you trust it", text.Count(len(repo.Servers), "server"))}
	}
	var out []doctor.Finding
	for _, s := range repo.Servers {
		out = append(out, p.server(s, dir, "install it, or take it out of "+Quoted(repo.File)))
	}
	return out
}

// sandbox says where commands run. A missing sandbox is no fault as long as another
// one works. If none works, only the rules restrict an agent.
func (p *checker) sandbox(ctx context.Context) []doctor.Finding {
	var out []doctor.Finding
	if bot := p.read().bot; bot != nil && bot.Sandbox != "" {
		out = append(out, doctor.Good("chosen", "%s", bot.Sandbox))
	}
	out = append(out, judgeSandbox(p.app.Isolation.Facts(ctx))...)
	return append(out, p.keptHomes(ctx)...)
}

// judgeSandbox turns what is known about the sandboxes into findings. If none works,
// the consequences are only notes; the fix is given with auto.
func judgeSandbox(facts []isolate.Fact) []doctor.Finding {
	var out []doctor.Finding
	works := slices.ContainsFunc(facts, func(f isolate.Fact) bool { return f.Name == "sandbox auto" && f.OK })
	for _, f := range facts {
		name := strings.TrimPrefix(f.Name, "sandbox ")
		switch {
		case f.OK:
			out = append(out, doctor.Good(name, "%s", f.Detail))
		case name == "docker":
			out = append(out, doctor.Noted(name, f.Fix, "%s", f.Detail))
		case !works && name != "auto": // a consequence; the fix is given with auto
			out = append(out, doctor.Noted(name, "", "%s", f.Detail))
		default:
			out = append(out, doctor.Warning(name, cmp.Or(f.Fix, sandboxFixes(name)), "%s", f.Detail))
		}
	}
	return out
}

// sandboxFixes says how to fix a boundary or limit that does not work although the rest does.
func sandboxFixes(name string) string {
	switch name {
	case "limit memory", "limit processes":
		return "systemd-run --user --scope -p Delegate=yes chorus chat"
	case "limit tmp", "isolation nested namespaces", "isolation symlink races":
		return "get a newer bubblewrap: " + install("bubblewrap")
	case "isolation landlock":
		return "get a newer kernel, or add landlock to lsm= of its command line"
	default:
		return "chorus doctor --json   and see what this machine lacks"
	}
}
