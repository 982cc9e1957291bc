package pages

import (
	"net/http"
	"net/url"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// skills lists skills, those that need approval first.
func (p *Pages) skills(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListSkills.Call(r.Context(), p.Executor, by, operations.SkillQuery{})
	if err != nil {
		return err
	}
	var waiting, rest []operations.Skill
	for _, s := range list.Items {
		if s.Status == "new" || s.Status == "changed" {
			waiting = append(waiting, s)
			continue
		}
		rest = append(rest, s)
	}
	return p.render(w, http.StatusOK, "skills.html", map[string]any{"Layout": p.layout(r, by, "Skills"), "Waiting": waiting, "List": rest})
}

// skillPlace is the agent from whose page somebody came: its own skills are found there only.
func skillPlace(r *http.Request) operations.SkillPlace {
	return operations.SkillPlace{Agent: r.FormValue("agent")}
}

// skill shows one skill. An admin also sees how it differs from what was approved, and decides.
func (p *Pages) skill(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ref := operations.SkillRef{Name: r.PathValue("id"), SkillPlace: skillPlace(r)}
	s, err := operations.GetSkill.Call(r.Context(), p.Executor, by, ref)
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, s.Name), "S": s, "Agent": ref.Agent, "Diff": operations.SkillDiff{}, "May": by.May(operation.Admin)}
	if by.May(operation.Admin) && (s.Status == "new" || s.Status == "changed" || s.Status == "off") {
		d, err := operations.DiffSkill.Call(r.Context(), p.Executor, by, ref)
		if err != nil {
			return err
		}
		data["Diff"] = d
	}
	return p.render(w, http.StatusOK, "skill.html", data)
}

// decideSkill approves what was shown, or turns it off.
func (p *Pages) decideSkill(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	name, err := r.PathValue("id"), error(nil)
	switch do := r.PostFormValue("do"); do {
	case "approve":
		_, err = operations.ApproveSkill.Call(r.Context(), p.Executor, by, operations.SkillApproval{Name: name, SkillPlace: skillPlace(r), Digest: r.PostFormValue("digest")})
	case "disable":
		_, err = operations.DisableSkill.Call(r.Context(), p.Executor, by, operations.SkillRef{Name: name, SkillPlace: skillPlace(r)})
	default:
		err = operation.Errorf(operation.Invalid, "a skill can be approved or switched off, not %.20q", do)
	}
	if err != nil {
		return err
	}
	if agent := skillPlace(r).Agent; agent != "" {
		return finishForm(w, r, "/agents/"+url.PathEscape(agent), "done")
	}
	return finishForm(w, r, "/skills", "done")
}
