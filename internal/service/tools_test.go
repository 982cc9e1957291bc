package service

import (
	"testing"

	"chorus/internal/chat"
	"chorus/internal/operation"
)

// A call of an agent never has more rights than the one person whose words the run has taken.
func TestToolsRunAsThePersonOfTheRun(t *testing.T) {
	t.Parallel()
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	bob := chat.Principal{Kind: "discord", ID: "7"}
	eve := chat.Principal{Kind: "discord", ID: "9"}
	runs := func(who chat.Principal) bool { return who.ID == "9" }
	helper := chat.Principal{Kind: chat.OtherAgent, ID: "helper", For: &ada}
	for _, c := range []struct {
		name    string
		senders []chat.Principal
		who     string
		admin   bool
	}{
		{"nobody", nil, "", false},
		{"the person at the terminal", []chat.Principal{ada, ada}, "local:ada", true},
		{"somebody on a platform", []chat.Principal{bob}, "discord:7", false},
		{"somebody on a platform who runs this Chorus", []chat.Principal{eve}, "discord:9", true},
		{"another agent on behalf of them", []chat.Principal{{Kind: chat.OtherAgent, ID: "helper", For: &eve}}, "discord:9", false},
		{"another agent on behalf of somebody", []chat.Principal{helper}, "local:ada", false},
		{"several people", []chat.Principal{ada, bob}, "", false},
	} {
		got := CallerOf(c.senders, operation.Scopes(), runs)
		if got.Principal.String() != c.who || got.May(operation.Admin) != c.admin || got.May(operation.Chat) != (c.who != "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := CallerOf([]chat.Principal{ada}, []operation.Scope{operation.Read}, runs); got.May(operation.Admin) {
		t.Errorf("a limited run has %+v", got)
	}
}
