package approved

import (
	"path/filepath"
	"testing"

	"chorus/internal/skill"
	"chorus/internal/trust"
)

// A skill of the home is the same one in the home of another machine, wherever that lies; an approval of before still holds.
func TestSkillsOfTwoHomes(t *testing.T) {
	t.Parallel()
	l, where := newLibrary(t)
	other, there := newLibrary(t)
	other.Lock = l.Lock // as if its copy were equal
	for _, lib := range []*Library{l, other} {
		write(t, filepath.Join(lib.Home.Dir(), "skills", "greet", skill.File), text("greet", "hello"))
	}
	approve(t, l, where, "greet")
	if s := one(t, other, there, "greet"); s.Status != On || s.ID != one(t, l, where, "greet").ID {
		t.Errorf("in the other home it is %s, %s", s.Status, s.ID)
	}
	if err := other.Disable(one(t, other, there, "greet"), "local:bob"); err != nil {
		t.Fatal(err)
	}
	if s := one(t, l, where, "greet"); s.Status != Off {
		t.Errorf("here it is %s", s.Status)
	}

	before, where := newLibrary(t)
	write(t, filepath.Join(before.Home.Dir(), "skills", "greet", skill.File), text("greet", "hello"))
	s := one(t, before, where, "greet")
	if err := before.Lock.Update(func(records map[string]trust.Record) error {
		records[skillPrefix+s.Dir] = trust.Record{Digest: s.Tree.Digest, By: "local:ada"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if s = one(t, another(before.Home), where, "greet"); s.Status != On {
		t.Errorf("approved before, it is %s", s.Status)
	}
	if err := before.Disable(s, "local:ada"); err != nil {
		t.Fatal(err)
	}
	if all := before.Lock.All(); len(all) != 1 || !all[before.key(s.Dir)].Off {
		t.Errorf("records: %v", all)
	}
}
