package delegate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"chorus/internal/tool"
	"chorus/internal/tool/delegate"
)

type home struct{}

func (home) ListAgents(context.Context) ([]delegate.Agent, error) {
	return []delegate.Agent{{Name: "helper", Model: "demo/script", Description: "Helps."}}, nil
}

func (home) AgentDocs(_ context.Context, name string) ([]delegate.Document, error) {
	if name != "helper" {
		return nil, tool.Mistake("there is no agent " + name)
	}
	return []delegate.Document{{Name: "README.md", Text: "Helps."}}, nil
}

func TestOrdersAreRead(t *testing.T) {
	for _, c := range []struct {
		name, args, agent, wrong string
		told                     bool
	}{
		{delegate.SpawnName, `{"task":"look"}`, "me", "", false},
		{delegate.SpawnName, `{"agent":"helper","task":"look"}`, "helper", "", false},
		{delegate.SendName, `{"target_agent":"helper","message":"hello"}`, "helper", "", true},
		{delegate.SendName, `{"target_agent":"me","message":"hello"}`, "", "cannot send itself", false},
		{delegate.SpawnName, `{"task":"  "}`, "", "say what", false},
		{delegate.SpawnName, `{"task":"` + strings.Repeat("x", 100_001) + `"}`, "", "write the rest to a file", false},
		{delegate.SpawnName, `{"task":"x","max_steps":1000}`, "", "at most 200", false},
		{delegate.SpawnName, `{"task":"x","budget_usd":-1}`, "", "negative", false},
	} {
		got, told, err := delegate.Read(c.name, []byte(c.args), "me")
		var mistake tool.Mistake
		switch {
		case c.wrong == "" && (err != nil || got.Agent != c.agent || told != c.told):
			t.Errorf("%.60s: %+v %v %v", c.args, got, told, err)
		case c.wrong != "" && (!errors.As(err, &mistake) || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%.60s: error %v, want one that says %q", c.args, err, c.wrong)
		}
	}
}

func TestDescriptionIsTheFirstProse(t *testing.T) {
	for readme, want := range map[string]string{
		"# Title\n\n* list\n> quote\n\nLooks after pages.\nMore.": "Looks after pages.",
		"":                       "",
		"# Only":                 "",
		"Plain":                  "Plain",
		strings.Repeat("ä", 300): strings.Repeat("ä", 197) + "...",
	} {
		if got := delegate.Description(readme); got != want {
			t.Errorf("%.20q: %q", readme, got)
		}
	}
}

func TestWhatOthersKnowIsToldAsTheirs(t *testing.T) {
	set, err := tool.NewSet(delegate.Tools(home{}, "me")...)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ args, want, foreign string }{
		"list_agents":     {`{}`, "helper (demo/script): Helps.", ""},
		"read_agent_docs": {`{"target_agent":"helper"}`, "Helps.", "docs of agent helper"},
	} {
		one, args, err := set.Resolve(name, []byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		res, err := one.Run(context.Background(), args)
		if err != nil || !strings.Contains(res.Blocks.Text(), c.want) || res.UntrustedFrom != c.foreign {
			t.Errorf("%s: %+v %v", name, res, err)
		}
	}
	one, args, err := set.Resolve(delegate.SpawnName, []byte(`{"agent":"helper","task":"look\nclosely"}`))
	if err != nil || !one.Spec().Deferred || one.Access(args)[0].Action() != "tool:spawn_agent:helper" {
		t.Errorf("%+v %v %v", one.Spec(), one.Access(args), err)
	}
}
