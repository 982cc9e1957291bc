package runsetup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/id"
	"chorus/internal/memory"
	"chorus/internal/permit"
	"chorus/internal/settings"
	"chorus/internal/suggest"
	"chorus/internal/tool"
	"chorus/internal/tool/selfedit"
)

// self is an agent as its own tools change it, on the words of whoever the run is for.
type self struct {
	app    *Setup
	thread chat.ThreadID
	name   string

	mu sync.Mutex
	by []chat.Principal // whose words the run works on
}

var _ selfedit.Self = (*self)(nil)

// selfOf returns a thread's agent for its own tools, or nil if the agent
// was never created and there is nothing to change.
func (s *Setup) selfOf(thread chat.ThreadID) *self {
	name := thread.Agent()
	if name == "" || !IsDir(s.Home.AgentDir(name)) {
		return nil
	}
	return &self{app: s, thread: thread, name: name}
}

// serve sets on whose words the next run works.
func (s *self) serve(work engine.Work) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = nil
	for _, sender := range work.Senders {
		s.by = append(s.by, sender.Principal)
	}
}

func (s *self) Prompt(ctx context.Context) (string, error) {
	a, err := s.app.Settings.Agents().Get(ctx, s.name)
	return a.SystemPrompt, err
}

func (s *self) SetPrompt(ctx context.Context, prompt string) (string, error) {
	old, err := s.Prompt(ctx)
	if err != nil {
		return "", err
	}
	if _, err := s.app.Settings.Agents().Configure(ctx, s.name, "systemPrompt", prompt); err != nil {
		return "", err
	}
	return s.changed(ctx, "system_prompt", "systemPrompt", old, prompt, "Your system prompt was changed.")
}

// SetPermissions implements selfedit.Self. The gate has already checked the
// rights of whoever asked. Only named profiles are accepted.
func (s *self) SetPermissions(ctx context.Context, profile string) (string, error) {
	bot, err := s.bot()
	if err != nil {
		return "", err
	}
	if err := NamedProfile(bot, profile); err != nil {
		return "", tool.Mistake(err.Error())
	}
	if _, err := s.app.Settings.Agents().Configure(ctx, s.name, "permissions", profile); err != nil {
		return "", err
	}
	return s.changed(ctx, "permissions "+profile, "permissions", bot.Permissions, profile, "Your permissions are now those of "+profile+".")
}

// SetModel implements selfedit.Self. It rejects a model that cannot be asked:
// with it the agent could not even be told to choose another.
func (s *self) SetModel(ctx context.Context, wanted string) (string, error) {
	bot, err := s.bot()
	if err != nil {
		return "", err
	}
	name, err := s.app.ModelMeant(bot, wanted)
	if err != nil {
		return "", tool.Mistake(err.Error())
	}
	if _, err := s.app.Settings.Agents().Configure(ctx, s.name, "model", name); err != nil {
		return "", err
	}
	return s.changed(ctx, "model "+name, "continuationModel", bot.ContinuationModel, name, "Your model is now "+name+".")
}

func (s *self) bot() (*config.Bot, error) {
	return s.app.Settings.BotIn(s.name, settings.GuildOf(s.thread))
}

