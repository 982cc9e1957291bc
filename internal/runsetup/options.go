package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/mirror/session"
	"chorus/internal/permit"
	"chorus/internal/settings"
	"chorus/internal/usage"
)

// Profile loads a profile by name or file; "" means the default.
func (s *Setup) Profile(name string) (*permit.Profile, error) {
	bot, err := s.Settings.Bot("") // reread, because a profile may have been created since the start
	if err != nil {
		return nil, err
	}
	return settings.Profile(bot, cmp.Or(name, s.Shared.Permissions))
}

// SessionOptions are the flags of run and chat.
type SessionOptions struct {
	Dir        string // the repository
	Agent      string
	Provider   string
	Model      string
	Profile    string
	Mode       string
	Sandbox    string // auto, host, bwrap or docker:…; "": as configured
	Yes        bool
	CanAsk     bool // there is a person at a terminal
	MaxSteps   int
	File       string   // --session
	ID         string   // --session-id
	Continue   bool     // --continue: the last one of the folder
	Attach     []string // --attach: files that go with the first prompt
	ResumeMode string
	Once       bool               // run, not chat
	Servers    []config.MCPServer // servers of this session in addition to the configured ones
	Warn       func(string)
}

// Check normalises the options, or returns what is wrong with them.
func (s *Setup) Check(o *SessionOptions) error {
	o.Dir = cmp.Or(o.Dir, ".")
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if !IsDir(dir) {
		return usage.Wrap(fmt.Errorf("%s is not a directory; name one with --repo", o.Dir))
	}
	o.Dir = dir
	o.Agent = cmp.Or(o.Agent, chat.DefaultAgent)
	if !chat.ValidAgentName(o.Agent) {
		return usage.Wrap(fmt.Errorf("%q cannot be an agent's name: 2 to 32 of a–z, 0–9 and hyphens", o.Agent))
	}
	if err := ValidMode(o.Mode); err != nil {
		return usage.Wrap(err)
	}
	if err := s.Isolation.Check(context.Background(), o.Sandbox, o.Dir); err != nil {
		return err
	}
	if o.File != "" && o.ID != "" {
		return usage.Wrap(errors.New("--session and --session-id exclude each other"))
	}
	if o.ResumeMode != "" && !session.ValidMode(o.ResumeMode) {
		return usage.Wrap(fmt.Errorf("unknown resume mode %q; there are full, last-N (for example last-3) and summary", o.ResumeMode))
	}
	if o.Provider != "" || o.Model != "" {
		if o.Model, err = s.Models.Name(o.Provider, o.Model); err != nil {
			return usage.Wrap(err)
		}
		if _, err := s.Models.Resolve(o.Model); err != nil {
			return err
		}
	}
	if _, err := s.Profile(o.Profile); err != nil {
		return usage.Wrap(err)
	}
	return nil
}
