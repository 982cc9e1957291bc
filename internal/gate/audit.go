package gate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/settings"
)

// Changed is the decision value of audit lines about a change of settings.
const Changed = "changed"

// maxChange is how much of a value the audit log shows: enough to recognise it.
const maxChange = 200

// recordChange records who changed what. It is called after the change, so
// the log never reports a change that did not happen.
func (g *Gate) recordChange(ctx context.Context, agent, action, detail string) error {
	return g.record(ctx, g.Me(), agent, action, detail)
}

func (g *Gate) record(ctx context.Context, who chat.Principal, agent, action, detail string) error {
	hide := g.Logs.Redactor()
	err := g.DB.Audit(ctx, approval.Audit{Agent: agent, Principal: who, Action: hide.Text(action), Decision: Changed, Detail: hide.Text(detail)})
	if err != nil {
		return fmt.Errorf("it was done, but could not be written to the audit log: %w", err)
	}
	return nil
}

// CreateAgent creates an agent and records that in the audit log.
func (g *Gate) CreateAgent(ctx context.Context, given agents.Agent) (agents.Agent, error) {
	if given.Permissions != "" {
		if err := g.MayGive(given.Permissions, g.Me()); err != nil {
			return given, err
		}
	}
	made, err := g.Settings.Agents().Create(ctx, given)
	if err != nil {
		return made, err
	}
	detail := fmt.Sprintf("model %s, permissions %s", cmp.Or(made.Model, "(default)"), cmp.Or(made.Permissions, "standard"))
	return made, g.recordChange(ctx, made.Name, "agent create", detail)
}

// ConfigureAgent changes one setting of an agent and records that in the audit log.
func (g *Gate) ConfigureAgent(ctx context.Context, name, key, value string) (agents.Agent, error) {
	key = settings.CanonicalKey(key)
	if key == "permissions" {
		if err := g.MayGive(value, g.Me()); err != nil {
			return agents.Agent{}, err
		}
	}
	changed, err := g.Settings.Agents().Configure(ctx, name, key, value)
	if err != nil {
		return changed, err
	}
	return changed, g.recordChange(ctx, changed.Name, "agent config "+key, Shortened(value))
}

// MayGive applies the rule of self-edit to people who change an agent themselves: nobody gives an agent
// more rights than they have, and only those who may change permissions give any.
func (g *Gate) MayGive(profile string, who chat.Principal) error {
	bot, err := g.Settings.Bot("")
	if err != nil {
		return err
	}
	if may, why := Grants(bot).MayGive(strings.TrimSpace(profile), who); !may {
		return fmt.Errorf("%s; `access` and `editors` in the configuration say who may", why)
	}
	return nil
}

// TrustRepository trusts a repository and records that in the audit log.
func (g *Gate) TrustRepository(ctx context.Context, r settings.Repository) error {
	if err := g.Settings.Trust(r); err != nil {
		return err
	}
	return g.recordChange(ctx, "", "config trust", fmt.Sprintf("%s: %s; sha256 %s", r.File, strings.Join(r.Names(), ", "), r.Digest))
}

// RecordDecision records somebody's decision about something that was waiting for review.
func (g *Gate) RecordDecision(ctx context.Context, who chat.Principal, action, detail string) error {
	return g.record(ctx, who, "", action, detail)
}

// Shortened cuts a long value for the audit log and states its full length.
func Shortened(value string) string {
	if r := []rune(value); len(r) > maxChange {
		return fmt.Sprintf("%s… (%d characters)", string(r[:maxChange]), len(r))
	}
	return value
}
