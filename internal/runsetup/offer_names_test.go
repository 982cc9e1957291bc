package runsetup

import (
	"slices"
	"testing"

	"chorus/internal/tool"
)

// An agent with files of its own means its own git_commit; one without means that of projects. Never are both in a set.
func TestOneToolOfEachName(t *testing.T) {
	t.Parallel()
	named := func(name string, aliases ...tool.Alias) tool.Tool {
		return tool.New(tool.Func[struct{}]{Name: name, Description: "x", Aliases: aliases})
	}
	b := &Toolbox{List: []tool.Tool{named("git_commit"), named("read", tool.Also("read_file"))}}
	var err error
	if b.Tools, err = tool.NewSet(b.List...); err != nil {
		t.Fatal(err)
	}
	operations := []tool.Tool{named("git_commit"), named("read_file"), named("create_task")}
	for _, c := range []struct {
		has  bool
		want []string
	}{{true, []string{"create_task", "git_commit", "read"}}, {false, []string{"create_task", "git_commit", "read_file"}}} {
		own, kept := oneOfEachName(b, operations, func(tool.Spec) bool { return c.has })
		set, err := tool.NewSet(slices.Concat(own, kept)...)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range set.Specs() {
			names = append(names, s.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("has its own: %v, and is offered %v", c.has, names)
		}
	}
}
