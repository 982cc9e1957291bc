package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Skills for people: what they see, that a yes is for what was shown, and that others neither see nor decide what waits.
func TestSkills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := app.Open(t.Context(), app.Options{Env: func(name string) string {
		return map[string]string{"HOME": filepath.Join(dir, "user"), "USER": "ada"}[name]
	}, Environ: []string{"PATH=" + os.Getenv("PATH")}, Home: filepath.Join(dir, "home")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	repo := filepath.Join(dir, "repo")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	skill := func(name, body string) string { return "---\nname: " + name + "\ndescription: does it\n---\n" + body }
	write(filepath.Join(dir, "home", "skills", "deploy", "SKILL.md"), skill("deploy", "of the home"))
	write(filepath.Join(repo, ".agents", "skills", "deploy", "SKILL.md"), skill("deploy", "of the repository"))
	write(filepath.Join(dir, "home", "agents", "bo", "skills", "own", "SKILL.md"), skill("own", "of bo"))
	to := a.Service.GuestOperations()
	ada := operation.Caller{Principal: a.Me(), Scopes: operation.Scopes()}
	guest := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: []operation.Scope{operation.Read, operation.Chat}}
	list := func(by operation.Caller, in operations.SkillPlace) string {
		t.Helper()
		out, err := operations.ListSkills.Call(t.Context(), to, by, operations.SkillQuery{SkillPlace: in})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, s := range out.Items {
			lines = append(lines, s.Name+" "+s.Scope+" "+s.Status)
		}
		return strings.Join(lines, ", ")
	}
	here := operations.SkillPlace{Workspace: repo}
	if got := list(ada, here); got != "deploy repository new, deploy global new" {
		t.Error(got)
	}
	if got := list(ada, operations.SkillPlace{Agent: "bo"}); got != "own agent new, deploy global new" {
		t.Error(got)
	}
	if got := list(guest, operations.SkillPlace{}); got != "" {
		t.Error("what waits is nobody else's business: ", got)
	}
	kind := func(err error, want operation.Kind, says string) {
		t.Helper()
		if operation.KindOf(err) != want || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %v %q", err, want, says)
		}
	}
	_, err = operations.ListSkills.Call(t.Context(), to, guest, operations.SkillQuery{SkillPlace: here})
	kind(err, operation.Forbidden, "admin")
	_, err = operations.ListSkills.Call(t.Context(), to, ada, operations.SkillQuery{SkillPlace: operations.SkillPlace{Workspace: "x"}})
	kind(err, operation.Invalid, "absolute")
	_, err = operations.DiffSkill.Call(t.Context(), to, guest, operations.SkillRef{Name: "deploy"})
	kind(err, operation.Forbidden, "admin")
	_, err = operations.DiffSkill.Call(t.Context(), to, ada, operations.SkillRef{Name: "deploy", SkillPlace: here})
	kind(err, operation.Conflict, "choose one by its id")
	_, err = operations.GetSkill.Call(t.Context(), to, ada, operations.SkillRef{Name: "nope"})
	kind(err, operation.NotFound, "there is no skill")

	all, err := operations.ListSkills.Call(t.Context(), to, ada, operations.SkillQuery{SkillPlace: here})
	if err != nil {
		t.Fatal(err)
	}
	approve := func(id string) operations.Skill {
		t.Helper()
		d, err := operations.DiffSkill.Call(t.Context(), to, ada, operations.SkillRef{Name: id, SkillPlace: here})
		if err != nil || len(d.Changes) == 0 {
			t.Fatal(d, err)
		}
		_, err = operations.ApproveSkill.Call(t.Context(), to, ada, operations.SkillApproval{Name: id, SkillPlace: here, Digest: "0"})
		kind(err, operation.Conflict, "has changed since it was shown")
		s, err := operations.ApproveSkill.Call(t.Context(), to, ada, operations.SkillApproval{Name: id, SkillPlace: here, Digest: d.Digest})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := approve(all.Items[1].ID); s.Status != "on" || s.ApprovedBy != "local:ada" {
		t.Errorf("%+v", s)
	}
	d, err := operations.DiffSkill.Call(t.Context(), to, ada, operations.SkillRef{Name: "deploy", SkillPlace: here})
	if err != nil || d.Scope != "repository" || len(d.InsteadOf) != 1 {
		t.Errorf("the only one that waits is meant, and what it would take the place of is said: %+v, %v", d, err)
	}
	approve(all.Items[0].ID)
	if got := list(ada, here); got != "deploy repository on, deploy global overridden" {
		t.Error(got)
	}
	if got := list(guest, operations.SkillPlace{}); got != "deploy global on" {
		t.Error(got)
	}
	s, err := operations.GetSkill.Call(t.Context(), to, ada, operations.SkillRef{Name: "deploy", SkillPlace: here})
	if err != nil || s.Body != "of the repository" {
		t.Errorf("%+v, %v", s, err)
	}
	audit, err := operations.ListAudit.Call(t.Context(), to, ada, operations.AuditQuery{})
	if err != nil || !slices.ContainsFunc(audit.Items, func(l operations.AuditLine) bool {
		return l.Action == "skill approve" && strings.Contains(l.Detail, "sha256 "+s.Digest)
	}) {
		t.Errorf("%+v, %v", audit.Items, err)
	}
	if _, err := operations.DisableSkill.Call(t.Context(), to, ada, operations.SkillRef{Name: "deploy", SkillPlace: here}); err != nil {
		t.Fatal(err)
	}
	if got := list(ada, here); got != "deploy repository off, deploy global on" {
		t.Error(got)
	}

	made, err := operations.CreateSession.Call(t.Context(), to, ada, operations.NewSession{WorkspacePath: repo})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operations.CallSkill.Call(t.Context(), to, ada, operations.SkillCall{Name: "deploy", Session: made.SessionID, Text: "now"}); err != nil {
		t.Error(err)
	}
	_, err = operations.CallSkill.Call(t.Context(), to, ada, operations.SkillCall{Name: "nope", Session: made.SessionID})
	kind(err, operation.NotFound, "that is on in this session")
}
