package guild

import (
	"net/http"
	"slices"
	"time"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/jsonobject"
)

// The kinds of interactions.
const (
	InteractCommand      = 2
	InteractComponent    = 3
	InteractAutocomplete = 4
	interactModal        = 5
)

const (
	// answerWithin is the time limit for an application's first answer.
	answerWithin = 3 * time.Second
	// tokenLives is how long it may then write and change answers.
	tokenLives = 15 * time.Minute
)

// interaction is one use of a command, a component or a modal.
type interaction struct {
	id      ID
	token   string
	kind    int
	app     *Account
	person  *Account
	channel *Channel
	data    object
	message *Message // under which the component was
	made    time.Time
	nonce   any

	taken    bool // the person installed the application, so the command is available everywhere
	acked    bool
	failed   bool
	answer   int // the kind of the first answer
	original ID
	written  []ID
	modal    object
	choices  []object
}

// InteractionBody is what a person's client sends.
type InteractionBody struct {
	Type          int    `json:"type"`
	ApplicationID ID     `json:"application_id"`
	ChannelID     ID     `json:"channel_id"`
	MessageID     ID     `json:"message_id"`
	Nonce         any    `json:"nonce"`
	Data          object `json:"data"`
}

// Interact is a person's use of an application's command, component or modal.
func (g *Guild) Interact(by *Account, b *InteractionBody) (ID, error) {
	if by.Bot {
		return 0, apierror.Refuse(http.StatusForbidden, 20001, "Bots cannot use this endpoint")
	}
	c, err := g.Place(by, b.ChannelID, 0)
	if err != nil {
		return 0, err
	}
	if b.Data == nil {
		return 0, apierror.Wrong("data", "BASE_TYPE_REQUIRED", "This field is required")
	}
	app := g.Account(b.ApplicationID)
	i := &interaction{kind: b.Type, app: app, person: by, channel: c, data: b.Data, nonce: b.Nonce}
	switch b.Type {
	case InteractCommand, InteractAutocomplete:
		err = g.useCommand(i)
	case InteractComponent:
		err = g.useComponent(i, b.MessageID)
	case interactModal:
		err = g.useModal(i)
	default:
		err = apierror.Wrong("type", "BASE_TYPE_CHOICES", "Value must be one of {2, 3, 4, 5}.")
	}
	if err != nil {
		return 0, err
	}
	g.start(i)
	return i.id, nil
}

// start sends an interaction to its application and starts its time limit.
func (g *Guild) start(i *interaction) {
	i.id, i.made = g.NewID(), g.Now()
	i.token = "sim-interaction-" + i.id.String()
	g.interactions = append(g.interactions, i)
	g.emit(Event{Name: "INTERACTION_CREATE", only: i.app.ID, data: g.interactionView(i)})
	g.after(g.Scale(answerWithin), func() {
		if !i.acked {
			i.failed = true
			g.tellPerson(i, "INTERACTION_FAILURE", nil)
		}
	})
}

func (g *Guild) tellPerson(i *interaction, name string, more object) {
	data := object{"id": i.id, "nonce": i.nonce}
	for k, v := range more {
		data[k] = v
	}
	g.emit(Event{Name: name, only: i.person.ID, data: data})
}

func (g *Guild) useCommand(i *interaction) error {
	unknown := apierror.NotFound(10063, "Application Command")
	if i.app == nil || !i.app.Bot {
		return apierror.NotFound(10002, "Application")
	}
	id, _ := ParseID(jsonobject.Text(i.data, "id"))
	name := jsonobject.Text(i.data, "name")
	c := find(i.app.Commands, func(c *Command) bool {
		return (c.GuildID == 0 || c.GuildID == g.ID) && (c.ID == id || id == 0 && c.Name == name)
	})
	if c == nil {
		return unknown
	}
	in := 0 // a guild
	if i.channel.GuildID == 0 {
		in = 1 // a direct message with the bot
	}
	if c.Contexts != nil && !slices.Contains(c.Contexts, in) {
		return unknown
	}
	i.taken = slices.Contains(c.IntegrationTypes, 1) && slices.Contains(i.app.installed, i.person.ID)
	have := g.Rights(i.person, i.channel)
	if !have.Has(PermUseCommands) || c.Permissions != nil && (*c.Permissions == 0 && !have.Has(PermAdministrator) || !have.Has(*c.Permissions)) {
		return apierror.NoAccess()
	}
	i.data["id"], i.data["name"], i.data["type"] = c.ID, c.Name, c.Type
	if c.GuildID != 0 {
		i.data["guild_id"] = c.GuildID
	}
	resolved := g.resolver(i)
	if c.Type == commandChat {
		if err := fillOptions(jsonobject.List(i.data, "options"), c.Options, resolved, i.kind == InteractAutocomplete, "data.options"); err != nil {
			return err
		}
	} else {
		target, err := ParseID(jsonobject.Text(i.data, "target_id"))
		if err != nil {
			return apierror.Wrong("data.target_id", "BASE_TYPE_REQUIRED", "This field is required")
		}
		if c.Type == commandUser {
			resolved.take(6, target)
		} else if m := i.channel.Message(target); m != nil {
			resolved.put("messages", target, g.ViewMessage(m, i.app.ID, false))
		} else {
			return apierror.NotFound(10008, "Message")
		}
	}
	resolved.into(i.data)
	return nil
}

