package discordsim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/sim/discordsim/guild"
)

// A forum speaks as Discord's do: posts with a message, tags with ids, and the limits of both.
func TestForumsHaveDiscordsLimits(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{NoRateLimits: true, Channels: []guild.ChannelSpec{{Name: "general"}, {Name: "ideas", Type: "forum"}}})
	forum := s.Channel("ideas").String()
	many := func(n int) (list []object) {
		for i := range n {
			list = append(list, object{"name": fmt.Sprintf("tag %d", i), "emoji_name": "🔧"})
		}
		return list
	}
	patch := func(body object) (int, object) {
		status, got, _ := ask(t, s, "chorus", http.MethodPatch, "/channels/"+forum, body)
		return status, got
	}
	for name, list := range map[string][]object{"21 tags": many(21), "a long name": {{"name": strings.Repeat("x", 21)}}, "no name": {{"name": ""}}} {
		if status, got := patch(object{"available_tags": list}); status != http.StatusBadRequest || got["code"] != float64(50035) {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	if status, got := patch(object{"available_tags": []object{{"name": "a"}, {"name": "a"}}}); status != http.StatusBadRequest || got["code"] != float64(40061) {
		t.Errorf("twice the same: %d %v", status, got)
	}
	status, got := patch(object{"available_tags": many(20)})
	if status != http.StatusOK || got["type"] != float64(guild.TypeForum) {
		t.Fatalf("%d %v", status, got)
	}
	tags, _ := got["available_tags"].([]any)
	var ids []any
	for _, tag := range tags {
		ids = append(ids, tag.(object)["id"])
		if tag.(object)["emoji_name"] != "🔧" || tag.(object)["moderated"] != false {
			t.Errorf("a tag is %v", tag)
		}
	}
	post := func(body object) (int, object) {
		status, got, _ := ask(t, s, "chorus", http.MethodPost, "/channels/"+forum+"/threads", body)
		return status, got
	}
	message := object{"content": "what if"}
	for name, c := range map[string]struct {
		body object
		code int
	}{
		"no message":        {object{"name": "idea"}, 50035},
		"an empty message":  {object{"name": "idea", "message": object{}}, 50006},
		"a long title":      {object{"name": strings.Repeat("x", 101), "message": message}, 50035},
		"six tags":          {object{"name": "idea", "message": message, "applied_tags": ids[:6]}, 50035},
		"a tag of nobody's": {object{"name": "idea", "message": message, "applied_tags": []string{"1"}}, 10087},
	} {
		if status, got := post(c.body); status < 400 || got["code"] != float64(c.code) {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	status, made := post(object{"name": "idea", "message": message, "applied_tags": ids[:1]})
	starter, _ := made["message"].(object)
	if status != http.StatusCreated || made["id"] != starter["id"] || starter["channel_id"] != made["id"] || made["parent_id"] != forum || made["type"] != float64(guild.TypePublicThread) {
		t.Fatalf("%d %v", status, made)
	}
	if status, got, _ := ask(t, s, "chorus", http.MethodPost, "/channels/"+forum+"/messages", message); status != http.StatusBadRequest || got["code"] != float64(50008) {
		t.Errorf("a message in the forum itself: %d %v", status, got)
	}
	if status, got := patch(object{"flags": guild.ChannelRequireTag}); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	if status, got := post(object{"name": "another", "message": message}); status != http.StatusBadRequest || got["code"] != float64(40067) {
		t.Errorf("without a tag where one is required: %d %v", status, got)
	}
	if list := must[[]ForumPost](t)(s.Posts("ideas")); len(list) != 1 {
		t.Errorf("what was refused left something behind: %+v", list)
	}
	must[guild.ID](t)(s.OpenPost("ada", "ideas", "hers", "so", "tag 3"))
	if list := must[[]ForumPost](t)(s.Posts("ideas")); len(list) != 2 || list[1].By != "ada" || len(list[1].Tags) != 1 {
		t.Errorf("%+v", list)
	}
}
