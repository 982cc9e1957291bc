package discord

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheRootIsFound(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": DefaultAPI, "http://x/api": "http://x/api/v10", "http://x/api/": "http://x/api/v10", "http://x/api/v10": "http://x/api/v10"} {
		o, err := Options{Bot: "b", Token: "Bot test-token", API: given}.filled()
		if err != nil || o.API != want || o.Token != "test-token" {
			t.Errorf("%q becomes %q, %v", given, o.API, err)
		}
	}
	if _, err := (Options{Bot: "b"}).filled(); err == nil || !strings.Contains(err.Error(), "DISCORD_BOT_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
}

// Files and pictures are fetched from Discord alone, whatever a message says.
func TestOnlyDiscordsOwnStoreIsAsked(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for at, want := range map[string]bool{
		"https://cdn.discordapp.com/attachments/1/2/a.png": true, "http://cdn.discordapp.com/a.png": false, "https://cdn.discordapp.com.evil.example/a.png": false,
		"http://169.254.169.254/latest": false, server.URL + "/attachments/a.png": true, "file:///etc/passwd": false, "": false,
	} {
		if got := trusted(server.URL+"/api/v10", at); got != want {
			t.Errorf("%s: %v", at, got)
		}
	}
}

func TestPermissionsAsDiscordSeesThem(t *testing.T) {
	t.Parallel()
	const everyone, keeper, muted, user, owner = 1, 2, 3, 10, 11
	view, read := discord.PermissionViewChannel, discord.PermissionReadMessageHistory
	roles := []discord.Role{{ID: everyone, Name: "@everyone", Permissions: view | read}, {ID: keeper, Name: "keeper"}, {ID: muted, Name: "muted"},
		{ID: 4, Name: "admin", Permissions: discord.PermissionAdministrator}}
	role := func(id snowflake.ID, allow, deny discord.Permissions) discord.PermissionOverwrite {
		return discord.RolePermissionOverwrite{RoleID: id, Allow: allow, Deny: deny}
	}
	for name, c := range map[string]struct {
		id    snowflake.ID
		roles []snowflake.ID
		over  discord.PermissionOverwrites
		want  bool
	}{
		"everybody":                        {user, nil, nil, true},
		"closed to all":                    {user, nil, discord.PermissionOverwrites{role(everyone, 0, view)}, false},
		"closed, but open to a role":       {user, []snowflake.ID{keeper}, discord.PermissionOverwrites{role(keeper, view, 0), role(everyone, 0, view)}, true},
		"one role opens what another does": {user, []snowflake.ID{keeper, muted}, discord.PermissionOverwrites{role(muted, 0, read), role(keeper, read, 0)}, true},
		"closed to a role":                 {user, []snowflake.ID{muted}, discord.PermissionOverwrites{role(muted, 0, read)}, false},
		"closed to a member": {user, []snowflake.ID{keeper}, discord.PermissionOverwrites{role(keeper, view, 0),
			discord.MemberPermissionOverwrite{UserID: user, Deny: read}}, false},
		"the owner":        {owner, nil, discord.PermissionOverwrites{role(everyone, 0, view)}, true},
		"an administrator": {user, []snowflake.ID{4}, discord.PermissionOverwrites{role(everyone, 0, view)}, true},
	} {
		m := discord.Member{User: discord.User{ID: c.id}, RoleIDs: c.roles}
		if got := permissions(m, owner, roles, c.over).Has(toRead); got != c.want {
			t.Errorf("%s: may read %v", name, got)
		}
	}
}

