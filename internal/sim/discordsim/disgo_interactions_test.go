package discordsim

import (
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/bot"
	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/events"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/guild"
)

// agentCommands are commands such as an agent has: subcommands, an option that completes, a message menu.
var agentCommands = []discord.ApplicationCommandCreate{
	discord.SlashCommandCreate{Name: "agent", Description: "agents", Options: []discord.ApplicationCommandOption{
		discord.ApplicationCommandOptionSubCommand{Name: "init", Description: "make one", Options: []discord.ApplicationCommandOption{
			discord.ApplicationCommandOptionString{Name: "name", Description: "its name", Required: true, Autocomplete: true},
			discord.ApplicationCommandOptionUser{Name: "owner", Description: "whose it is"},
		}},
	}},
	discord.MessageCommandCreate{Name: "Fork from here"},
}

func TestDisgoCommands(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime})
	commands := make(chan *events.ApplicationCommandInteractionCreate, 8)
	completes := make(chan *events.AutocompleteInteractionCreate, 8)
	c := client(t, s, "chorus", gateway.IntentGuilds, bot.WithEventListenerFunc(func(e *events.ApplicationCommandInteractionCreate) { commands <- e }),
		bot.WithEventListenerFunc(func(e *events.AutocompleteInteractionCreate) { completes <- e }))
	connect(t, c)
	set, err := c.Rest.SetGuildCommands(c.ApplicationID, flake(s.Guild()), agentCommands)
	ok(t, err)
	if len(set) != 2 {
		t.Fatalf("%d commands", len(set))
	}

	asked := must[guild.Interaction](t)(s.Complete("ada", "general", "chorus", "agent init", map[string]any{"name": "he"}, "name"))
	complete := next(t, completes, "question for completion")
	if complete.Data.String("name") != "he" || complete.Data.Focused().Name != "name" {
		t.Fatalf("completion %+v", complete.Data)
	}
	ok(t, complete.AutocompleteResult([]discord.AutocompleteChoice{discord.AutocompleteChoiceString{Name: "helper", Value: "helper"}}))
	if got := must[guild.Interaction](t)(s.WaitInteraction(within(t), asked.ID)); !strings.Contains(string(got.Choices), "helper") {
		t.Fatalf("choices %s", got.Choices)
	}

	asked = must[guild.Interaction](t)(s.Slash("ada", "general", "chorus", "agent init", map[string]any{"name": "helper", "owner": s.User("bob").String()}))
	e := next(t, commands, "command")
	data := e.SlashCommandInteractionData()
	if e.Data.CommandName() != "agent" || *data.SubCommandName != "init" || data.String("name") != "helper" || data.User("owner").Username != "bob" || e.Member().User.Username != "ada" {
		t.Fatalf("command %+v", data)
	}
	ok(t, e.DeferCreateMessage(true))
	if err := e.DeferCreateMessage(true); !rest.IsJSONErrorCode(err, rest.JSONErrorCodeInteractionAlreadyAcknowledged) {
		t.Fatalf("a second answer: %v", err)
	}
	filled, err := c.Rest.UpdateInteractionResponse(c.ApplicationID, e.Token(), discord.NewMessageUpdate().WithContent("made"))
	ok(t, err)
	if filled.Content != "made" || !filled.Flags.Has(discord.MessageFlagEphemeral) || filled.Flags.Has(discord.MessageFlagLoading) {
		t.Fatalf("the answer is %+v", filled)
	}
	if list, err := c.Rest.GetMessages(flake(s.Channel("general")), 0, 0, 0, 10); err != nil || len(list) != 0 {
		t.Fatalf("an ephemeral message stands in the history: %v %v", list, err)
	}
	more, err := c.Rest.CreateFollowupMessage(c.ApplicationID, e.Token(), discord.NewMessageCreate().WithContent("for all"))
	ok(t, err)
	ok(t, c.Rest.DeleteInteractionResponse(c.ApplicationID, e.Token()))
	if got := must[[]guild.Message](t)(s.Messages("general")); len(got) != 1 || got[0].ID != guild.ID(more.ID) || got[0].Interaction["name"] != "agent" {
		t.Fatalf("there are %+v", got)
	}
	if _, err := s.Slash("ada", "general", "chorus", "agent init", nil); err == nil {
		t.Fatal("a required option may be left out")
	}

	must[guild.Interaction](t)(s.Menu("bob", "chorus", "Fork from here", guild.ID(more.ID)))
	menu := next(t, commands, "menu command").MessageCommandInteractionData()
	if menu.TargetID() != more.ID || menu.TargetMessage().Content != "for all" {
		t.Fatalf("menu %+v", menu)
	}
}

