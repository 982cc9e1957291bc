package pages

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// agentForm is what somebody has typed about an agent, with a preview.
type agentForm struct {
	New         bool
	BuiltIn     bool // it is built in and has no files yet
	Name        string
	Seen        string // the version that the form started from
	Prompt      string
	Locked      bool // the prompt contains a secret and is not shown, so it cannot be changed here
	Model       string
	Permissions string
	Named       bool     // it has only the named tools
	Tools       []string // named and in the list
	More        string   // named and not in the list, separated by commas
	Key         string

	Wrong    string
	Field    string // the field that is wrong
	Conflict string // how the form differs from what somebody else has saved meanwhile
	Choices  choices
	All      []operations.PreviewTool // available choices
	Preview  *operations.AgentPreview
	Docs     []operations.Doc
	Memory   []operations.MemoryFile // memory that the agent sees
	Skills   []operations.Skill      // skills that the agent has
}

func readAgentForm(r *http.Request) agentForm {
	get := func(name string) string {
		return strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
	}
	_, written := r.PostForm["prompt"]
	return agentForm{Locked: !written, Name: cmp.Or(r.PathValue("name"), get("name")), New: r.PathValue("name") == "", Seen: get("seen"), Prompt: get("prompt"), Model: get("model"), Permissions: get("permissions"),
		Named: get("which") == "some", Tools: r.PostForm["tools"], More: get("more"), Key: get("key")}
}

// formOfAgent returns the form of an existing agent.
func formOfAgent(a operations.AgentDetail) agentForm {
	return agentForm{Name: a.Name, Seen: a.Version, Prompt: a.OwnPrompt, Locked: a.Secret, Model: a.OwnModel, Permissions: cmp.Or(a.Permissions, "standard"), Named: len(a.OwnTools) > 0, Tools: a.OwnTools, Docs: a.Docs}
}

// prompt returns the typed prompt; nil: it is unchanged.
func (f agentForm) prompt() *string {
	if f.Locked {
		return nil
	}
	return &f.Prompt
}

