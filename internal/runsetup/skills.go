package runsetup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/settings"
	"chorus/internal/skill"
	"chorus/internal/skill/approved"
	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp"
)

// SkillsAt returns where the skills of a place are looked for. If thread is "", only
// global skills and those of the folder count. dir may be "" as well.
func (s *Setup) SkillsAt(thread chat.ThreadID, dir string) skill.Where {
	where := skill.Where{Workspace: dir, Global: s.Home.Dir(), UserHome: s.Isolation.UserHome(), ConfigHome: s.Isolation.Env("XDG_CONFIG_HOME")}
	if where.ConfigHome == "" && where.UserHome != "" {
		where.ConfigHome = filepath.Join(where.UserHome, ".config")
	}
	if dir != "" {
		where.Repository = gitTop(dir)
	}
	transport, place, _, agent := thread.Parts()
	if transport != "" {
		where.Transport = filepath.Join(s.Home.Dir(), transport)
		where.Channel = filepath.Join(where.Transport, chat.EncodeSegment(settings.HomePlace(transport, place)))
	}
	if agent != "" {
		where.Agent = s.Home.AgentDir(agent)
	}
	return where
}

// gitTop returns the top of the repository that contains a folder, or "".
func gitTop(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// skillsNote is the index of the skills that are on. It is asked before every request. A model
// that has no tool for reading skills, or may not read them, is not told.
func (s *Setup) skillsNote(tools *chosen, withholds func(path string, link bool) bool) NoteSource {
	reads := slices.ContainsFunc(tools.Specs(), func(spec tool.Spec) bool { return spec.Name == "read" })
	return NoteSource{What: "skills", Gone: "There are no skills any more.", Text: func(_ context.Context, at NoteContext) (string, error) {
		if !reads {
			return "", nil
		}
		looked, err := s.Skills.View(at.Toolbox.skills)
		if err != nil {
			return "", err
		}
		for _, problem := range looked.Problems {
			s.Notices.WarnOnce(problem)
		}
		s.unseenSkills(looked.All)
		var shown []approved.Skill
		for _, one := range looked.On {
			if !withholds("@skills/"+one.Name+"/"+skill.File, false) {
				shown = append(shown, one)
			}
		}
		return approved.Index(shown), nil
	}}
}

// unseenSkills says once that there are skills that nobody has reviewed.
func (s *Setup) unseenSkills(list []approved.Skill) {
	var names []string
	for _, one := range list {
		switch one.Status {
		case approved.New, approved.Changed:
			names = append(names, fmt.Sprintf("%s (%s, %s)", one.Name, one.Source.Scope, one.Status))
		case approved.Broken:
			s.Notices.WarnOnce(fmt.Sprintf("the skill %s is left out: %s", one.Dir, one.Wrong))
		}
	}
	if len(names) == 0 {
		return
	}
	const most = 5
	shown := names[:min(len(names), most)]
	more := ""
	if n := len(names) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	s.Notices.WarnOnce(fmt.Sprintf("%s off until reviewed: %s%s; see chorus skill list, chorus skill diff NAME and chorus skill approve NAME",
		map[bool]string{true: "a skill is", false: "skills are"}[len(names) == 1], strings.Join(shown, ", "), more))
}

// calledNote is the text of a skill that the prompt calls by name: "/review src".
// It is found when a run begins and repeated after a cut.
func (s *Setup) calledNote() NoteSource {
	return NoteSource{What: "called skill", Text: func(_ context.Context, at NoteContext) (string, error) {
		b, waiting := at.Toolbox, at.Log.Waiting()
		if at.Log.Run() != nil || len(waiting) == 0 {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.called, nil
		}
		text, err := s.calledSkill(b, waiting[0].Blocks.Text())
		b.mu.Lock()
		defer b.mu.Unlock()
		b.called = text
		return text, err
	}}
}

// calledSkill returns what a model is told about the skill that a prompt calls, or "".
func (s *Setup) calledSkill(b *Toolbox, prompt string) (string, error) {
	if _, _, ok := skill.Called(prompt); !ok {
		return "", nil
	}
	looked, err := s.Skills.View(b.skills)
	if err != nil {
		return "", err
	}
	one, args, ok := approved.Called(looked.On, prompt)
	if !ok {
		return "", nil
	}
	return one.Call(args, one.Dir, filepath.Join(s.Skills.ViewDir(b.skills), one.Name)), nil
}

// CallsSkill reports whether a prompt calls a skill by name.
func (s *Setup) CallsSkill(b *Toolbox, prompt string) bool {
	text, err := s.calledSkill(b, prompt)
	return err == nil && text != ""
}

// CallableSkills returns the skills that people can call by name.
func (s *Setup) CallableSkills(b *Toolbox) ([]approved.Skill, error) {
	looked, err := s.Skills.View(b.skills)
	return slices.DeleteFunc(looked.On, func(one approved.Skill) bool { return one.Internal }), err
}

// approvedTools removes the tools of MCP servers whose descriptions
// differ from what was approved, and reports that.
func (setup *Setup) approvedTools(b *Toolbox, servers []mcp.Server, listing mcp.Listing) mcp.Listing {
	by := map[string]map[string]string{} // descriptions by server and tool
	for _, t := range listing.Tools {
		if name := mcp.ServerOf(t); name != "" {
			if by[name] == nil {
				by[name] = map[string]string{}
			}
			by[name][t.Spec().Name] = described(t.Spec())
		}
	}
	off := map[string]bool{}
	for _, s := range servers {
		if len(by[s.Name]) == 0 {
			continue
		}
		names, err := setup.Skills.Tools(setup.describe(b.Dir, s, by[s.Name]))
		if err != nil {
			setup.Notices.WarnOnce(fmt.Sprintf("the tool descriptions of the MCP server %s could not be stored: %v", s.Name, err))
		}
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			off[name] = true
		}
		setup.Notices.WarnOnce(fmt.Sprintf("%s of the MCP server %s off: %s (not as approved); see chorus skill diff mcp:%s, then run chorus skill approve mcp:%s",
			text.Count(len(names), "tool"), s.Name, strings.Join(names, ", "), s.Name, s.Name))
		listing.Off = append(listing.Off, fmt.Sprintf("Tools of the MCP server %s are off until somebody reviews their changed descriptions: %s. Do without them.", s.Name, strings.Join(names, ", ")))
	}
	if len(off) == 0 {
		return listing
	}
	var kept []tool.Tool
	for _, t := range listing.Tools {
		if !off[t.Spec().Name] {
			kept = append(kept, t)
		}
	}
	listing.Tools = kept
	return listing
}

// described returns what a model reads about a tool, as text for people.
func described(s tool.Spec) string {
	var schema any
	data := []byte(s.Schema)
	if json.Unmarshal(data, &schema) == nil {
		if pretty, err := json.MarshalIndent(schema, "", "  "); err == nil {
			data = pretty
		}
	}
	return s.Name + "\n\n" + strings.TrimSpace(s.Description) + "\n\n" + string(data) + "\n"
}

// describe describes a server for the lock: its configuration, and the files that it starts.
func (setup *Setup) describe(dir string, s mcp.Server, tools map[string]string) approved.Described {
	where := ""
	if s.Workspace { // two repositories may give different servers the same name
		where = dir
	}
	config, err := json.Marshal([]any{s.Type, s.Command, s.Args, s.Dir, s.URL, where})
	if err != nil {
		config = []byte(s.Name) // strings always encode
	}
	d := approved.Described{Server: s.Name, Config: string(config), Tools: tools}
	if !s.Workspace { // a repository's files are covered by the approval of config trust
		d.Files = setup.Settings.StartedFiles(dir, setup.Isolation.UserHome(), s)
	}
	return d
}