// fillOptions checks the options of a use against the command, and sets their types.
func fillOptions(used, defined []object, r *resolver, partial bool, at string) error {
	for n, o := range used {
		i := slices.IndexFunc(defined, func(d object) bool { return jsonobject.Text(d, "name") == jsonobject.Text(o, "name") })
		if i < 0 {
			return apierror.Wrong(apierror.Item(at, n), "APPLICATION_COMMAND_OPTION_UNKNOWN", "There is no option %q", jsonobject.Text(o, "name"))
		}
		kind := jsonobject.Kind(defined[i])
		o["type"] = kind
		if kind <= 2 { // a subcommand, or a group of them
			if err := fillOptions(jsonobject.List(o, "options"), jsonobject.List(defined[i], "options"), r, partial, apierror.Item(at, n)+".options"); err != nil {
				return err
			}
			continue
		}
		if text, ok := o["value"].(string); ok && kind == optionString {
			if most, limited := defined[i]["max_length"].(float64); limited && len([]rune(text)) > int(most) {
				return apierror.Wrong(apierror.Item(at, n)+".value", "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", int(most))
			}
		}
		if kind == optionFile {
			s, _ := o["value"].(string)
			id, err := ParseID(s)
			if err != nil || !r.takeFile(id) {
				return apierror.Wrong(apierror.Item(at, n)+".value", "APPLICATION_COMMAND_OPTION_ATTACHMENT_UNKNOWN", "There is no attachment %q", s)
			}
		}
		if kind >= 6 && kind <= 9 {
			s, _ := o["value"].(string)
			if id, err := ParseID(s); err == nil {
				r.take(kind, id)
			}
		}
	}
	for _, d := range defined {
		required, _ := d["required"].(bool)
		given := slices.ContainsFunc(used, func(o object) bool { return jsonobject.Text(o, "name") == jsonobject.Text(d, "name") })
		if required && !given && !partial {
			return apierror.Wrong(at, "APPLICATION_COMMAND_OPTIONS_REQUIRED", "The option %q is required", jsonobject.Text(d, "name"))
		}
	}
	return nil
}

