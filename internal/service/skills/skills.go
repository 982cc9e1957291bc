// Package skills implements the operations on skills and MCP servers: listing them, showing what changed, and approving it.
package skills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/service"
	"chorus/internal/skill"
	"chorus/internal/skill/approved"
	"chorus/internal/store"
	"chorus/internal/trust"
)

// Handler implements the operations on skills.
type Handler struct {
	app      *service.Service
	sessions *service.Handler
}

// New returns a handler that uses another one for sessions and their messages.
func New(app *service.Service, sessions *service.Handler) *Handler { return &Handler{app, sessions} }

var _ operations.Skills = (*Handler)(nil)

// serverScope is the scope of MCP servers in lists.
const serverScope = "server"

// workedIn is how many of the newest threads are searched for folders, channels and agents with skills.
const workedIn = 200

// found is a skill or a server, as far as the caller may see it.
type found struct {
	skill  *approved.Skill
	server *approved.Server
}

func (f found) id() string {
	if f.server != nil {
		return f.server.ID
	}
	return f.skill.ID
}

func (f found) name() string {
	if f.server != nil {
		return f.server.Name
	}
	return f.skill.Name
}

func (f found) status() approved.Status {
	if f.server != nil {
		return f.server.Status
	}
	return f.skill.Status
}

func (f found) show() operations.Skill {
	if s := f.server; s != nil {
		out := operations.Skill{ID: s.ID, Name: s.Name, Kind: "mcp", Scope: serverScope, Status: string(s.Status), Digest: s.Digest, ApprovedBy: s.Record.By, ApprovedAt: s.Record.At}
		tools := 0
		for name := range s.Record.Files {
			if strings.HasPrefix(name, "tool ") {
				tools++
			}
		}
		out.Description = fmt.Sprintf("MCP server, %d tools seen", tools)
		if s.Pending > 0 {
			out.Problem = fmt.Sprintf("%d of its tools and files differ from what was approved", s.Pending)
		}
		return out
	}
	s := f.skill
	out := operations.Skill{ID: s.ID, Name: s.Name, Kind: "skill", Scope: s.Source.Scope, Status: string(s.Status), Description: s.Description, Path: s.Dir, AllowedTools: s.AllowedTools,
		Hidden: s.Hidden, Digest: s.Tree.Digest, Problem: s.Wrong}
	if s.Record.Digest != "" {
		out.ApprovedBy, out.ApprovedAt = s.Record.By, s.Record.At
	}
	if s.Behind != "" {
		out.Problem = "the skill of this name in " + s.Behind + " counts"
	}
	out.Description = cmp.Or(out.Description, out.Problem)
	return out
}

// lookFor finds the skills of a place, or of every known place, and the servers.
func (o *Handler) lookFor(ctx context.Context, by operation.Caller, in operations.SkillPlace) ([]found, error) {
	wheres, err := o.skillPlaces(ctx, by, in)
	if err != nil {
		return nil, err
	}
	admin := by.May(operation.Admin)
	var out []found
	at := map[string]int{}
	for _, where := range wheres {
		list, _ := o.app.Setup.Skills.Find(where)
		for _, s := range list {
			if !admin && s.Status != approved.On {
				continue
			}
			if i, again := at[s.ID]; again {
				if out[i].skill.Status == approved.Overridden { // it may apply elsewhere
					out[i] = found{skill: &s}
				}
				continue
			}
			at[s.ID] = len(out)
			out = append(out, found{skill: &s})
		}
	}
	if admin && in.Session == "" {
		for _, s := range o.app.Setup.Skills.Servers() {
			out = append(out, found{server: &s})
		}
	}
	return out, nil
}

