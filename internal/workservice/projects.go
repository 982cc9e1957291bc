package workservice

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// ListProjects implements the operation of the same name.
func (h *Handler) ListProjects(ctx context.Context, by operation.Caller, in operations.ProjectList) (operation.List[operations.Project], error) {
	out := operation.List[operations.Project]{Items: []operations.Project{}}
	if in.Cursor != "" && !isID(in.Cursor) {
		return out, operation.BadCursor()
	}
	list, err := h.o.Projects.Projects(ctx)
	if err != nil {
		return out, err
	}
	list = slices.DeleteFunc(list, func(p work.Project) bool { return !sees(by, p) })
	page := operation.PageByKey(list, func(p work.Project) string { return p.ID }, in.Cursor, in.Most())
	used, err := h.used(ctx)
	if err != nil {
		return out, err
	}
	for _, p := range page.Items {
		shown, err := h.show(ctx, p, used)
		if err != nil {
			return out, err
		}
		shown.Tasks = nil
		out.Items = append(out.Items, shown)
	}
	out.Next = page.Next
	return out, nil
}

// isID reports whether a text is an id made from a name.
func isID(text string) bool {
	id, err := work.IDOf(text)
	return err == nil && id == text
}

// used returns what each project has used in the window.
func (h *Handler) used(ctx context.Context) (map[string]int64, error) {
	spent, err := h.o.Projects.SpentBy(ctx, h.o.Now().Add(-window))
	used := map[string]int64{}
	for _, s := range spent {
		used[s.Project] = s.Tokens
	}
	return used, err
}

func (h *Handler) show(ctx context.Context, p work.Project, used map[string]int64) (operations.Project, error) {
	counts, err := h.o.Tasks.Count(ctx, p.ID)
	if err != nil {
		return operations.Project{}, err
	}
	out := operations.Project{ID: p.ID, Name: p.Name, Status: string(p.State), Weight: p.Weight, MaxRuns: p.MaxRuns, TokenLimit: p.TokenLimit, Tokens: used[p.ID], Channel: p.Channel,
		Owner: p.Owner.String(), OwnerName: h.names(ctx)(p.Owner.String()), Approvers: p.Approvers, ApproverNames: h.approverNames(ctx, p), OnConflict: cmp.Or(p.OnConflict, "ask"), Shared: p.Shared, Workspace: h.o.Home.Project(p.ID), Tasks: map[string]int{}, CreatedAt: p.Created}
	for state, n := range counts {
		out.Tasks[string(state)] = n
		if state != work.Completed {
			out.Open += n
		}
	}
	return out, nil
}

func (h *Handler) showWhole(ctx context.Context, p work.Project) (operations.Project, error) {
	used, err := h.used(ctx)
	if err != nil {
		return operations.Project{}, err
	}
	out, err := h.show(ctx, p, used)
	if err != nil {
		return out, err
	}
	repos, err := h.o.Projects.Repos(ctx, p.ID)
	for _, r := range repos {
		out.Repos = append(out.Repos, showRepo(r))
	}
	return out, err
}

// CreateProject implements the operation of the same name.
func (h *Handler) CreateProject(ctx context.Context, by operation.Caller, in operations.NewProject) (operations.Project, error) {
	id, err := work.IDOf(in.Name)
	if err != nil {
		return operations.Project{}, operation.InvalidField("name", "%s", err)
	}
	p := work.Project{ID: id, Name: strings.TrimSpace(in.Name), Weight: in.Weight, MaxRuns: in.MaxRuns, State: work.Active, Owner: by.Principal, Shared: by.Principal.Kind.OnPlatform()}
	p.Weight = cmp.Or(p.Weight, work.DefaultWeight)
	p.MaxRuns = cmp.Or(p.MaxRuns, work.DefaultMaxRuns)
	if in.Shared != nil {
		p.Shared = *in.Shared
	}
	var repo *work.Repo
	channels := false
	if in.Repo != "" {
		n := operations.NewRepo{Source: string(work.Clone), URL: in.Repo, Branch: in.Branch}
		if filepath.IsAbs(in.Repo) {
			n = operations.NewRepo{Source: string(work.Link), Path: in.Repo, Branch: in.Branch}
		}
		made, err := h.newRepo(ctx, by, p, n)
		if err != nil {
			return operations.Project{}, err
		}
		repo = &made
	}
	if _, err := h.o.Home.Ensure(h.o.Home.ProjectNotes(id)); err != nil {
		return operations.Project{}, err
	}
	if _, err := h.o.Projects.Project(ctx, id); errors.Is(err, journal.ErrUnknown) { // an existing project keeps its channel
		wanted, asked := h.channelWanted(by, in.Channels)
		if err := h.wantChannel(ctx, by, id, wanted, in.Board == "forum"); asked && err != nil {
			return operations.Project{}, err
		} else if err != nil { // by default; whoever may not have channels created gets a project without one
			wanted = false
		}
		channels = wanted
	}
	made, err := h.o.Projects.CreateProject(ctx, p)
	if err != nil {
		return operations.Project{}, err
	}
	if !made {
		before, err := h.o.Projects.Project(ctx, id)
		if err != nil {
			return operations.Project{}, err
		}
		if !sees(by, before) || in.Key == "" || before.Name != p.Name || before.Owner.String() != p.Owner.String() {
			return operations.Project{}, operation.Errorf(operation.Conflict, "there is a project %s already; give this one another name", id)
		}
		p = before // repeated after a lost response
	}
	if repo != nil {
		if _, err := h.o.Projects.AddRepo(ctx, *repo, by.Principal.String()); err != nil {
			return operations.Project{}, err
		}
	}
	kept, err := h.o.Projects.Project(ctx, id)
	if err != nil {
		return operations.Project{}, err
	}
	out, err := h.showWhole(ctx, kept)
	out.AutoChannels = channels
	return out, err
}

