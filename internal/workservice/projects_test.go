package workservice_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
	"chorus/internal/workservice"
)

var (
	linus   = caller(chat.TokenHolder, "linus", operation.Chat)
	discord = caller("discord", "77", operation.Chat)
)

func TestProjectsAreMadeOfNames(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	// 2: the id is the name in kebab case, and there is a folder.
	made := must[operations.Project](h, root, "create_project", `{"name":"My Web App"}`)
	if info, err := os.Stat(made.Workspace); made.ID != "my-web-app" || err != nil || !info.IsDir() || made.Weight != 1 || made.MaxRuns != 2 {
		t.Errorf("%+v, %v", made, err)
	}
	h.refused(root, operation.Conflict, "there is a project my-web-app already", "create_project", `{"name":"my web app"}`)
	// Names that would lead elsewhere become names that do not, or none.
	for name, id := range map[string]string{"../../etc": "etc", `..\\..\\x`: "x", "Über Größe": "über-größe", "a/b/c": "a-b-c", "It's mine": "its-mine", strings.Repeat("long ", 18): ""} {
		got := must[operations.Project](h, root, "create_project", `{"name":"`+name+`"}`)
		if id != "" && got.ID != id || strings.ContainsAny(got.ID, `/\. `) || len(got.ID) > 64 || filepath.Dir(got.Workspace) != filepath.Dir(made.Workspace) {
			t.Errorf("%q is %q at %s", name, got.ID, got.Workspace)
		}
	}
	for _, name := range []string{"", "!!!", "../.."} {
		h.refused(root, operation.Invalid, "", "create_project", `{"name":"`+name+`"}`)
	}
	// 5
	h.refused(root, operation.Invalid, "No fields to update", "edit_project", `{"project_id":"my-web-app"}`)
	if got := must[operations.Project](h, root, "edit_project", `{"project_id":"my-web-app","name":"Other","credit_weight":3}`); got.ID != "my-web-app" || got.Name != "Other" || got.Weight != 3 {
		t.Errorf("%+v", got)
	}
	h.refused(root, "", "max_concurrent_agents: it does not fit", "edit_project", `{"project_id":"my-web-app","max_concurrent_agents":"x"}`)
	if got := must[operations.Project](h, root, "pause_project", `{"project_id":"my-web-app"}`); got.Status != "PAUSED" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.Project](h, root, "resume_project", `{"project_id":"my-web-app"}`); got.Status != "ACTIVE" {
		t.Errorf("%+v", got)
	}
	h.refused(root, operation.NotFound, "Project 'nope' not found; `list_projects` shows those there are", "pause_project", `{"project_id":"nope"}`)
}

func TestDeletingAProject(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	task := must[operations.Task](h, root, "create_task", `{"title":"Do it","project_id":"site"}`)
	h.move(task.ID, work.InProgress)
	// 7
	h.refused(root, operation.Conflict, "Cannot delete: 1 task(s) currently IN_PROGRESS. Stop them first.", "delete_project", `{"project_id":"site"}`)
	must[operations.Project](h, root, "get_project", `{"project_id":"site"}`)
	h.move(task.ID, work.Blocked)
	must[operations.ProjectChannel](h, root, "set_project_channel", `{"project_id":"site","channel_id":"123"}`)
	// 8: what went says which channel is to be archived; files stay.
	gone := must[operations.DeletedProject](h, root, "delete_project", `{"project_id":"site","archive_channels":true}`)
	if gone.ID != "site" || gone.Name != "Site" || gone.Channel != "123" || !gone.Archive {
		t.Errorf("%+v", gone)
	}
	if _, err := os.Stat(h.dir.ProjectNotes("site")); err != nil {
		t.Error(err)
	}
	h.refused(root, operation.NotFound, "Project 'site' not found", "get_project", `{"project_id":"site"}`)
	h.refused(root, operation.NotFound, "not found", "get_task", `{"task_id":"`+task.ID+`"}`)
}