// skillPlaces are where to look for skills. Only an admin may look into any folder.
func (o *Handler) skillPlaces(ctx context.Context, by operation.Caller, in operations.SkillPlace) ([]skill.Where, error) {
	setup := o.app.Setup
	switch {
	case in.Session != "":
		row, err := o.sessions.Find(ctx, by, in.Session)
		if err != nil {
			return nil, err
		}
		return []skill.Where{setup.SkillsAt(row.ID, row.Dir)}, nil
	case in.Workspace != "" && !filepath.IsAbs(in.Workspace):
		return nil, operation.InvalidField("workspacePath", "%.200q is not an absolute path", in.Workspace)
	case in.Workspace != "" || in.Agent != "":
		if in.Workspace != "" && !by.May(operation.Admin) {
			if err := o.sessions.CheckPlace("", in.Workspace); err != nil {
				return nil, err
			}
		}
		where := setup.SkillsAt("", in.Workspace)
		if in.Agent != "" {
			if !chat.ValidAgentName(in.Agent) {
				return nil, operation.InvalidField("agent", "%.64q cannot be an agent's name", in.Agent)
			}
			where.Agent = o.app.Home.AgentDir(in.Agent)
		}
		return []skill.Where{where}, nil
	}
	out := []skill.Where{setup.SkillsAt("", "")}
	if here, err := chat.ParseThreadID(by.Here + ":any"); by.Here != "" && err == nil {
		out = append(out, setup.SkillsAt(here, ""))
	}
	rows, err := o.app.DB.Threads(ctx, store.ThreadFilter{Limit: workedIn})
	if err != nil {
		return nil, err
	}
	seen := map[skill.Where]bool{}
	for _, row := range rows {
		if where := setup.SkillsAt(row.ID, row.Dir); by.Sees(row.ID, row.Owner) && !seen[where] {
			seen[where] = true
			out = append(out, where)
		}
	}
	return out, nil
}

// ListSkills implements the operation of that name.
func (o *Handler) ListSkills(ctx context.Context, by operation.Caller, in operations.SkillQuery) (out operation.List[operations.Skill], err error) {
	list, err := o.lookFor(ctx, by, in.SkillPlace)
	for _, f := range list {
		if in.Status == "" || in.Status == string(f.status()) {
			out.Items = append(out.Items, f.show())
		}
	}
	return out, err
}

// findSkill finds the named skill. If several have the name, it is the one that applies in the place, or the only one that needs approval.
func (o *Handler) findSkill(ctx context.Context, by operation.Caller, name string, in operations.SkillPlace, waits bool) (found, error) {
	list, err := o.lookFor(ctx, by, in)
	if err != nil {
		return found{}, err
	}
	var named []found
	for _, f := range list {
		if f.id() == name {
			return f, nil
		}
		if f.name() == name {
			named = append(named, f)
		}
	}
	several := named
	if len(named) > 1 {
		named = slices.DeleteFunc(slices.Clone(named), func(f found) bool {
			if waits {
				return f.status() == approved.On || f.status() == approved.Overridden || f.status() == approved.Broken
			}
			return f.status() != approved.On
		})
	}
	switch {
	case len(several) == 0 && in != (operations.SkillPlace{}) && by.May(operation.Admin) && isID(name): // an id is the same everywhere
		return o.findSkill(ctx, by, name, operations.SkillPlace{}, waits)
	case len(several) == 0:
		return found{}, operation.Errorf(operation.NotFound, "there is no skill %.128q; `chorus skill list` lists them", name)
	case len(named) != 1:
		var ids []string
		for _, f := range several {
			ids = append(ids, fmt.Sprintf("%s (%s, %s)", f.id(), f.show().Scope, f.status()))
		}
		return found{}, operation.Errorf(operation.Conflict, "%d are called %s; choose one by its id: %s", len(several), name, strings.Join(ids, ", "))
	}
	return named[0], nil
}

// isID reports whether a name may be an id.
func isID(name string) bool {
	return len(name) == len(approved.ShortID("")) && strings.Trim(name, "0123456789abcdef") == ""
}

// GetSkill implements the operation of that name.
func (o *Handler) GetSkill(ctx context.Context, by operation.Caller, in operations.SkillRef) (operations.SkillDetail, error) {
	f, err := o.findSkill(ctx, by, in.Name, in.SkillPlace, false)
	if err != nil {
		return operations.SkillDetail{}, err
	}
	out := operations.SkillDetail{Skill: f.show(), Files: []operations.SkillFile{}}
	out.ApprovedName = o.app.NameOf(ctx, out.ApprovedBy)
	if f.server != nil {
		for _, name := range slices.Sorted(maps.Keys(f.server.Record.Files)) {
			out.Files = append(out.Files, operations.SkillFile{Path: name, Digest: f.server.Record.Files[name]})
		}
		return out, nil
	}
	s := f.skill
	out.License, out.Compatibility, out.ArgumentHint, out.Metadata, out.Remarks = s.License, s.Compatibility, s.ArgumentHint, s.Metadata, s.Remarks
	out.Body = approved.Visible(s.Body)
	for _, e := range s.Tree.Entries {
		out.Files = append(out.Files, operations.SkillFile{Path: e.Path, Size: e.Size, Exec: e.Exec, Link: e.Link, Digest: e.Sum})
	}
	return out, nil
}