// GetProject implements the operation of the same name.
func (h *Handler) GetProject(ctx context.Context, by operation.Caller, in operations.ProjectRef) (operations.Project, error) {
	p, err := h.project(ctx, by, in.ID)
	if err != nil {
		return operations.Project{}, err
	}
	return h.showWhole(ctx, p)
}

// EditProject implements the operation of the same name.
func (h *Handler) EditProject(ctx context.Context, by operation.Caller, in operations.ProjectChanges) (operations.Project, error) {
	var fields []string
	return h.changeProject(ctx, by, in.ID, func(p *work.Project) (work.Event, error) {
		fields = nil
		if in.Name != "" {
			p.Name, fields = in.Name, append(fields, "name")
		}
		if in.Weight != nil {
			p.Weight, fields = *in.Weight, append(fields, "credit_weight")
		}
		if in.MaxRuns != nil {
			p.MaxRuns, fields = *in.MaxRuns, append(fields, "max_concurrent_agents")
		}
		if in.TokenLimit != nil {
			p.TokenLimit, fields = *in.TokenLimit, append(fields, "budget_limit")
		}
		if in.Shared != nil {
			if !manages(by, *p) {
				return work.Event{}, operation.Errorf(operation.Forbidden, "only the owner of project %s may change who sees it", p.ID)
			}
			p.Shared, fields = *in.Shared, append(fields, "shared")
		}
		if in.Approvers != "" {
			if !manages(by, *p) {
				return work.Event{}, operation.Errorf(operation.Forbidden, "only the owner of project %s may change who may approve its tasks", p.ID)
			}
			list, err := work.ParseApprovers(in.Approvers)
			if err != nil {
				return work.Event{}, operation.InvalidField("approvers", "%s", err)
			}
			p.Approvers, fields = list, append(fields, "approvers: "+cmp.Or(strings.Join(list, ", "), work.Anyone))
		}
		if in.OnConflict != "" {
			if p.OnConflict = work.ConflictAsks; in.OnConflict == work.ConflictTask {
				p.OnConflict = work.ConflictTask
			}
			fields = append(fields, "on_conflict")
		}
		if len(fields) == 0 {
			return work.Event{}, operation.InvalidField("", "No fields to update. Provide name, credit_weight, max_concurrent_agents, budget_limit, shared, approvers or on_conflict.")
		}
		return work.Event{Type: "project.edited", Text: strings.Join(fields, ", ")}, nil
	})
}

// PauseProject implements the operation of the same name.
func (h *Handler) PauseProject(ctx context.Context, by operation.Caller, in operations.ProjectRef) (operations.Project, error) {
	return h.changeProject(ctx, by, in.ID, func(p *work.Project) (work.Event, error) {
		p.State = work.ProjectPaused
		return work.Event{Type: "project.paused"}, nil
	})
}

// ResumeProject implements the operation of the same name.
func (h *Handler) ResumeProject(ctx context.Context, by operation.Caller, in operations.ProjectRef) (operations.Project, error) {
	return h.changeProject(ctx, by, in.ID, func(p *work.Project) (work.Event, error) {
		p.State = work.Active
		return work.Event{Type: "project.resumed"}, nil
	})
}