func TestChannelsOfProjects(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	must[operations.Project](h, root, "create_project", `{"name":"Other"}`)
	must[operations.ProjectChannel](h, root, "set_project_channel", `{"project_id":"site","channel_id":"123"}`)
	// 11
	if got := must[operations.ChannelProject](h, root, "get_project_for_channel", `{"channel_id":"123"}`); got.ID != "site" || got.Name != "Site" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.ChannelProject](h, root, "get_project_for_channel", `{"channel_id": 123 }`); got.ID != "site" || got.Channel != "123" {
		t.Errorf("by a number: %+v", got)
	}
	// 10: nobody here knows channels by their names.
	h.refused(root, operation.Invalid, "Cannot resolve channel name", "set_control_interface", `{"project_id":"site","channel_name":"#site"}`)
	if got := must[operations.ChannelProject](h, root, "get_project_for_channel", `{"channel_id":"9"}`); got.ID != "" {
		t.Errorf("%+v", got)
	}
	h.refused(root, operation.Conflict, "belongs to project site", "set_project_channel", `{"project_id":"other","channel_id":"123"}`)
	// A conversation in the channel is about its project.
	here := discord
	here.Here = "discord:1/123"
	h.refused(here, operation.NotFound, "Project 'site' not found", "get_project", `{}`)
	must[operations.Project](h, root, "edit_project", `{"project_id":"site","shared":true}`)
	if got := must[operations.Project](h, here, "get_project", `{}`); got.ID != "site" {
		t.Errorf("%+v", got)
	}
	// So is what an agent asks for there, of which only the conversation is known.
	if got := must[operations.Project](h, inSession(discord, "discord:1/123:5@dispatcher"), "get_project", `{}`); got.ID != "site" {
		t.Errorf("%+v", got)
	}
}

func TestTheActiveProjectBelongsToTheConversation(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	must[operations.Project](h, root, "create_project", `{"name":"Other"}`)
	one, two := inSession(root, "cli:here:1@main"), inSession(root, "cli:here:2@main")
	// 14, without one
	h.refused(one, operation.Invalid, "project_id is required (no active project set)", "create_task", `{"title":"x"}`)
	h.refused(root, operation.Invalid, "belongs to a conversation", "set_active_project", `{"project_id":"site"}`)
	must[operations.ActiveProject](h, one, "set_active_project", `{"project_id":"site"}`)
	must[operations.ActiveProject](h, two, "set_active_project", `{"project_id":"other"}`)
	// 14, with one: each conversation has its own.
	if a, b := must[operations.Task](h, one, "create_task", `{"title":"a"}`), must[operations.Task](h, two, "create_task", `{"title":"b"}`); a.ProjectID != "site" || b.ProjectID != "other" {
		t.Errorf("%s, %s", a.ProjectID, b.ProjectID)
	}
	if got := must[operations.Task](h, one, "create_task", `{"title":"Mend the page of other"}`); !strings.Contains(got.Warning, "project_id other") {
		t.Errorf("%q", got.Warning)
	}
	note, err := h.Note(t.Context(), "cli:here:1@main")
	if err != nil || !strings.HasPrefix(note, "ACTIVE PROJECT: `site`.\nUse this as the default project_id") {
		t.Errorf("%q, %v", note, err)
	}
	// 13: an unknown one changes nothing; none clears it.
	h.refused(one, operation.NotFound, "Project 'nope' not found", "set_active_project", `{"project_id":"nope"}`)
	if got := must[operations.Project](h, one, "get_project", `{}`); got.ID != "site" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.ActiveProject](h, one, "set_active_project", `{}`); got.Message != "Active project cleared" || got.ID != "" {
		t.Errorf("%+v", got)
	}
	h.refused(one, operation.Invalid, "no active project set", "get_project", `{}`)
}

func TestRepositoriesAreChecked(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	// 28
	h.refused(root, operation.Invalid, "Clone repos require a 'url' parameter", "add_repo", `{"project_id":"site","source":"clone"}`)
	h.refused(root, operation.Invalid, "Link repos require a 'path' parameter", "add_repo", `{"project_id":"site","source":"link"}`)
	h.refused(root, operation.Invalid, "does not exist or is not a directory", "add_repo", `{"project_id":"site","source":"link","path":"/no/such"}`)
	h.refused(root, operation.Invalid, "is not a git repository", "add_repo", `{"project_id":"site","source":"link","path":"`+h.tmp+`"}`)
	h.refused(root, operation.Invalid, "there are clone, link, init", "add_repo", `{"project_id":"site","source":"bogus"}`)
	// 29
	if got := must[operations.Repo](h, root, "add_repo", `{"project_id":"site","source":"clone","url":"https://x/foo.git"}`); got.ID != "foo" {
		t.Errorf("%+v", got)
	}
	h.refused(root, operation.Conflict, "has a repository foo already", "add_repo", `{"project_id":"site","source":"init","name":"Foo"}`)
	must[operations.Project](h, root, "edit_project", `{"project_id":"site","shared":true}`)
	h.refused(grace, operation.Forbidden, "this folder is not yours", "add_repo", `{"project_id":"site","source":"link","path":"`+dir+`","name":"again"}`)
	h.refused(grace, operation.Invalid, "only public addresses", "add_repo", `{"project_id":"site","source":"clone","url":"http://10.0.0.1/x.git"}`)
	if got := must[operation.List[operations.Repo]](h, grace, "list_repos", `{"project_id":"site"}`); len(got.Items) != 2 {
		t.Errorf("%+v", got)
	}
}

