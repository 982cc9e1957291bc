package engine

import (
	"testing"

	"chorus/internal/chat"
)

// What a schedule spent was charged to the schedule, so that its owner's limits did not see it.
func TestWhoPays(t *testing.T) {
	t.Parallel()
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	nightly := chat.Principal{Kind: chat.ScheduleRule, ID: "nightly", For: &ada}
	for want, p := range map[string]chat.Principal{
		"local:ada":     ada,
		"system:main":   {},
		"agent:helper":  {Kind: chat.OtherAgent, ID: "helper"},
		"discord:7":     {Kind: chat.OtherAgent, ID: "helper", For: &chat.Principal{Kind: "discord", ID: "7"}},
		"schedule:lost": {Kind: chat.ScheduleRule, ID: "lost"},
	} {
		if got := payerOf(p, "main").String(); got != want {
			t.Errorf("%v is paid by %s, want %s", p, got, want)
		}
	}
	for _, p := range []chat.Principal{nightly, {Kind: chat.OtherAgent, ID: "helper", For: &nightly}, {Kind: chat.HookRule, ID: "h", For: &nightly}} {
		if got := payerOf(p, "main").String(); got != "local:ada" {
			t.Errorf("%v is paid by %s", p, got)
		}
	}
}
