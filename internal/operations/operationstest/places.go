package operationstest

import (
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// opens makes the admin open folders for others.
func (s *story) opens(dirs ...string) {
	s.Helper()
	_, err := operations.SetSetting.Call(s.ctx, s.As(s.Admin), s.Admin, operations.SettingValue{Key: "workspaces", Value: strings.Join(dirs, ", ")})
	s.ok(err)
}

// places: callers without the scope admin work in their own folders and in those that an admin has opened, and nowhere else.
func places(s *story) {
	home, project := s.TempDir(), filepath.Join(s.Dir, "project")
	s.ok(os.Mkdir(project, 0o755))
	s.ok(os.Symlink(home, filepath.Join(s.Dir, "link")))
	s.ok(os.Symlink(project, filepath.Join(home, "link")))
	create := func(by operation.Caller, dir string) (operations.Session, error) {
		made, err := operations.CreateSession.Call(s.ctx, s.As(by), by, operations.NewSession{WorkspacePath: dir, Model: "demo/script"})
		return made.Session, err
	}
	_, err := create(s.Ada, project)
	s.wants(operation.Forbidden, err)
	if text := err.Error(); !strings.Contains(text, project) || !strings.Contains(text, "an admin adds a folder to `workspaces`") {
		s.Errorf("%q does not say what to do", text)
	}
	_, err = create(s.Admin, home)
	s.ok(err)
	_, err = operations.SetSetting.Call(s.ctx, s.As(s.Admin), s.Admin, operations.SettingValue{Key: "workspaces", Value: "here"})
	s.wants(operation.Invalid, err)

	s.opens(s.Dir, "/srv/nowhere")
	there, err := create(s.Ada, project)
	s.ok(err)
	_, err = create(s.Ada, filepath.Join(home, "link")) // it leads to an open folder
	s.ok(err)
	bo, err := operations.CreateSession.Call(s.ctx, s.As(s.Bo), s.Bo, operations.NewSession{})
	s.ok(err)
	own, err := operations.CreateSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewSession{})
	s.ok(err)
	_, err = create(s.Ada, own.Session.WorkspacePath)
	s.ok(err)
	for name, dir := range map[string]string{
		"somebody's home": home, "a link to it": filepath.Join(s.Dir, "link"), "what is not there": filepath.Join(home, "none"), "above": filepath.Dir(s.Dir),
		"by dots": s.Dir + "/../" + filepath.Base(home), "a name that begins alike": s.Dir + "2", "the folder of Bo": bo.Session.WorkspacePath,
		"the keys of this home": filepath.Join(bo.Session.WorkspacePath, "..", "..", "..", ".."), "the whole system": "/",
	} {
		_, err := create(s.Ada, dir)
		if operation.KindOf(err) != operation.Forbidden || !strings.Contains(err.Error(), s.Dir) {
			s.Errorf("%s (%s): %v", name, dir, err)
		}
		_, err = operations.ResumeSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ResumeRequest{ID: "never-was", WorkspacePath: dir})
		if operation.KindOf(err) != operation.Forbidden {
			s.Errorf("resumed in %s (%s): %v", name, dir, err)
		}
	}
	s.equal("answer", s.answer(s.say(s.Ada, there.ID, "!say in the project")), "in the project")

	// A folder that is closed again, or has become a link to another one, is closed to existing sessions too.
	closed := func(what, id string) {
		for name, try := range map[string]func() error{
			"say":    try(s, s.As(s.Ada), s.Ada, operations.Say, operations.Message{ID: id, Message: "hi"}),
			"steer":  try(s, s.As(s.Ada), s.Ada, operations.Steer, operations.SteerMessage{ID: id, Message: "hi"}),
			"fork":   try(s, s.As(s.Ada), s.Ada, operations.Fork, operations.ForkRequest{ID: id, AtSeq: 1}),
			"resume": try(s, s.As(s.Ada), s.Ada, operations.ResumeSession, operations.ResumeRequest{ID: id, WorkspacePath: s.Dir}),
		} {
			if err := try(); operation.KindOf(err) != operation.Forbidden {
				s.Errorf("%s, %s: %v", what, name, err)
			}
		}
	}
	s.opens()
	closed("closed again", there.ID)
	s.equal("answer in a folder of one's own", s.answer(s.say(s.Ada, own.SessionID, "!say mine")), "mine")
	s.opens(s.Dir)
	s.ok(os.Remove(project))
	s.ok(os.Symlink(home, project))
	closed("a link by now", there.ID)
}
