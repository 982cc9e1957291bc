package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/operations"
	"chorus/internal/overrides"
	"chorus/internal/permit"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/git"
	"chorus/internal/transport/repl"
)

// Command implements repl.Session.
func (s *Session) Command(ctx context.Context, line string) (string, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(name) {
	case "/status":
		return s.status(ctx)
	case "/diff":
		return s.diff(ctx)
	case "/notes":
		return s.notes(ctx, rest)
	case "/model":
		return s.model(rest)
	case "/mode":
		return s.mode(rest)
	case "/approve-all":
		return s.approveAll(), nil
	case "/cost":
		return s.cost(ctx)
	case "/why":
		return s.why(ctx, rest)
	case "/tools":
		return s.tools()
	case "/skill":
		if rest == "" {
			return s.skills(rest)
		}
		if word, _, _ := strings.Cut(rest, " "); slices.Contains([]string{"list", "show", "diff", "approve", "disable", "run"}, word) {
			answer, _, err := s.derived(ctx, line)
			return answer, err
		}
		return s.skills(rest)
	case "/prompts":
		return s.prompts(ctx)
	case "/clear":
		return s.clear(ctx)
	case "/resume":
		return s.resume(ctx, rest)
	default:
		if answer, ok, err := s.derived(ctx, line); ok {
			return answer, err
		}
		return "", fmt.Errorf("there is no command %s; /help lists them", name)
	}
}

func (s *Session) status(ctx context.Context) (string, error) {
	info := s.Info()
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s%s\n", key, value)
		}
	}
	line("session", info.ID)
	line("agent", info.Agent)
	line("directory", info.Dir)
	line("model", info.Model)
	line("permissions", info.Profile)
	line("sandbox", info.Sandbox)
	line("mode", cmp.Or(info.Mode, "none"))
	if s.Choice.Snapshot().Yes {
		line("approvals", "every request is approved")
	}
	if !s.fresh {
		row, err := s.app.DB.Thread(ctx, s.thread)
		if err != nil {
			return "", err
		}
		line("status", string(row.Status))
		if row.Waiting > 0 {
			line("waiting", fmt.Sprint(row.Waiting))
		}
		line("events", fmt.Sprint(row.Next-1))
	}
	line("session file", s.file)
	return strings.TrimRight(b.String(), "\n"), nil
}

// prompts lists the prompts of MCP servers, which start with the first run.
func (s *Session) prompts(ctx context.Context) (string, error) {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, p := range b.Prompts(ctx) {
		lines = append(lines, strings.TrimSuffix(p.String()+": "+p.About, ": "))
	}
	if len(lines) == 0 {
		return "there are no prompts; MCP servers provide them, and they start with the first message", nil
	}
	return strings.Join(lines, "\n"), nil
}

func (s *Session) diff(ctx context.Context) (string, error) {
	// git.Changes runs outside any sandbox, and starts nothing that commands left in the repository.
	out, err := git.Changes(ctx, s.app.Executor, s.dir)
	switch {
	case err != nil && !runsetup.InGit(s.dir):
		return "", fmt.Errorf("%s is not in a git repository", s.dir)
	case err != nil:
		line, _, _ := strings.Cut(err.Error(), "\n") // git's messages are long
		return "", fmt.Errorf("show what has changed: %s", line)
	case out == "":
		return "nothing has changed", nil
	}
	if lines := strings.Split(out, "\n"); len(lines) > mostDiff {
		out = strings.Join(lines[:mostDiff], "\n") + fmt.Sprintf("\n… %d more lines; git diff shows them", len(lines)-mostDiff)
	}
	return out, nil
}

// mostDiff limits the lines of the diff.
const mostDiff = 400

func (s *Session) notes(ctx context.Context, rest string) (string, error) {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return "", err
	}
	word, rest, _ := strings.Cut(rest, " ")
	key, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch word {
	case "set":
		if key == "" || value == "" {
			return "", fmt.Errorf("usage: /notes set KEY VALUE")
		}
		return "noted", b.Notes.Set(ctx, key, value)
	case "get":
		value, ok, err := b.Notes.Get(ctx, key)
		if err == nil && !ok {
			return "there is no note " + key, nil
		}
		return value, err
	case "clear":
		n, err := b.Notes.Clear(ctx, key)
		return fmt.Sprintf("%d cleared", n), err
	case "", "list":
		list, err := b.Notes.List(ctx)
		if err != nil || len(list) == 0 {
			return "there are no notes", err
		}
		var out []string
		for _, n := range list {
			out = append(out, n.Key+": "+n.Value)
		}
		return strings.Join(out, "\n"), nil
	default:
		return "", fmt.Errorf("usage: /notes [list|set KEY VALUE|get KEY|clear [KEY]]")
	}
}

func (s *Session) model(name string) (string, error) {
	if name == "" {
		return s.Info().Model, nil
	}
	full, err := s.app.Models.Name("", name)
	if err != nil {
		return "", err
	}
	if _, err := s.app.Models.Resolve(full); err != nil {
		return "", err
	}
	s.Choice.Set(func(c *overrides.Values) { c.Model = full })
	return "from the next prompt on: " + full, nil
}

func (s *Session) mode(name string) (string, error) {
	switch name {
	case "":
		return cmp.Or(s.Choice.Snapshot().Mode, "none"), nil
	case chat.NoMode, "none":
		name = ""
	}
	if err := runsetup.ValidMode(name); err != nil {
		return "", err
	}
	s.Choice.Set(func(c *overrides.Values) { c.Mode = name })
	return "from the next prompt on: " + cmp.Or(name, "no mode"), nil
}