func (h *Handler) changeProject(ctx context.Context, by operation.Caller, id string, change func(*work.Project) (work.Event, error)) (operations.Project, error) {
	p, err := h.project(ctx, by, id)
	if err != nil {
		return operations.Project{}, err
	}
	p, err = h.o.Projects.ChangeProject(ctx, p.ID, func(p *work.Project) (work.Event, error) {
		e, err := change(p)
		e.By = by.Principal.String()
		return e, err
	})
	if err != nil {
		return operations.Project{}, err
	}
	h.changed()
	return h.showWhole(ctx, p)
}

// DeleteProject implements the operation of the same name.
func (h *Handler) DeleteProject(ctx context.Context, by operation.Caller, in operations.ProjectDeletion) (operations.DeletedProject, error) {
	p, err := h.project(ctx, by, in.ID)
	if err != nil {
		return operations.DeletedProject{}, err
	}
	if !manages(by, p) {
		return operations.DeletedProject{}, operation.Errorf(operation.Forbidden, "project %s is not yours; its owner can delete it", p.ID)
	}
	if in.Archive && p.Channel != "" {
		if err := h.wantArchive(ctx, by, p); err != nil {
			return operations.DeletedProject{}, err
		}
	}
	err = h.o.Projects.DeleteProject(ctx, p.ID, by.Principal.String(), func(running int) error {
		if running > 0 {
			return operation.Errorf(operation.Conflict, "Cannot delete: %d task(s) currently IN_PROGRESS. Stop them first.", running)
		}
		return nil
	})
	h.changed()
	return operations.DeletedProject{ID: p.ID, Name: p.Name, Channel: p.Channel, Archive: in.Archive && p.Channel != ""}, err
}

// SetActiveProject implements the operation of the same name.
func (h *Handler) SetActiveProject(ctx context.Context, by operation.Caller, in operations.ActiveProjectChoice) (operations.ActiveProject, error) {
	session := cmp.Or(string(by.Session), by.Here)
	if session == "" {
		return operations.ActiveProject{}, operation.InvalidField("session", "an active project belongs to a conversation; ask for it in one")
	}
	if in.ID == "" {
		return operations.ActiveProject{Message: "Active project cleared"}, h.o.Memos.Remember(ctx, activeProject, session, nil)
	}
	p, err := h.project(ctx, by, in.ID)
	if err != nil {
		return operations.ActiveProject{}, err
	}
	return operations.ActiveProject{ID: p.ID, Name: p.Name}, h.o.Memos.Remember(ctx, activeProject, session, []byte(p.ID))
}

// SetProjectChannel implements the operation of the same name.
func (h *Handler) SetProjectChannel(ctx context.Context, by operation.Caller, in operations.ProjectChannelLink) (operations.ProjectChannel, error) {
	if in.Channel != "" && h.o.Channels != nil {
		if err := h.o.Channels.CheckChannel(ctx, by, in.Channel); err != nil {
			return operations.ProjectChannel{}, err
		}
	}
	if in.Channel != "" {
		other, err := h.o.Projects.OfChannel(ctx, in.Channel)
		if err := hideUnknown(err); err != nil {
			return operations.ProjectChannel{}, err
		}
		if err == nil && other.ID != in.ID {
			return operations.ProjectChannel{}, operation.Errorf(operation.Conflict, "channel %s belongs to project %s; remove it there first", in.Channel, other.ID)
		}
	}
	p, err := h.changeProject(ctx, by, in.ID, func(p *work.Project) (work.Event, error) {
		p.Channel = in.Channel
		return work.Event{Type: "project.channel", Text: in.Channel}, nil
	})
	return operations.ProjectChannel{ID: p.ID, Channel: p.Channel}, err
}

// GetProjectChannels implements the operation of the same name.
func (h *Handler) GetProjectChannels(ctx context.Context, by operation.Caller, in operations.ProjectRef) (operations.ProjectChannel, error) {
	p, err := h.project(ctx, by, in.ID)
	return operations.ProjectChannel{ID: p.ID, Channel: p.Channel}, err
}

// GetProjectForChannel implements the operation of the same name.
func (h *Handler) GetProjectForChannel(ctx context.Context, by operation.Caller, in operations.ChannelRef) (operations.ChannelProject, error) {
	p, err := h.o.Projects.OfChannel(ctx, in.Channel)
	if hideUnknown(err) != nil {
		return operations.ChannelProject{}, err
	}
	if err != nil || !sees(by, p) {
		return operations.ChannelProject{Channel: in.Channel}, nil
	}
	return operations.ChannelProject{Channel: in.Channel, ID: p.ID, Name: p.Name}, nil
}

