package work

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
)

func TestApprovers(t *testing.T) {
	t.Parallel()
	owner := chat.Principal{Kind: "discord", ID: "7"}
	mate := chat.Principal{Kind: "discord", ID: "8", Roles: []string{"maintainer"}}
	local := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	for text, may := range map[string][]chat.Principal{
		"anyone":           {owner, mate, local},
		"owner":            {owner},
		"local":            {local},
		"role:maintainer":  {mate},
		"discord:8, owner": {owner, mate},
		"token:grace":      nil,
	} {
		list, err := ParseApprovers(text)
		if err != nil {
			t.Fatal(text, err)
		}
		p := Project{Owner: owner, Approvers: list}
		for _, who := range []chat.Principal{owner, mate, local} {
			want := slices.ContainsFunc(may, who.Same)
			if got := p.MayApprove(who); got != want {
				t.Errorf("%s: %s may: %v", text, who, got)
			}
		}
	}
	for _, text := range []string{"somebody", "owner, anyone", "role:", "task:x", "schedule:x", ",", ""} {
		if list, err := ParseApprovers(text); err == nil || !strings.Contains(err.Error(), "role:NAME") {
			t.Errorf("%q: %v %v", text, list, err)
		}
	}
}