// tools returns the names of the chosen tools, separated by commas; "": all.
func (f agentForm) tools() string {
	if !f.Named {
		return ""
	}
	names := slices.Clone(f.Tools)
	for name := range strings.SplitSeq(f.More, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// sort separates the tools in the list of choices from others, such as groups and those of MCP servers.
func (f *agentForm) sort() {
	known := func(name string) bool {
		return slices.ContainsFunc(f.All, func(t operations.PreviewTool) bool { return t.Name == name })
	}
	var there, more []string
	for name := range strings.SplitSeq(f.tools(), ",") {
		switch {
		case name == "":
		case known(name):
			there = append(there, name)
		default:
			more = append(more, name)
		}
	}
	f.Tools, f.More = there, strings.Join(more, ", ")
}

// toolChosen reports whether a tool is chosen.
func toolChosen(f agentForm, name string) bool { return slices.Contains(f.Tools, name) }

func (p *Pages) newAgent(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showAgentForm(w, r, by, agentForm{New: true, Name: r.URL.Query().Get("name"), Permissions: "standard"}, http.StatusOK)
}

func (p *Pages) editAgent(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	f, err := p.savedAgent(r, by, r.PathValue("name"))
	if err != nil {
		return err
	}
	return p.showAgentForm(w, r, by, f, http.StatusOK)
}

// savedAgent returns the form of an agent as saved. A built-in agent gets a form for creating it.
func (p *Pages) savedAgent(r *http.Request, by operation.Caller, name string) (agentForm, error) {
	a, err := operations.GetAgent.Call(r.Context(), p.Executor, by, operations.AgentRef{Name: name})
	if err != nil {
		return agentForm{}, err
	}
	if a.Version == "" {
		return agentForm{New: true, BuiltIn: true, Name: name, Prompt: a.SystemPrompt, Permissions: cmp.Or(a.Permissions, "standard")}, nil
	}
	return formOfAgent(a), nil
}

// saveAgent previews, changes or creates an agent.
func (p *Pages) saveAgent(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	f := readAgentForm(r)
	if r.PostFormValue("do") != "save" {
		return p.showAgentForm(w, r, by, f, http.StatusOK)
	}
	tools := f.tools()
	var err error
	if f.New {
		_, err = operations.CreateAgent.Call(r.Context(), p.Executor, by, operations.NewAgent{Name: f.Name, Model: f.Model, Permissions: f.Permissions, SystemPrompt: f.Prompt, Tools: tools, Key: f.Key})
	} else {
		_, err = operations.EditAgent.Call(r.Context(), p.Executor, by, operations.AgentEdit{Name: f.Name, Seen: f.Seen, Model: &f.Model, Permissions: &f.Permissions, SystemPrompt: f.prompt(), Tools: &tools})
	}
	if err == nil {
		return finishForm(w, r, "/agents/"+url.PathEscape(f.Name), "saved")
	}
	var known *operation.Error
	if fromScript(r) || !errors.As(err, &known) || known.Kind != operation.Invalid && known.Kind != operation.Conflict {
		return err
	}
	f.Wrong, f.Field = p.userMessage(err), known.Field
	if about, ok := known.About.(operations.AgentConflict); ok {
		f.Seen, f.Conflict = about.Version, about.Difference
		f.Wrong = "Somebody else saved this agent after you opened it. Your changes are not saved yet."
	} else if known.Kind == operation.Conflict {
		f.Field = "name"
	}
	return p.showAgentForm(w, r, by, f, statusOf(err))
}

// showAgentForm shows the form with its preview; our script asks for the preview alone.
func (p *Pages) showAgentForm(w http.ResponseWriter, r *http.Request, by operation.Caller, f agentForm, status int) error {
	every := ""
	name := cmp.Or(f.Name, "new-agent")
	draft := operations.AgentDraft{Name: name, Model: &f.Model, Permissions: &f.Permissions, SystemPrompt: f.prompt(), Tools: &every}
	whole, err := operations.PreviewAgent.Call(r.Context(), p.Executor, by, draft)
	if err == nil {
		f.All, f.Preview = everyTool(whole), &whole
		f.sort()
		if tools := f.tools(); tools != "" {
			draft.Tools = &tools
			var named operations.AgentPreview
			if named, err = operations.PreviewAgent.Call(r.Context(), p.Executor, by, draft); err == nil {
				f.Preview = &named
			}
		}
	}
	if err != nil && f.Wrong == "" {
		if operation.KindOf(err) != operation.Invalid {
			return err
		}
		f.Wrong, f.Preview = p.userMessage(err), nil
	}
	if fromScript(r) {
		var out bytes.Buffer
		if err := p.execute(&out, "agentform.html", "agent-preview", f); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, err := w.Write(out.Bytes())
		return err
	}
	f.Choices = p.choose(r, by)
	if !f.New && f.Docs == nil {
		if a, err := operations.GetAgent.Call(r.Context(), p.Executor, by, operations.AgentRef{Name: f.Name}); err == nil {
			f.Docs = a.Docs
		}
	}
	if !f.New || f.BuiltIn {
		f.Memory, f.Skills = p.knowledge(r, by, f.Name)
	}
	title := "New agent"
	if !f.New {
		title = "Edit " + f.Name
	}
	layout := p.layout(r, by, title)
	layout.Path = "/agents"
	layout.Script, layout.Style = "editor.js", "editor.css"
	return p.render(w, status, "agentform.html", map[string]any{"Layout": layout, "Form": f})
}

// knowledge is what an agent sees besides its prompt: existing memory, and the skills that it finds wherever it works.
// What cannot be listed now is left out.
func (p *Pages) knowledge(r *http.Request, by operation.Caller, agent string) (memory []operations.MemoryFile, skills []operations.Skill) {
	if files, err := operations.ListMemory.Call(r.Context(), p.Executor, by, operation.None{}); err == nil {
		memory = slices.DeleteFunc(files.Items, func(f operations.MemoryFile) bool { return f.Scope == "docs" })
	}
	if list, err := operations.ListSkills.Call(r.Context(), p.Executor, by, operations.SkillQuery{SkillPlace: operations.SkillPlace{Agent: agent}}); err == nil {
		skills = slices.DeleteFunc(list.Items, func(s operations.Skill) bool { return s.Kind != "skill" })
	}
	return memory, skills
}

// everyTool returns the tools that an agent can name, whether or not its profile allows them or it has to search for them.
func everyTool(p operations.AgentPreview) []operations.PreviewTool {
	out := slices.Clone(p.Tools)
	for _, name := range slices.Concat(p.Searched, p.Refused) {
		out = append(out, operations.PreviewTool{Name: name})
	}
	slices.SortFunc(out, func(a, b operations.PreviewTool) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(out, func(t operations.PreviewTool) bool { return t.Name == "find_tools" || t.Name == "use_tool" })
}

// addDoc opens the page of a new doc.
func (p *Pages) addDoc(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	doc := strings.Trim(strings.TrimSpace(r.PostFormValue("doc")), "/")
	if doc == "" {
		return operation.Errorf(operation.Invalid, "give the doc a name, such as style.md")
	}
	if !strings.HasSuffix(doc, ".md") {
		doc += ".md"
	}
	http.Redirect(w, r, "/memory?path="+url.QueryEscape("agents/"+r.PathValue("name")+"/docs/"+doc), http.StatusSeeOther)
	return nil
}