func TestEmbeds(t *testing.T) {
	t.Parallel()
	hook := snowflake.ID(7)
	card := discord.Embed{Title: "Build failed", URL: "https://example.com/1", Description: "main is red", Author: &discord.EmbedAuthor{Name: "ci"},
		Fields: []discord.EmbedField{{Name: "commit", Value: "abc"}}, Footer: &discord.EmbedFooter{Text: "2 min"}, Image: &discord.EmbedResource{URL: "https://example.com/p.png"}}
	for name, c := range map[string]struct {
		m    discord.Message
		want string
	}{
		"a person's preview": {discord.Message{Embeds: []discord.Embed{card}}, ""},
		"nothing":            {discord.Message{Author: discord.User{Bot: true}}, ""},
		"an empty one":       {discord.Message{WebhookID: &hook, Embeds: []discord.Embed{{}}}, ""},
		"a webhook's": {discord.Message{WebhookID: &hook, Embeds: []discord.Embed{card, {Title: "and more"}}},
			"ci\nBuild failed https://example.com/1\nmain is red\ncommit: abc\n2 min\n[picture https://example.com/p.png]\n\nand more"},
	} {
		if got := embeds(c.m); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	long := discord.Message{Author: discord.User{Bot: true}, Embeds: []discord.Embed{{Description: strings.Repeat("x", 9000)}}}
	if n := len([]rune(embeds(long))); n > maxEmbed+1 {
		t.Errorf("%d characters are heard", n)
	}
}

// A poll, a forward, another bot's components and a picture by its address were "(a message without text)".
func TestWordsBesideTheContent(t *testing.T) {
	t.Parallel()
	text := func(s string) discord.PollMedia { return discord.PollMedia{Text: &s} }
	bot := discord.User{Bot: true}
	v2 := []discord.LayoutComponent{discord.ContainerComponent{Components: []discord.ContainerSubComponent{
		discord.TextDisplayComponent{Content: "# Deployed"}, discord.SectionComponent{Components: []discord.SectionSubComponent{discord.TextDisplayComponent{Content: "to staging"}}},
		discord.MediaGalleryComponent{Items: []discord.MediaGalleryItem{{Media: discord.UnfurledMediaItem{ProxyURL: "https://media.discordapp.net/a/graph.png", Width: 5}, Description: "the graph"}}}}}}
	for name, c := range map[string]struct {
		m     discord.Message
		want  string
		files []string
	}{
		"a poll": {m: discord.Message{Poll: &discord.Poll{Question: text("Lunch?"), Answers: []discord.PollAnswer{{PollMedia: text("yes")}, {PollMedia: text("no")}}}}, want: "[poll] Lunch?\n- yes\n- no"},
		"a forward": {m: discord.Message{MessageSnapshots: []discord.MessageSnapshot{{Message: discord.PartialMessage{Content: "look at this",
			Attachments: []discord.Attachment{{Filename: "a.txt", URL: "https://cdn.discordapp.com/a.txt"}}}}}}, want: "[forwarded message]\nlook at this", files: []string{"a.txt"}},
		"components of a bot":    {m: discord.Message{Author: bot, Components: v2}, want: "# Deployed\nto staging\n[picture: the graph]", files: []string{"graph.png"}},
		"a picture by address":   {m: discord.Message{Embeds: []discord.Embed{{Type: discord.EmbedTypeImage, Thumbnail: &discord.EmbedResource{ProxyURL: "https://images-ext-1.discordapp.net/external/x/cat.jpg", Width: 9}}}}, files: []string{"cat.jpg"}},
		"one that is not a copy": {m: discord.Message{Embeds: []discord.Embed{{Type: discord.EmbedTypeImage, Thumbnail: &discord.EmbedResource{URL: "https://example.com/cat.jpg", ProxyURL: "http://127.0.0.1/cat.jpg", Width: 9}}}}},
		"a preview of a page":    {m: discord.Message{Embeds: []discord.Embed{{Type: discord.EmbedTypeLink, Thumbnail: &discord.EmbedResource{ProxyURL: "https://images-ext-1.discordapp.net/x/logo.png", Width: 9}}}}},
	} {
		if got := beside(c.m); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		var files []string
		for _, f := range (&Client{}).linked(c.m) {
			files = append(files, f.Name)
		}
		if !slices.Equal(files, c.files) {
			t.Errorf("%s: files %q", name, files)
		}
	}
}