// DiffSkill implements the operation of that name.
func (o *Handler) DiffSkill(ctx context.Context, by operation.Caller, in operations.SkillRef) (operations.SkillDiff, error) {
	f, err := o.findSkill(ctx, by, in.Name, in.SkillPlace, true)
	if err != nil {
		return operations.SkillDiff{}, err
	}
	out := operations.SkillDiff{Skill: f.show(), Changes: []operations.SkillChange{}}
	var changes []trust.Change
	if f.server != nil {
		changes = o.app.Setup.Skills.ServerChanges(*f.server)
	} else {
		if changes, err = o.app.Setup.Skills.Changes(*f.skill); err != nil {
			return out, skillError(f, err)
		}
		out.InsteadOf = o.displaced(ctx, by, in.SkillPlace, f)
	}
	for _, c := range changes {
		out.Changes = append(out.Changes, operations.SkillChange{Path: approved.Visible(c.Path), How: c.How, Diff: c.Diff})
	}
	return out, nil
}

// displaced returns the active skills of the same name, which an approved one may replace.
func (o *Handler) displaced(ctx context.Context, by operation.Caller, in operations.SkillPlace, f found) []string {
	list, err := o.lookFor(ctx, by, in)
	if err != nil {
		return nil
	}
	var out []string
	for _, other := range list {
		if other.skill != nil && other.name() == f.name() && other.id() != f.id() && other.status() == approved.On {
			out = append(out, other.skill.Dir)
		}
	}
	return out
}

func skillError(f found, err error) error {
	switch {
	case errors.Is(err, approved.ErrMoved), errors.Is(err, approved.ErrBroken), errors.Is(err, approved.ErrNothing):
		return operation.Errorf(operation.Conflict, "%s: %s", f.name(), err)
	}
	return err
}

// ApproveSkill implements the operation of that name.
func (o *Handler) ApproveSkill(ctx context.Context, by operation.Caller, in operations.SkillApproval) (operations.Skill, error) {
	f, err := o.findSkill(ctx, by, in.Name, in.SkillPlace, true)
	if err != nil {
		return operations.Skill{}, err
	}
	who := by.Principal.String()
	if f.server != nil {
		err = o.app.Setup.Skills.ApproveServer(*f.server, in.Digest, who)
	} else {
		err = o.app.Setup.Skills.Approve(*f.skill, in.Digest, who)
	}
	if err != nil {
		return operations.Skill{}, skillError(f, err)
	}
	return o.changedSkill(ctx, by, in.SkillPlace, f, "skill approve", in.Digest)
}

// DisableSkill implements the operation of that name.
func (o *Handler) DisableSkill(ctx context.Context, by operation.Caller, in operations.SkillRef) (operations.Skill, error) {
	f, err := o.findSkill(ctx, by, in.Name, in.SkillPlace, false)
	if err != nil {
		return operations.Skill{}, err
	}
	who := by.Principal.String()
	if f.server != nil {
		err = o.app.Setup.Skills.DisableServer(*f.server, who)
	} else {
		err = o.app.Setup.Skills.Disable(*f.skill, who)
	}
	if err != nil {
		return operations.Skill{}, skillError(f, err)
	}
	return o.changedSkill(ctx, by, in.SkillPlace, f, "skill disable", "")
}

// changedSkill records who has decided, and returns the new state.
func (o *Handler) changedSkill(ctx context.Context, by operation.Caller, in operations.SkillPlace, f found, action, digest string) (operations.Skill, error) {
	detail := f.name()
	if f.skill != nil {
		detail = f.skill.Dir
	}
	if digest != "" {
		detail += "; sha256 " + digest
	}
	if err := o.app.Gate.RecordDecision(ctx, by.Principal, action, detail); err != nil {
		return operations.Skill{}, err
	}
	now, err := o.findSkill(ctx, by, f.id(), in, false)
	if err != nil {
		return operations.Skill{}, err
	}
	return now.show(), nil
}

// CallSkill implements the operation of that name.
func (o *Handler) CallSkill(ctx context.Context, by operation.Caller, in operations.SkillCall) (operations.Said, error) {
	list, err := o.lookFor(ctx, by, operations.SkillPlace{Session: in.Session})
	if err != nil {
		return operations.Said{}, err
	}
	at := slices.IndexFunc(list, func(f found) bool {
		return f.skill != nil && f.name() == in.Name && f.status() == approved.On && !f.skill.Internal
	})
	if at < 0 {
		return operations.Said{}, operation.Errorf(operation.NotFound, "there is no skill %.64q that is on in this session; `chorus skill list --session %.64s` lists them", in.Name, in.Session)
	}
	return o.sessions.Say(ctx, by, operations.Message{ID: in.Session, Message: strings.TrimSpace("/" + in.Name + " " + in.Text), Key: in.Key})
}
