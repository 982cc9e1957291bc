package discordsim

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/sim/discordsim/guild"
)

// What Discord refuses in a message of components is refused here, at the same place and with the same code.
func TestComponentsAreHeldToTheirFormat(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{NoRateLimits: true})
	text := func(words string) object { return object{"type": 10, "content": words} }
	box := func(parts ...object) object { return object{"type": 17, "components": parts} }
	yes := object{"type": 2, "style": 3, "label": "Yes", "custom_id": "yes"}
	row := object{"type": 1, "components": []object{yes}}
	many := make([]object, 41)
	for i := range many {
		many[i] = text(fmt.Sprint(i))
	}
	pictures := make([]object, 11)
	for i := range pictures {
		pictures[i] = object{"media": object{"url": "https://x.invalid/a.png"}}
	}
	for name, c := range map[string]struct {
		flags int
		body  object
		parts []object
		want  string // in the answer; "": it is taken
	}{
		"a card":               {parts: []object{box(object{"type": 9, "components": []object{text("**May I?**")}, "accessory": yes}, object{"type": 14, "spacing": 2}, text("why"))}},
		"a picture":            {parts: []object{object{"type": 12, "items": pictures[:1]}}},
		"without the flag":     {flags: -1, parts: []object{box(text("x"))}, want: "UNION_TYPE_CHOICES"},
		"words beside":         {body: object{"content": "x"}, parts: []object{text("x")}, want: "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"},
		"an embed beside":      {body: object{"embeds": []object{{"title": "x"}}}, parts: []object{text("x")}, want: "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"},
		"forty-one":            {parts: many, want: "BASE_TYPE_BAD_LENGTH"},
		"too much text":        {parts: []object{text(strings.Repeat("x", 2001)), text(strings.Repeat("y", 2000))}, want: "COMPONENT_MAX_TOTAL_TEXT_SIZE_EXCEEDED"},
		"a box in a box":       {parts: []object{box(box(text("x")))}, want: "UNION_TYPE_CHOICES"},
		"a button by itself":   {parts: []object{yes}, want: "UNION_TYPE_CHOICES"},
		"a section alone":      {parts: []object{object{"type": 9, "components": []object{text("x")}}}, want: "BASE_TYPE_REQUIRED"},
		"a name twice":         {parts: []object{row, row}, want: "COMPONENT_CUSTOM_ID_DUPLICATED"},
		"a number twice":       {parts: []object{object{"type": 10, "content": "x", "id": 7}, object{"type": 10, "content": "y", "id": 7}}, want: "COMPONENT_DUPLICATED_ID"},
		"eleven pictures":      {parts: []object{object{"type": 12, "items": pictures}}, want: "BASE_TYPE_BAD_LENGTH"},
		"a picture of nowhere": {parts: []object{object{"type": 12, "items": []object{{"media": object{"url": "ftp://x"}}}}}, want: "URL_TYPE_INVALID_SCHEME"},
		"a file of the web":    {parts: []object{object{"type": 13, "file": object{"url": "https://x.invalid/a.txt"}}}, want: "URL_TYPE_INVALID_SCHEME"},
		"a strange line":       {parts: []object{object{"type": 14, "spacing": 3}}, want: "BASE_TYPE_CHOICES"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := object{"flags": guild.FlagComponentsV2, "components": c.parts}
			for k, v := range c.body {
				body[k] = v
			}
			if c.flags < 0 {
				delete(body, "flags")
			}
			status, answer, _ := ask(t, s, "chorus", "POST", "/channels/"+s.Channel("general").String()+"/messages", body)
			switch {
			case c.want == "" && status != 200:
				t.Errorf("%d: %v", status, answer)
			case c.want != "" && (status != 400 || answer["code"] != float64(50035) || !strings.Contains(fmt.Sprint(answer["errors"]), c.want)):
				t.Errorf("%d, not refused for %s: %v", status, c.want, answer)
			}
		})
	}
}