// Who sees a project gives it tasks; who it belongs to deletes it and says who sees it; the others do not know that it is there.
func TestWhoseProjectItIs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	must[operations.Project](h, grace, "create_project", `{"name":"Hers"}`)
	task := must[operations.Task](h, grace, "create_task", `{"title":"x","project_id":"hers"}`)
	for _, call := range [][2]string{
		{"get_project", `{"project_id":"hers"}`}, {"edit_project", `{"project_id":"hers","name":"y"}`}, {"pause_project", `{"project_id":"hers"}`}, {"delete_project", `{"project_id":"hers"}`},
		{"create_task", `{"title":"y","project_id":"hers"}`}, {"get_task", `{"task_id":"` + task.ID + `"}`}, {"stop_task", `{"task_id":"` + task.ID + `"}`}, {"delete_task", `{"task_id":"` + task.ID + `"}`},
		{"write_note", `{"project_id":"hers","title":"a","content":"b"}`}, {"list_notes", `{"project_id":"hers"}`}, {"get_git_status", `{"project_id":"hers"}`}, {"list_tasks", `{"project_id":"hers"}`},
		{"get_token_usage", `{"project_id":"hers"}`}, {"get_recent_events", `{"project_id":"hers"}`}, {"get_chain_health", `{"project_id":"hers"}`}, {"set_project_channel", `{"project_id":"hers","channel_id":"1"}`},
	} {
		h.refused(linus, operation.NotFound, "not found", call[0], call[1])
	}
	if got := must[operation.List[operations.Project]](h, linus, "list_projects", `{}`); len(got.Items) != 0 {
		t.Errorf("%+v", got)
	}
	if got := must[operations.WorkStatus](h, linus, "get_status", `{}`); got.Projects != 0 || got.Total != 0 {
		t.Errorf("%+v", got)
	}
	if got := must[operation.List[operations.WorkEvent]](h, linus, "get_recent_events", `{}`); len(got.Items) != 0 {
		t.Errorf("%+v", got)
	}
	if got := must[operation.List[operations.Task]](h, root, "list_tasks", `{}`); len(got.Items) != 1 {
		t.Errorf("who runs this Chorus sees all: %+v", got)
	}
	// Whose token only reads changes nothing.
	h.refused(reader, operation.Forbidden, "scope chat", "create_task", `{"title":"y","project_id":"hers"}`)
	must[operations.Project](h, reader, "get_project", `{"project_id":"hers"}`)
	must[operations.Project](h, grace, "edit_project", `{"project_id":"hers","shared":true}`)
	must[operations.Task](h, linus, "create_task", `{"title":"y","project_id":"hers"}`)
	h.refused(linus, operation.Forbidden, "is not yours", "delete_project", `{"project_id":"hers"}`)
	h.refused(linus, operation.Forbidden, "only the owner", "edit_project", `{"project_id":"hers","shared":false}`)
	h.refused(grace, operation.Forbidden, "scope admin", "set_task_status", `{"task_id":"`+task.ID+`","status":"COMPLETED"}`)
	h.refused(grace, operation.Forbidden, "scope admin", "orchestrator_control", `{"action":"pause"}`)
	// One that is made on a chat platform is everybody's there.
	if got := must[operations.Project](h, discord, "create_project", `{"name":"Ours"}`); !got.Shared {
		t.Errorf("%+v", got)
	}
	h.refused(operation.Caller{}, operation.Unsigned, "", "list_projects", `{}`)
}

// 4: whether a project gets a channel is what was said, and where nothing was said, or null, what the configuration says.
func TestProjectsGetChannelsByDefault(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{true, false} {
		h := newHome(t)
		h.Handler = workservice.New(workservice.Options{Projects: h.queue, Tasks: h.queue, Memos: h.db, Home: h.dir, Now: func() time.Time { return h.now }, AutoChannels: auto})
		h.Local = operation.NewLocal(operation.LocalOptions{Handlers: []any{h.Handler}, Operations: operations.All()})
		there := caller("discord", "7", operation.Chat)
		there.Here = "discord:1/2"
		for i, c := range []struct {
			by   operation.Caller
			args string
			want bool
		}{
			{there, ``, auto}, {there, `,"auto_create_channels":null`, auto}, {there, `,"auto_create_channels":false`, false}, {there, `,"auto_create_channels":true`, true},
			{inSession(grace, "discord:1/2:3@main"), ``, auto},
			{grace, ``, false}, // asked for nowhere in particular
		} {
			p := must[operations.Project](h, c.by, "create_project", fmt.Sprintf(`{"name":"P%d"%s}`, i, c.args))
			wish, err := h.db.Recall(t.Context(), work.MemoWantedChannel, p.ID)
			if err != nil || p.AutoChannels != c.want || len(wish) > 0 != c.want {
				t.Errorf("configured %v, said %q: %v, wish %q, %v", auto, c.args, p.AutoChannels, wish, err)
			}
		}
	}
}
