package settings

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"chorus/internal/agents"
	"chorus/internal/agents/builtin"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/store"
)

// agentStore is shared by all: it lets only one change happen at a time.
type agentStore struct {
	once sync.Once
	*agents.Store
}

// Agents returns the store of this home's agents.
func (s *Settings) Agents() *agents.Store {
	s.agentStore.once.Do(func() { s.agentStore.Store = s.openAgents() })
	return s.agentStore.Store
}

func (s *Settings) openAgents() *agents.Store {
	return agents.New(agents.Config{
		Home: s.Home,
		Rows: agentRows{s.DB},
		Model: func(name string) error {
			_, err := s.Models.Name("", name)
			return err
		},
		Profile: func(name string) error {
			if _, err := s.Profile(name); err == nil || !profileOfBuiltIn(s.Home, name) {
				return err
			}
			return nil
		},
		BuiltIn:   s.builtIn(),
		Documents: s.Documents,
		Other:     otherSetting,
		Knows:     config.AgentFile.Knows,
		Warn:      s.Warn,
	})
}

func (s *Settings) builtIn() map[string]func() agents.Agent {
	out := map[string]func() agents.Agent{}
	for _, name := range builtin.Names() {
		out[name] = func() agents.Agent {
			a, _, _ := builtin.Define(s.Home, name)
			return a
		}
	}
	return out
}

// profileOfBuiltIn reports whether a built-in agent brings a profile of that name.
func profileOfBuiltIn(home *datadir.Home, name string) bool {
	for _, agent := range builtin.Names() {
		_, values, _ := builtin.Define(home, agent)
		if profiles, ok := values["profiles"].(map[string]any); ok && profiles[name] != nil {
			return true
		}
	}
	return false
}

// otherSetting parses a configuration key that may appear in agent.json.
func otherSetting(key, value string) (string, json.RawMessage, error) {
	typed, err := config.AgentFile.Read(key, value)
	if err != nil {
		return "", nil, err
	}
	raw, err := json.Marshal(typed.Value)
	return agentPath(typed.Path), raw, err
}

// agentPath returns agent.json's name for a key: a few have older names there.
func agentPath(path string) string {
	if path == "continuationModel" {
		return "model"
	}
	return path
}

// CanonicalKey returns an agent's setting under the one name by which it is judged.
func CanonicalKey(key string) string {
	if k, err := config.AgentFile.Key(key); err == nil {
		return agentPath(k.Path)
	}
	return key
}

// agentRows is the database as the list of agents sees it: the row holds the whole agent.json.
type agentRows struct{ db *store.DB }

func (r agentRows) PutAgent(ctx context.Context, a agents.Agent) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return r.db.PutAgent(ctx, store.Agent{Name: a.Name, Model: a.Model, Profile: a.Permissions, Config: data, Status: "active", Created: a.CreatedAt})
}

func (r agentRows) Agent(ctx context.Context, name string) (agents.Agent, bool, error) {
	row, err := r.db.Agent(ctx, name)
	if errors.Is(err, journal.ErrUnknown) {
		return agents.Agent{}, false, nil
	}
	if err != nil {
		return agents.Agent{}, false, err
	}
	var a agents.Agent
	return a, true, json.Unmarshal(row.Config, &a)
}

func (r agentRows) Agents(ctx context.Context) ([]agents.Agent, error) {
	rows, err := r.db.Agents(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]agents.Agent, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.Config, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r agentRows) DeleteAgent(ctx context.Context, name string) error {
	err := r.db.DeleteAgent(ctx, name)
	if errors.Is(err, journal.ErrUnknown) {
		return nil
	}
	return err
}