func TestDisgoComponentsAndModals(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime})
	clicks := make(chan *events.ComponentInteractionCreate, 8)
	modals := make(chan *events.ModalSubmitInteractionCreate, 8)
	c := client(t, s, "chorus", gateway.IntentGuilds, bot.WithEventListenerFunc(func(e *events.ComponentInteractionCreate) { clicks <- e }),
		bot.WithEventListenerFunc(func(e *events.ModalSubmitInteractionCreate) { modals <- e }))
	connect(t, c)
	card, err := c.Rest.CreateMessage(flake(s.Channel("general")), discord.NewMessageCreateV2(discord.NewContainer(
		discord.NewTextDisplay("May I?"),
		discord.NewActionRow(discord.NewSuccessButton("Yes", "yes"), discord.NewDangerButton("No", "no")),
		discord.NewActionRow(discord.NewStringSelectMenu("how", "how", discord.NewStringSelectMenuOption("Once", "once"), discord.NewStringSelectMenuOption("Always", "always"))),
	)))
	ok(t, err)
	if !card.Flags.Has(discord.MessageFlagIsComponentsV2) || len(card.Components) != 1 {
		t.Fatalf("card %+v", card)
	}
	must[guild.Interaction](t)(s.Click("ada", guild.ID(card.ID), "yes"))
	click := next(t, clicks, "click")
	if click.Data.CustomID() != "yes" || click.Message.ID != card.ID {
		t.Fatalf("click %+v", click)
	}
	ok(t, click.UpdateMessage(discord.NewMessageUpdateV2(discord.NewTextDisplay("Done"))))
	if got := must[[]guild.Message](t)(s.Messages("general")); components.Displayed(got[0].Components) != "\nDone" {
		t.Fatalf("the card says %+v", got[0].Components)
	}
	if _, err := s.Click("ada", guild.ID(card.ID), "yes"); err == nil {
		t.Fatal("a button that is gone can be clicked")
	}

	plain, err := c.Rest.CreateMessage(flake(s.Channel("general")), discord.NewMessageCreate().WithContent("why?").WithComponents(
		discord.NewActionRow(discord.NewStringSelectMenu("how", "how", discord.NewStringSelectMenuOption("Say", "say")))))
	ok(t, err)
	opened := must[guild.Interaction](t)(s.Click("bob", guild.ID(plain.ID), "how", "say"))
	choice := next(t, clicks, "choice")
	if got := choice.StringSelectMenuInteractionData().Values; len(got) != 1 || got[0] != "say" {
		t.Fatalf("values %v", got)
	}
	ok(t, choice.Modal(discord.ModalCreate{CustomID: "form", Title: "Why", Components: []discord.LayoutComponent{
		discord.NewLabel("Reason", discord.NewTextInput("reason", discord.TextInputStyleShort))}}))
	if got := must[guild.Interaction](t)(s.WaitInteraction(within(t), opened.ID)); !strings.Contains(string(got.Modal), "Reason") {
		t.Fatalf("modal %s", got.Modal)
	}
	must[guild.Interaction](t)(s.Submit("bob", "form", map[string]string{"reason": "because"}))
	sent := next(t, modals, "modal")
	if sent.Data.Text("reason") != "because" || sent.Message == nil || sent.Message.ID != plain.ID {
		t.Fatalf("modal %+v", sent.Data)
	}
	ok(t, sent.CreateMessage(discord.NewMessageCreate().WithContent("I see")))
	must[guild.Message](t)(s.WaitMessage(within(t), func(m guild.Message) bool {
		return m.Content == "I see" && m.Reference != nil && m.Reference.MessageID == guild.ID(plain.ID)
	}))
}

