package hook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

// However hooks trigger each other, no row of them is longer than the limit and none comes round to itself.
func TestTriggeringEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		owners := []chat.Principal{ada, {Kind: "discord", ID: "2"}, {Kind: chat.TokenHolder, ID: "ci"}}
		cause := rapid.SampledFrom(owners).Draw(t, "origin")
		seen := map[string]bool{}
		for n := 0; ; n++ {
			if n > MaxDepth {
				t.Fatalf("%d hooks in a row", n)
			}
			h := Hook{ID: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "hook"), Owner: rapid.SampledFrom(owners).Draw(t, "owner")}
			next, err := ActingFor(h, cause)
			if err != nil {
				return
			}
			if seen[h.ID] {
				t.Fatalf("%s runs again", h.ID)
			}
			if next.Person().String() != h.Owner.String() {
				t.Fatalf("%s pays for the hook of %s", next.Person(), h.Owner)
			}
			seen[h.ID], cause = true, next
		}
	})
}

// A template's work and its result are bounded, and text without placeholders stays.
func TestRenderingIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := Values{Event: []byte(`{"a":"{{event.a}}"}`), Steps: []Result{{Stdout: rapid.StringN(0, 50, 200).Draw(t, "out")}}}
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"{{step_0}}", "{{event.a}}", "{{", "}}", "x", "{{event}}", "{{nothing}}", "ä"}), 0, 30).Draw(t, "parts")
		got := v.Render(strings.Join(parts, ""))
		if len(got) > maxRendered+100 || !utf8.ValidString(got) {
			t.Fatalf("%d bytes", len(got))
		}
		plain := strings.NewReplacer("{", "", "}", "").Replace(strings.Join(parts, ""))
		if v.Render(plain) != plain {
			t.Fatal("text without placeholders changed")
		}
	})
}

// In whatever order triggers come, runs keep the cooldown.
func TestCooldownHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := Hook{Enabled: true, Definition: Definition{Cooldown: time.Duration(rapid.IntRange(0, 7200).Draw(t, "cooldown")) * time.Second}}
		now, last := noon, time.Time{}
		for _, gap := range rapid.SliceOfN(rapid.IntRange(0, 4000), 1, 50).Draw(t, "gaps") {
			now = now.Add(time.Duration(gap) * time.Second)
			if verdict, _ := h.Admit(now, Standing{LastAt: last}, false); verdict == Begin {
				if !last.IsZero() && now.Sub(last) < h.Cooldown {
					t.Fatalf("%s after the last one", now.Sub(last))
				}
				last = now
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"type":"periodic","interval_seconds":3600}`, `{"type":"event","event_type":"completed","where":{"a.b":"*"}}`, `"x"`, `[{"type":"shell","command":"ls"}]`,
		`[{"type":"http","url":"https://a.example/{{event.id}}"}]`, `[{"type":"say","session":"x","text":"{{response}}"}]`, `{"type":"periodic","schedule":"every weekday at 9"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if trigger, err := ParseTrigger([]byte(text), types, noon); err == nil {
			kept, err := json.Marshal(trigger)
			var again Trigger
			if err != nil || json.Unmarshal(kept, &again) != nil {
				t.Fatalf("%s cannot be kept", kept)
			}
			if trigger.Type == Periodic && !again.Next(noon).After(noon) {
				t.Fatalf("%s never comes", kept)
			}
			again.Matches(Event{Type: trigger.Event, Data: []byte(text)})
		}
		if steps, err := ParseSteps([]byte(text), queries); err == nil {
			for _, s := range steps {
				if s.Type == Shell && len(placeholders(s.Command)) > 0 {
					t.Fatalf("%q takes placeholders", s.Command)
				}
			}
			Skip(steps, make([]Result, len(steps)))
		}
		_, _ = ParseActions([]byte(text), queries)
		Values{Event: []byte(text), Steps: []Result{{Stdout: text}}}.Render(text)
	})
}