func (s *self) Doc(_ context.Context, name string) (string, error) {
	root, err := os.OpenRoot(filepath.Join(s.app.Home.AgentDir(s.name), "docs"))
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, err := root.ReadFile(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// SetDoc implements selfedit.Self. The root itself refuses names that lead out of the folder through links.
func (s *self) SetDoc(ctx context.Context, name, text string) (string, error) {
	old, err := s.Doc(ctx, name)
	if err != nil {
		return "", fmt.Errorf("the doc %s cannot be read, so it is left as it is", name)
	}
	said := "Your doc " + name + " is written."
	if strings.TrimSpace(text) == "" {
		said = "Your doc " + name + " is gone."
	}
	if err := s.announceDoc(ctx, name, text); err != nil {
		return "", err
	}
	if err := s.writeDoc(filepath.FromSlash(name), text); err != nil {
		return "", err
	}
	return s.changed(ctx, "docs "+name, "", old, text, said)
}

// announceDoc records that the agent is about to write a doc, so that its history shows on whose words.
func (s *self) announceDoc(ctx context.Context, name, text string) error {
	f, err := memory.Parse("agents/" + s.name + "/docs/" + name)
	if err != nil {
		return nil // not a doc whose versions are kept
	}
	s.mu.Lock()
	by := slices.Clone(s.by)
	s.mu.Unlock()
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	return s.app.Memory.Announce(ctx, f, text, memory.Origin{Who: Voices(by), Thread: s.thread, Call: tool.CallFrom(ctx).ID, How: "self_edit"})
}

func (s *self) writeDoc(name, text string) error {
	dir, err := s.app.Home.Ensure(filepath.Join(s.app.Home.AgentDir(s.name), "docs"))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if strings.TrimSpace(text) == "" {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	// Write to a temporary file and rename it, so that a doc is never half-written.
	beside := filepath.Join(path.Dir(name), ".doc-"+id.New())
	if err := root.WriteFile(beside, []byte(text), 0o600); err != nil {
		return errors.Join(err, root.Remove(beside))
	}
	if err := root.Rename(beside, name); err != nil {
		return errors.Join(err, root.Remove(beside))
	}
	return nil
}

// changed records what the agent changed about itself and for whom. It returns
// when the change takes effect, or what overrides it.
func (s *self) changed(ctx context.Context, detail, key, old, now, said string) (string, error) {
	s.mu.Lock()
	by := slices.Clone(s.by)
	s.mu.Unlock()
	who := chat.Principal{Kind: chat.OtherAgent, ID: s.name}
	if len(by) > 0 {
		who.For = &by[0]
	}
	hide := s.app.Logs.Redactor()
	err := s.app.DB.Audit(ctx, approval.Audit{Agent: s.name, Thread: s.thread, Principal: who, Action: hide.Text("tool:self_edit:" + detail), Decision: gate.Changed,
		Detail: hide.Text(fmt.Sprintf("from %q to %q", gate.Shortened(old), gate.Shortened(now)))})
	if err != nil {
		return "", fmt.Errorf("it was done, but could not be written to the audit log: %w", err)
	}
	if key != "" {
		if bot, err := s.bot(); err == nil && bot.Origin(key).Layer > config.AgentFile {
			return fmt.Sprintf("%s But %s is also set by the %s, which takes precedence; tell whoever asked.", said, key, bot.Origin(key).Layer), nil
		}
	}
	return said + " It takes effect from the next run on.", nil
}

// NamedProfile returns what is wrong with a profile that somebody away from the terminal
// names. They may not name files, which are for those who can read them.
func NamedProfile(bot *config.Bot, name string) error {
	known := ProfileNames(bot)
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("there is no profile %.60q; there are %s%s", name, strings.Join(known, ", "), suggest.Hint(name, known))
}

// ProfileNames returns the names of all profiles, the built-in ones first.
func ProfileNames(bot *config.Bot) []string {
	return append(permit.Presets(), gate.OwnProfiles(bot.Profiles)...)
}

// ModelMeant returns the full name of the model that somebody means, if it can be asked.
// wanted is a name, or a part of one that matches only one model.
func (s *Setup) ModelMeant(bot *config.Bot, wanted string) (string, error) {
	if wanted == "" {
		return "", errors.New("name a model: provider/model")
	}
	models, err := s.Models.For(bot.Vendors)
	if err != nil {
		return "", err
	}
	name, err := models.Name("", wanted)
	if err != nil {
		name, err = onlyOne(s.ModelNames(wanted), wanted, err)
	}
	if err != nil {
		return "", err
	}
	_, err = models.Resolve(name)
	return name, err
}

func onlyOne(found []string, part string, otherwise error) (string, error) {
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%q matches several models; name one: %s", part, strings.Join(found[:min(len(found), 10)], ", "))
	default:
		return "", otherwise
	}
}

// ModelNames returns the models that can be asked and whose names contain part.
func (s *Setup) ModelNames(part string) []string {
	all, err := s.Discovery.Catalog(s.Discovery.Available(func(string) {}))
	if err != nil {
		return nil
	}
	usable := map[string]bool{}
	for _, v := range all.Vendors {
		usable[v.Name] = v.Key != "none" && v.Key != "no"
	}
	var out []string
	for _, m := range all.Models {
		vendor, _, _ := strings.Cut(m.Name, "/")
		if usable[vendor] && strings.Contains(strings.ToLower(m.Name), strings.ToLower(part)) && !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}