func TestDisgoPlaces(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{NoRateLimits: true, Roles: []guild.RoleSpec{{Name: "crew", Mentionable: true}}})
	c := client(t, s, "chorus", allIntents)
	general, forum := flake(s.Channel("general")), flake(s.Channel("ideas"))
	m, err := c.Rest.CreateMessage(general, discord.NewMessageCreate().WithContent("with a file").AddFile("notes.txt", "some notes", strings.NewReader("hello")))
	ok(t, err)
	if len(m.Attachments) != 1 || m.Attachments[0].Filename != "notes.txt" || *m.Attachments[0].Description != "some notes" || m.Attachments[0].Size != 5 {
		t.Fatalf("attachments %+v", m.Attachments)
	}
	thread, err := c.Rest.CreateThreadFromMessage(general, m.ID, discord.ThreadCreateFromMessage{Name: "aside"})
	ok(t, err)
	if thread.ID() != m.ID {
		t.Fatal("a thread on a message has another id than the message")
	}
	post, err := c.Rest.CreatePostInThreadChannel(forum, discord.ThreadChannelPostCreate{Name: "an idea", Message: discord.NewMessageCreate().WithContent("what if")})
	ok(t, err)
	if post.Message.Content != "what if" || post.Message.ID != post.ID() {
		t.Fatalf("post %+v", post)
	}
	active, err := c.Rest.GetActiveGuildThreads(flake(s.Guild()))
	ok(t, err)
	if len(active.Threads) != 2 {
		t.Fatalf("%d active threads", len(active.Threads))
	}
	hook, err := c.Rest.CreateWebhook(general, discord.WebhookCreate{Name: "tools"})
	ok(t, err)
	said, err := c.Rest.CreateWebhookMessage(hook.ID(), hook.Token, discord.WebhookMessageCreate{Content: "ran", Username: "runner"}, rest.CreateWebhookMessageParams{Wait: true})
	ok(t, err)
	if said.Author.Username != "runner" || said.WebhookID == nil || *said.WebhookID != hook.ID() {
		t.Fatalf("webhook message %+v", said)
	}
	_, err = c.Rest.UpdateWebhookMessage(hook.ID(), hook.Token, said.ID, discord.NewWebhookMessageUpdate().WithContent("ran twice"), rest.UpdateWebhookMessageParams{})
	ok(t, err)
	ok(t, c.Rest.PinMessage(general, said.ID))
	pins, err := c.Rest.GetChannelPins(general, m.CreatedAt.AddDate(1, 0, 0), 10)
	ok(t, err)
	if len(pins.Items) != 1 || pins.Items[0].Message.Content != "ran twice" {
		t.Fatalf("pins %+v", pins)
	}
	ok(t, c.Rest.AddMemberRole(flake(s.Guild()), flake(s.User("bob")), flake(s.Role("crew"))))
	member, err := c.Rest.GetMember(flake(s.Guild()), flake(s.User("bob")))
	ok(t, err)
	if len(member.RoleIDs) != 1 {
		t.Fatalf("roles %v", member.RoleIDs)
	}
	none := discord.NewMessageCreate().WithContent("<@" + s.User("bob").String() + "> <@&" + s.Role("crew").String() + "> @everyone")
	silent, err := c.Rest.CreateMessage(general, none.WithAllowedMentions(&discord.AllowedMentions{}))
	ok(t, err)
	if len(silent.Mentions) != 0 || len(silent.MentionRoles) != 0 || silent.MentionEveryone {
		t.Fatalf("without allowed mentions it pings %+v", silent)
	}
	loud, err := c.Rest.CreateMessage(general, none.WithAllowedMentions(&discord.AllowedMentions{Parse: []discord.AllowedMentionType{discord.AllowedMentionTypeUsers, discord.AllowedMentionTypeRoles, discord.AllowedMentionTypeEveryone}}))
	ok(t, err)
	if len(loud.Mentions) != 1 || len(loud.MentionRoles) != 1 || !loud.MentionEveryone {
		t.Fatalf("with all of them it pings %+v", loud)
	}
	channel, err := c.Rest.CreateGuildChannel(flake(s.Guild()), discord.GuildTextChannelCreate{Name: "fresh", Topic: "new"})
	ok(t, err)
	ok(t, c.Rest.DeleteChannel(channel.ID()))
	ok(t, c.Rest.BulkDeleteMessages(general, []snowflake.ID{silent.ID, loud.ID}))
	if info, err := c.Rest.GetBotApplicationInfo(); err != nil || info.ID != c.ApplicationID {
		t.Fatalf("application %v %v", info, err)
	}
	dm, err := c.Rest.CreateDMChannel(flake(s.User("ada")))
	ok(t, err)
	if _, err := c.Rest.CreateMessage(dm.ID(), discord.NewMessageCreate().WithContent("psst")); err != nil {
		t.Fatal(err)
	}
}

func TestInteractionsEndInTime(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	s := StartT(t, Options{Clock: clock, NoRateLimits: true})
	c := client(t, s, "chorus", gateway.IntentGuilds)
	_, err := c.Rest.SetGlobalCommands(c.ApplicationID, agentCommands[:1])
	ok(t, err)
	i := must[guild.Interaction](t)(s.Slash("ada", "general", "chorus", "agent init", map[string]any{"name": "x"}))
	clock.pass(3 * time.Second)
	if got := must[guild.Interaction](t)(s.WaitInteraction(within(t), i.ID)); !got.Failed {
		t.Fatalf("it has not failed: %+v", got)
	}
	token := "sim-interaction-" + i.ID.String()
	err = c.Rest.CreateInteractionResponse(flake(i.ID), token, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredCreateMessage})
	if !rest.IsJSONErrorCode(err, 10062) {
		t.Fatalf("too late: %v", err)
	}
	_, err = c.Rest.CreateFollowupMessage(c.ApplicationID, token, discord.NewMessageCreate().WithContent("late"))
	if !rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownWebhook) {
		t.Fatalf("a follow-up without an answer: %v", err)
	}
}