// AddRepo implements the operation of the same name.
func (h *Handler) AddRepo(ctx context.Context, by operation.Caller, in operations.NewRepo) (operations.Repo, error) {
	p, err := h.project(ctx, by, in.Project)
	if err != nil {
		return operations.Repo{}, err
	}
	r, err := h.newRepo(ctx, by, p, in)
	if err != nil {
		return operations.Repo{}, err
	}
	added, err := h.o.Projects.AddRepo(ctx, r, by.Principal.String())
	if err != nil {
		return operations.Repo{}, err
	}
	if !added && in.Key != "" { // repeated after a lost response
		repos, err := h.o.Projects.Repos(ctx, p.ID)
		if err != nil {
			return operations.Repo{}, err
		}
		for _, there := range repos {
			if there.ID == r.ID && there.Kind == r.Kind && there.URL == r.URL {
				return showRepo(there), nil
			}
		}
	}
	if !added {
		return operations.Repo{}, operation.Errorf(operation.Conflict, "project %s has a repository %s already; give this one another name", p.ID, r.ID)
	}
	return showRepo(r), nil
}

// newRepo checks the source of a new repository.
func (h *Handler) newRepo(ctx context.Context, by operation.Caller, p work.Project, in operations.NewRepo) (work.Repo, error) {
	r := work.Repo{Project: p.ID, Kind: work.RepoKind(in.Source), URL: in.URL, Branch: in.Branch}
	name := in.Name
	switch r.Kind {
	case work.Clone:
		if in.URL == "" {
			return r, operation.InvalidField("url", "Clone repos require a 'url' parameter")
		}
		if !by.May(operation.Admin) {
			if err := h.o.CheckURL(ctx, in.URL); err != nil {
				return r, operation.InvalidField("url", "%s", err)
			}
		}
		name = cmp.Or(name, strings.TrimSuffix(path.Base(strings.ReplaceAll(strings.TrimRight(in.URL, "/"), ":", "/")), ".git"))
	case work.Link:
		if in.Path == "" {
			return r, operation.InvalidField("path", "Link repos require a 'path' parameter")
		}
		dir, err := filepath.Abs(in.Path)
		if err != nil {
			return r, err
		}
		if !by.May(operation.Admin) {
			if err := h.o.CheckPlace(dir); err != nil {
				return r, &operation.Error{Kind: operation.Forbidden, Message: err.Error(), Field: "path", Err: err}
			}
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return r, operation.InvalidField("path", "Path '%s' does not exist or is not a directory", in.Path)
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); errors.Is(err, os.ErrNotExist) {
			return r, operation.InvalidField("path", "'%s' is not a git repository; run git init there, or use source init for a new one", in.Path)
		}
		r.Path = dir
		name = cmp.Or(name, filepath.Base(dir))
	case work.Init:
		name = cmp.Or(name, p.ID+"-repo")
	}
	id, err := work.IDOf(name)
	if err != nil {
		return r, operation.InvalidField("name", "%s", err)
	}
	r.ID = id
	if r.Kind != work.Link {
		r.Path = h.o.Home.ProjectRepo(p.ID, id)
	}
	return r, nil
}

func showRepo(r work.Repo) operations.Repo {
	return operations.Repo{ID: r.ID, Project: r.Project, Source: string(r.Kind), URL: r.URL, Path: r.Path, Branch: r.Branch}
}

// ListRepos implements the operation of the same name.
func (h *Handler) ListRepos(ctx context.Context, by operation.Caller, in operations.RepoQuery) (operation.List[operations.Repo], error) {
	out := operation.List[operations.Repo]{Items: []operations.Repo{}}
	visible, err := h.visible(ctx, by, in.Project)
	if err != nil {
		return out, err
	}
	repos, err := h.o.Projects.Repos(ctx, in.Project)
	if err != nil {
		return out, err
	}
	repos = slices.DeleteFunc(repos, func(r work.Repo) bool { return !slices.Contains(visible, r.Project) })
	page, err := operation.PageBehind(repos, func(r work.Repo) string { return r.Project + "/" + r.ID }, in.Cursor, in.Most())
	for _, r := range page.Items {
		out.Items = append(out.Items, showRepo(r))
	}
	out.Next = page.Next
	return out, err
}

// visible returns the ids of the projects that a caller may see: the named one, or all.
func (h *Handler) visible(ctx context.Context, by operation.Caller, id string) (ids []string, err error) {
	if id != "" {
		p, err := h.project(ctx, by, id)
		return []string{p.ID}, err
	}
	list, err := h.o.Projects.Projects(ctx)
	for _, p := range list {
		if sees(by, p) {
			ids = append(ids, p.ID)
		}
	}
	return ids, err
}
