package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// seePrincipal records who has spoken or answered, with the name and roles they had.
func seePrincipal(tx database.Tx, p chat.Principal, now int64) error {
	if p.ID == "" {
		return nil
	}
	if p.Roles == nil {
		p.Roles = []string{}
	}
	roles, err := database.AsJSON(p.Roles)
	if err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO principals (id, kind, name, roles, first_seen, last_seen) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, roles = excluded.roles, last_seen = excluded.last_seen`,
		p.String(), string(p.Kind), p.Name, roles, now, now)
}

// PrincipalName returns the name that somebody had when they last spoke or
// answered, given their key, or "" if it is not known.
func (db *DB) PrincipalName(ctx context.Context, key string) (string, error) {
	var name string
	err := db.Query(ctx, `SELECT name FROM principals WHERE id = ?`, []any{key}, func(rows *sql.Rows) error { return rows.Scan(&name) })
	if err != nil {
		return "", fmt.Errorf("name of %s: %w", key, err)
	}
	return name, nil
}

// Agent is the row of an agent. Config is JSON.
type Agent struct {
	Name    string
	Model   string
	Profile string
	Config  json.RawMessage
	Status  string
	Created time.Time
}

// PutAgent creates an agent or changes it. Its creation time is kept.
func (db *DB) PutAgent(ctx context.Context, a Agent) error {
	if !chat.ValidAgentName(a.Name) {
		return fmt.Errorf("agent name %q: use 2 to 32 of a-z, 0-9 and hyphens", a.Name)
	}
	if len(a.Config) == 0 {
		a.Config = json.RawMessage(`{}`)
	}
	if !json.Valid(a.Config) {
		return fmt.Errorf("agent %s: its configuration is not JSON", a.Name)
	}
	if a.Created.IsZero() {
		a.Created = db.Now()
	}
	err := db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`INSERT INTO agents (name, model, profile, config, status, created) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET model = excluded.model, profile = excluded.profile,
				config = excluded.config, status = excluded.status`,
			a.Name, a.Model, a.Profile, string(a.Config), a.Status, database.Micros(a.Created))
	})
	if err != nil {
		return fmt.Errorf("put agent %s: %w", a.Name, err)
	}
	return nil
}

// Agent reads an agent, or fails with ErrUnknown.
func (db *DB) Agent(ctx context.Context, name string) (Agent, error) {
	found, err := db.agents(ctx, ` WHERE name = ?`, name)
	if err == nil && len(found) == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return Agent{}, fmt.Errorf("agent %s: %w", name, err)
	}
	return found[0], nil
}

// Agents lists all agents by name.
func (db *DB) Agents(ctx context.Context) ([]Agent, error) {
	found, err := db.agents(ctx, ` ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return found, nil
}

func (db *DB) agents(ctx context.Context, rest string, args ...any) ([]Agent, error) {
	var out []Agent
	err := db.Query(ctx, `SELECT name, model, profile, config, status, created FROM agents`+rest, args, database.Fill(&out, func(rows *sql.Rows, a *Agent) error {
		var config string
		var created int64
		err := rows.Scan(&a.Name, &a.Model, &a.Profile, &config, &a.Status, &created)
		a.Config, a.Created = json.RawMessage(config), database.Time(created)
		return err
	}))
	return out, err
}

// DeleteAgent removes an agent's row, or fails with ErrUnknown. Its threads remain.
func (db *DB) DeleteAgent(ctx context.Context, name string) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`DELETE FROM agents WHERE name = ?`, name)
		if err == nil && n == 0 {
			err = journal.ErrUnknown
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete agent %s: %w", name, err)
	}
	return nil
}

// Setting reads the value of key in scope, or fails with ErrUnknown.
func (db *DB) Setting(ctx context.Context, scope, key string) (string, error) {
	var value string
	found := false
	err := db.Query(ctx, `SELECT value FROM settings WHERE scope = ? AND key = ?`, []any{scope, key}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&value)
	})
	if err == nil && !found {
		err = journal.ErrUnknown
	}
	if err != nil {
		return "", fmt.Errorf("setting %s %s: %w", scope, key, err)
	}
	return value, nil
}

// SetSetting sets key in scope; an empty value removes it.
func (db *DB) SetSetting(ctx context.Context, scope, key, value string) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		if value == "" {
			return tx.Exec(`DELETE FROM settings WHERE scope = ? AND key = ?`, scope, key)
		}
		return tx.Exec(`INSERT INTO settings (scope, key, value) VALUES (?, ?, ?)
			ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value`, scope, key, value)
	})
	if err != nil {
		return fmt.Errorf("set %s %s: %w", scope, key, err)
	}
	return nil
}

// SettingsOf reads the values of keys in scope. Keys without a value are left out.
func (db *DB) SettingsOf(ctx context.Context, scope string, keys []string) (map[string]string, error) {
	out := map[string]string{}
	for part := range slices.Chunk(keys, maxAsked) {
		args := []any{scope}
		for _, key := range part {
			args = append(args, key)
		}
		in := strings.TrimSuffix(strings.Repeat("?, ", len(part)), ", ")
		err := db.Query(ctx, `SELECT key, value FROM settings WHERE scope = ? AND key IN (`+in+`)`, args, database.Pairs(out))
		if err != nil {
			return nil, fmt.Errorf("settings of %s: %w", scope, err)
		}
	}
	return out, nil
}