// Choose sets the permission profile and the mode for later prompts.
func (s *Session) Choose(profile, mode string) {
	s.Choice.Set(func(c *overrides.Values) { c.Profile, c.Mode = profile, mode })
}

func (s *Session) approveAll() string {
	on := false
	s.Choice.Set(func(c *overrides.Values) { c.Yes = !c.Yes; on = c.Yes })
	if on {
		return "every request is approved from now on; what a rule denies stays denied"
	}
	return "you will be asked again"
}

func (s *Session) tools() (string, error) {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, spec := range b.Specs() {
		fmt.Fprintf(&out, "%-20s %s\n", spec.Name, repl.FirstSentence(spec.Description))
	}
	return out.String(), nil
}

// why explains an answer, as the server's pages do.
func (s *Session) why(ctx context.Context, which string) (string, error) {
	if s.fresh {
		return "nothing has been answered here yet", nil
	}
	ask, err := s.asker()
	if err != nil {
		return "", err
	}
	answer, err := operations.RunCommand.Call(ctx, ask.to, s.app.Service.LocalCaller(), operations.CommandLine{ID: s.ID(), Line: strings.TrimSpace("/why " + which)})
	return repl.PlainBlock(answer.Text), err
}

// Says implements repl.Sayer: calling a skill by its name is a prompt.
func (s *Session) Says(_ context.Context, line string) bool {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	return err == nil && s.app.Setup.CallsSkill(b, line)
}

// skills lists the skills that can be called.
func (s *Session) skills(name string) (string, error) {
	if name != "" {
		return "", fmt.Errorf("skill %s is not on here; /skill lists those that are, chorus skill list also those that need your approval", name)
	}
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return "", err
	}
	list, err := s.app.Setup.CallableSkills(b)
	if err != nil {
		return "", err
	}
	var out []repl.Command
	for _, one := range list {
		out = append(out, repl.Command{Name: one.Name, Args: one.ArgumentHint, About: one.Description})
	}
	return repl.SkillLines(out), nil
}

func (s *Session) clear(ctx context.Context) (string, error) {
	if s.fresh {
		return "nothing was said yet", nil
	}
	n, err := s.engine.Clear(ctx, s.thread, s.app.Me().String())
	switch {
	case errors.Is(err, engine.ErrBusy):
		return "", errors.New("a run is active; /stop it first")
	case err != nil:
		return "", err
	}
	return repl.Cleared(n), nil
}

// Latest is the most recently active terminal session of a folder; "" if there is none.
func (sessions *Sessions) Latest(ctx context.Context, dir, agent string) (string, error) {
	o := runsetup.SessionOptions{Dir: dir, Agent: agent}
	if err := sessions.Setup.Check(&o); err != nil {
		return "", err
	}
	rows, err := sessions.DB.Threads(ctx, store.ThreadFilter{Transport: "cli", Place: settings.Place(o.Dir), Agent: o.Agent, Limit: 1})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].ID.Thread(), nil
}

// maxListed is how many sessions /resume shows.
const maxListed = 10

func (s *Session) resume(ctx context.Context, name string) (string, error) {
	if name == "" {
		list, err := s.others(ctx)
		return repl.Others(list), err
	}
	row, err := s.app.Service.FindThread(ctx, name)
	switch {
	case errors.Is(err, journal.ErrUnknown): // perhaps it is a part of a title
		list, err := s.others(ctx)
		if err != nil {
			return "", err
		}
		one, err := repl.Choose(list, name)
		if err != nil {
			return "", err
		}
		return "", &repl.Resume{ID: one.ID}
	case err != nil:
		return "", err
	case row.ID == s.thread:
		return "you are already in this session", nil
	case row.ID.Transport() != "cli":
		return "", fmt.Errorf("%s is not a terminal session", row.ID)
	}
	return "", &repl.Resume{ID: row.ID.Thread()}
}

func (s *Session) cost(ctx context.Context) (string, error) {
	sums, err := s.app.DB.Spend(ctx, store.SpendFilter{By: store.ByModel, Thread: s.thread})
	if err != nil {
		return "", err
	}
	if len(sums) == 0 {
		return "nothing was spent", nil
	}
	var b strings.Builder
	var total ledger.Nanos
	for _, sum := range sums {
		total += sum.Settled
		fmt.Fprintf(&b, "%-28s %9s  %s, %s in, %s out, %s cached\n", sum.Key, text.Dollars(ledger.USD(sum.Settled)), text.Count(int(sum.Calls), "call"),
			text.Thousands(sum.Usage.Input+sum.Usage.CacheWrite), text.Thousands(sum.Usage.Output), text.Thousands(sum.Usage.CacheRead))
	}
	fmt.Fprintf(&b, "%-28s %9s", "total", text.Dollars(ledger.USD(total)))
	return b.String(), nil
}

// asked returns the actions of a call that need approval.
func (s *Sessions) asked(dir string, now chat.Terms, t tool.Tool, args []byte) []string {
	p, err := s.Setup.Profile(now.Profile)
	if err != nil {
		return nil
	}
	j := p.Judge(gate.Requests(agent.ProposedCall{Tool: t, Args: args, Touches: t.Access(args), Call: chat.ToolUse{}}),
		permit.JudgeOptions{Home: s.Home.Dir(), Workspace: dir})
	var out []string
	for _, d := range j.Decisions {
		if d.Verdict == permit.Ask {
			out = append(out, d.Action)
		}
	}
	return out
}