func (g *Guild) useComponent(i *interaction, message ID) error {
	m := i.channel.Message(message)
	if m == nil || !m.VisibleTo(i.person.ID) {
		return apierror.NotFound(10008, "Message")
	}
	i.message = m
	if i.app == nil {
		i.app = g.Account(m.Author.ID)
	}
	o := components.Find(m.Components, jsonobject.Text(i.data, "custom_id"))
	if i.app == nil || !i.app.Bot || o == nil || m.Author.ID != i.app.ID {
		return apierror.Wrong("data", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
	}
	if off, _ := o["disabled"].(bool); off {
		return apierror.Wrong("data", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
	}
	kind := jsonobject.Kind(o)
	i.data["component_type"] = kind
	if n, ok := o["id"]; ok {
		i.data["id"] = n
	}
	if !components.IsSelect(kind) {
		return nil
	}
	values, _ := i.data["values"].([]any)
	if least, most := jsonobject.Number(o, "min_values", 1), jsonobject.Number(o, "max_values", 1); len(values) < least || len(values) > most {
		return apierror.Wrong("data.values", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
	}
	r := g.resolver(i)
	for _, v := range values {
		s, _ := v.(string)
		if kind == components.KindSelect {
			if !slices.ContainsFunc(jsonobject.List(o, "options"), func(opt object) bool { return jsonobject.Text(opt, "value") == s }) {
				return apierror.Wrong("data.values", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
			}
			continue
		}
		if id, err := ParseID(s); err == nil {
			r.take(map[int]int{components.KindUsers: 6, 6: 8, components.KindAny: 9, components.KindChannel: 7}[kind], id)
		}
	}
	r.into(i.data)
	return nil
}

func (g *Guild) useModal(i *interaction) error {
	for n := len(g.interactions) - 1; n >= 0; n-- {
		from := g.interactions[n]
		if from.person == i.person && from.modal != nil && jsonobject.Text(from.modal, "custom_id") == jsonobject.Text(i.data, "custom_id") {
			if err := components.CheckFilled(jsonobject.List(from.modal, "components"), jsonobject.List(i.data, "components")); err != nil {
				return err
			}
			i.app, i.message = from.app, from.message
			from.modal = nil
			if _, ok := i.data["resolved"]; !ok {
				i.data["resolved"] = object{}
			}
			return nil
		}
	}
	return apierror.Wrong("data", "MODAL_UNKNOWN", "No such modal is open")
}

// interactionView is the interaction as sent to its application.
func (g *Guild) interactionView(i *interaction) object {
	perms := g.Rights(i.person, i.channel)
	out := object{
		"id": i.id, "application_id": i.app.ID, "type": i.kind, "data": i.data, "channel_id": i.channel.ID, "token": i.token, "version": 1,
		"app_permissions": g.Rights(i.app, i.channel), "locale": "en-US", "entitlements": []any{}, "attachment_size_limit": AttachmentLimit,
		"channel": struct {
			*Channel
			Permissions Perm `json:"permissions"`
		}{DirectSeenBy(i.channel, i.app.ID), perms},
	}
	if i.channel.GuildID != 0 {
		member := g.MemberOf(i.person, true)
		member.Permissions = &perms
		out["guild_id"], out["guild_locale"], out["member"], out["context"] = g.ID, "en-US", member, 0
		out["guild"] = object{"id": g.ID, "locale": "en-US", "features": []string{}}
		out["authorizing_integration_owners"] = object{"0": g.ID}
	} else {
		out["user"], out["context"], out["authorizing_integration_owners"] = i.person.User, 1, object{"0": "0"}
	}
	if i.taken {
		owners := out["authorizing_integration_owners"].(object)
		owners["1"] = i.person.ID
		if !g.Sees(i.app, i.channel) {
			delete(owners, "0")
		}
	}
	if i.message != nil {
		out["message"] = g.ViewMessage(i.message, i.app.ID, false)
	}
	return out
}

// sign marks a message as an answer to this interaction.
func (i *interaction) sign(m *Message) {
	meta := object{"id": i.id, "type": i.kind, "user": i.person.User, "authorizing_integration_owners": object{"0": m.GuildID}}
	if i.message != nil {
		meta["interacted_message_id"] = i.message.ID
	}
	if i.kind == InteractCommand {
		meta["name"], meta["command_type"] = i.data["name"], i.data["type"]
		m.OldInteraction = object{"id": i.id, "type": i.kind, "name": i.data["name"], "user": i.person.User}
	}
	m.Interaction = meta
}

// resolver collects the objects that the values of an interaction refer to.
type resolver struct {
	guild *Guild
	at    *Channel
	who   *Account
	data  map[string]map[string]any
}

func (g *Guild) resolver(i *interaction) *resolver {
	return &resolver{guild: g, at: i.channel, who: i.person, data: map[string]map[string]any{}}
}

func (r *resolver) put(kind string, id ID, v any) {
	if r.data[kind] == nil {
		r.data[kind] = map[string]any{}
	}
	r.data[kind][id.String()] = v
}

// takeFile resolves a file that a person uploaded with a command; false: there is none.
func (r *resolver) takeFile(id ID) bool {
	a, ok := r.guild.uploads[id]
	if ok {
		r.put("attachments", id, a)
	}
	return ok
}

// take resolves one id; kind is that of a command's option: 6 user, 7 channel, 8 role, 9 any.
func (r *resolver) take(kind int, id ID) {
	if a := r.guild.Account(id); a != nil && (kind == 6 || kind == 9) {
		r.put("users", id, a.User)
		if m := r.guild.MemberOf(a, false); m != nil {
			perms := r.guild.Rights(a, r.at)
			m.Permissions = &perms
			r.put("members", id, m)
		}
	}
	if role := r.guild.Role(id); role != nil && (kind == 8 || kind == 9) {
		r.put("roles", id, ViewRole(role))
	}
	if c := r.guild.Channel(id); c != nil && kind == 7 {
		r.put("channels", id, struct {
			*Channel
			Permissions Perm `json:"permissions"`
		}{c, r.guild.Rights(r.who, c)})
	}
}

func (r *resolver) into(data object) {
	if len(r.data) > 0 {
		data["resolved"] = r.data
	}
}
