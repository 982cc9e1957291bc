package discordsim

import (
	"net/http"
	"slices"
	"time"
)

// The kinds of interactions.
const (
	interactCommand      = 2
	interactComponent    = 3
	interactAutocomplete = 4
	interactModal        = 5
)

const (
	// answerWithin is how long an application has for its first answer.
	answerWithin = 3 * time.Second
	// tokenLives is how long it may then write and change answers.
	tokenLives = 15 * time.Minute
)

// interaction is one use of a command, a component or a modal.
type interaction struct {
	id      ID
	token   string
	kind    int
	app     *account
	person  *account
	channel *Channel
	data    object
	message *Message // under which the component was
	made    time.Time
	nonce   any

	taken    bool // the person has installed the application, and takes the command along
	acked    bool
	failed   bool
	answer   int // the kind of the first answer
	original ID
	written  []ID
	modal    object
	choices  []object
}

// interactionBody is what a person's client sends.
type interactionBody struct {
	Type          int    `json:"type"`
	ApplicationID ID     `json:"application_id"`
	ChannelID     ID     `json:"channel_id"`
	MessageID     ID     `json:"message_id"`
	Nonce         any    `json:"nonce"`
	Data          object `json:"data"`
}

// interact is a person using something of an application's.
func (w *world) interact(by *account, b *interactionBody) (*interaction, error) {
	if by.Bot {
		return nil, refuse(http.StatusForbidden, 20001, "Bots cannot use this endpoint")
	}
	c, err := w.place(by, b.ChannelID, 0)
	if err != nil {
		return nil, err
	}
	if b.Data == nil {
		return nil, wrong("data", "BASE_TYPE_REQUIRED", "This field is required")
	}
	app := w.account(b.ApplicationID)
	i := &interaction{kind: b.Type, app: app, person: by, channel: c, data: b.Data, nonce: b.Nonce}
	switch b.Type {
	case interactCommand, interactAutocomplete:
		err = w.useCommand(i)
	case interactComponent:
		err = w.useComponent(i, b.MessageID)
	case interactModal:
		err = w.useModal(i)
	default:
		err = wrong("type", "BASE_TYPE_CHOICES", "Value must be one of {2, 3, 4, 5}.")
	}
	if err != nil {
		return nil, err
	}
	w.start(i)
	return i, nil
}

// start sends an interaction to its application and begins to wait.
func (w *world) start(i *interaction) {
	i.id, i.made = w.id(), w.now()
	i.token = "sim-interaction-" + i.id.String()
	w.interactions = append(w.interactions, i)
	w.emit(event{name: "INTERACTION_CREATE", only: i.app.ID, data: w.interactionView(i)})
	w.after(w.scale(answerWithin), func() {
		if !i.acked {
			i.failed = true
			w.tellPerson(i, "INTERACTION_FAILURE", nil)
		}
	})
}

func (w *world) tellPerson(i *interaction, name string, more object) {
	data := object{"id": i.id, "nonce": i.nonce}
	for k, v := range more {
		data[k] = v
	}
	w.emit(event{name: name, only: i.person.ID, data: data})
}

func (w *world) useCommand(i *interaction) error {
	unknown := notFound(10063, "Application Command")
	if i.app == nil || !i.app.Bot {
		return notFound(10002, "Application")
	}
	id, _ := ParseID(textOf(i.data, "id"))
	name := textOf(i.data, "name")
	c := find(i.app.commands, func(c *Command) bool {
		return (c.GuildID == 0 || c.GuildID == w.guild) && (c.ID == id || id == 0 && c.Name == name)
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
	have := w.rights(i.person, i.channel)
	if !have.Has(PermUseCommands) || c.Permissions != nil && (*c.Permissions == 0 && !have.Has(PermAdministrator) || !have.Has(*c.Permissions)) {
		return noAccess()
	}
	i.data["id"], i.data["name"], i.data["type"] = c.ID, c.Name, c.Type
	if c.GuildID != 0 {
		i.data["guild_id"] = c.GuildID
	}
	resolved := w.resolver(i)
	if c.Type == commandChat {
		if err := fillOptions(listOf(i.data, "options"), c.Options, resolved, i.kind == interactAutocomplete, "data.options"); err != nil {
			return err
		}
	} else {
		target, err := ParseID(textOf(i.data, "target_id"))
		if err != nil {
			return wrong("data.target_id", "BASE_TYPE_REQUIRED", "This field is required")
		}
		if c.Type == commandUser {
			resolved.take(6, target)
		} else if m := i.channel.message(target); m != nil {
			resolved.put("messages", target, w.view(m, i.app.ID, false))
		} else {
			return notFound(10008, "Message")
		}
	}
	resolved.into(i.data)
	return nil
}

// fillOptions checks the options of a use against those of the command, and gives them their types.
func fillOptions(used, defined []object, r *resolver, partial bool, at string) error {
	for n, o := range used {
		i := slices.IndexFunc(defined, func(d object) bool { return textOf(d, "name") == textOf(o, "name") })
		if i < 0 {
			return wrong(index(at, n), "APPLICATION_COMMAND_OPTION_UNKNOWN", "There is no option %q", textOf(o, "name"))
		}
		kind := kindOf(defined[i])
		o["type"] = kind
		if kind <= 2 { // a subcommand, or a group of them
			if err := fillOptions(listOf(o, "options"), listOf(defined[i], "options"), r, partial, index(at, n)+".options"); err != nil {
				return err
			}
			continue
		}
		if text, ok := o["value"].(string); ok && kind == optionString {
			if most, limited := defined[i]["max_length"].(float64); limited && len([]rune(text)) > int(most) {
				return wrong(index(at, n)+".value", "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", int(most))
			}
		}
		if kind == optionFile {
			s, _ := o["value"].(string)
			id, err := ParseID(s)
			if err != nil || !r.takeFile(id) {
				return wrong(index(at, n)+".value", "APPLICATION_COMMAND_OPTION_ATTACHMENT_UNKNOWN", "There is no attachment %q", s)
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
		given := slices.ContainsFunc(used, func(o object) bool { return textOf(o, "name") == textOf(d, "name") })
		if required && !given && !partial {
			return wrong(at, "APPLICATION_COMMAND_OPTIONS_REQUIRED", "The option %q is required", textOf(d, "name"))
		}
	}
	return nil
}

func (w *world) useComponent(i *interaction, message ID) error {
	m := i.channel.message(message)
	if m == nil || m.seenBy != 0 && m.seenBy != i.person.ID {
		return notFound(10008, "Message")
	}
	i.message = m
	if i.app == nil {
		i.app = w.account(m.Author.ID)
	}
	o := findComponent(m.Components, textOf(i.data, "custom_id"))
	if i.app == nil || !i.app.Bot || o == nil || m.Author.ID != i.app.ID {
		return wrong("data", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
	}
	if off, _ := o["disabled"].(bool); off {
		return wrong("data", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
	}
	kind := kindOf(o)
	i.data["component_type"] = kind
	if n, ok := o["id"]; ok {
		i.data["id"] = n
	}
	if !isSelect(kind) {
		return nil
	}
	values, _ := i.data["values"].([]any)
	if least, most := numberOr(o, "min_values", 1), numberOr(o, "max_values", 1); len(values) < least || len(values) > most {
		return wrong("data.values", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
	}
	r := w.resolver(i)
	for _, v := range values {
		s, _ := v.(string)
		if kind == componentSelect {
			if !slices.ContainsFunc(listOf(o, "options"), func(opt object) bool { return textOf(opt, "value") == s }) {
				return wrong("data.values", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
			}
			continue
		}
		if id, err := ParseID(s); err == nil {
			r.take(map[int]int{componentUsers: 6, 6: 8, componentAny: 9, componentChannel: 7}[kind], id)
		}
	}
	r.into(i.data)
	return nil
}

// numberOr is a number of a component, or what it is without one.
func numberOr(o object, key string, otherwise int) int {
	if n, ok := o[key].(float64); ok {
		return int(n)
	}
	return otherwise
}

func (w *world) useModal(i *interaction) error {
	for n := len(w.interactions) - 1; n >= 0; n-- {
		from := w.interactions[n]
		if from.person == i.person && from.modal != nil && textOf(from.modal, "custom_id") == textOf(i.data, "custom_id") {
			if err := checkFilled(listOf(from.modal, "components"), listOf(i.data, "components")); err != nil {
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
	return wrong("data", "MODAL_UNKNOWN", "No such modal is open")
}

// checkFilled holds what was written in a modal against its inputs, as clients do before they send it.
func checkFilled(asked, given []object) error {
	f := &form{}
	values := inputsOf(given)
	for id, input := range inputsOf(asked) {
		written := textOf(values[id], "value")
		required, said := input["required"].(bool)
		if (required || !said) && kindOf(input) == componentInput && written == "" {
			f.required("data.components." + id)
		}
		if most, ok := input["max_length"].(float64); ok {
			f.longest("data.components."+id, written, int(most))
		}
	}
	return f.err()
}

// inputsOf are the parts of a modal that have a custom id.
func inputsOf(list []object) map[string]object {
	out := map[string]object{}
	for _, o := range list {
		if id := textOf(o, "custom_id"); id != "" {
			out[id] = o
		}
		children := listOf(o, "components")
		if child, ok := o["component"].(map[string]any); ok {
			children = append(children, child)
		}
		for id, child := range inputsOf(children) {
			out[id] = child
		}
	}
	return out
}

// interactionView is the interaction as its application gets it.
func (w *world) interactionView(i *interaction) object {
	perms := w.rights(i.person, i.channel)
	out := object{
		"id": i.id, "application_id": i.app.ID, "type": i.kind, "data": i.data, "channel_id": i.channel.ID, "token": i.token, "version": 1,
		"app_permissions": w.rights(i.app, i.channel), "locale": "en-US", "entitlements": []any{}, "attachment_size_limit": attachmentLimit,
		"channel": struct {
			*Channel
			Permissions Perm `json:"permissions"`
		}{dmSeenBy(i.channel, i.app.ID), perms},
	}
	if i.channel.GuildID != 0 {
		member := w.memberOf(i.person, true)
		member.Permissions = &perms
		out["guild_id"], out["guild_locale"], out["member"], out["context"] = w.guild, "en-US", member, 0
		out["guild"] = object{"id": w.guild, "locale": "en-US", "features": []string{}}
		out["authorizing_integration_owners"] = object{"0": w.guild}
	} else {
		out["user"], out["context"], out["authorizing_integration_owners"] = i.person.User, 1, object{"0": "0"}
	}
	if i.taken {
		owners := out["authorizing_integration_owners"].(object)
		owners["1"] = i.person.ID
		if !w.sees(i.app, i.channel) {
			delete(owners, "0")
		}
	}
	if i.message != nil {
		out["message"] = w.view(i.message, i.app.ID, false)
	}
	return out
}

// sign marks a message as an answer to this interaction.
func (i *interaction) sign(m *Message) {
	meta := object{"id": i.id, "type": i.kind, "user": i.person.User, "authorizing_integration_owners": object{"0": m.GuildID}}
	if i.message != nil {
		meta["interacted_message_id"] = i.message.ID
	}
	if i.kind == interactCommand {
		meta["name"], meta["command_type"] = i.data["name"], i.data["type"]
		m.OldInteraction = object{"id": i.id, "type": i.kind, "name": i.data["name"], "user": i.person.User}
	}
	m.Interaction = meta
}

// resolver collects what the values of an interaction stand for.
type resolver struct {
	w    *world
	at   *Channel
	who  *account
	data map[string]map[string]any
}

func (w *world) resolver(i *interaction) *resolver {
	return &resolver{w: w, at: i.channel, who: i.person, data: map[string]map[string]any{}}
}

func (r *resolver) put(kind string, id ID, v any) {
	if r.data[kind] == nil {
		r.data[kind] = map[string]any{}
	}
	r.data[kind][id.String()] = v
}

// takeFile resolves a file that a person uploaded with a command; false: there is none.
func (r *resolver) takeFile(id ID) bool {
	a, ok := r.w.uploads[id]
	if ok {
		r.put("attachments", id, a)
	}
	return ok
}

// take resolves one id; kind is that of a command's option: 6 user, 7 channel, 8 role, 9 anybody.
func (r *resolver) take(kind int, id ID) {
	if a := r.w.account(id); a != nil && (kind == 6 || kind == 9) {
		r.put("users", id, a.User)
		if m := r.w.memberOf(a, false); m != nil {
			perms := r.w.rights(a, r.at)
			m.Permissions = &perms
			r.put("members", id, m)
		}
	}
	if role := r.w.role(id); role != nil && (kind == 8 || kind == 9) {
		r.put("roles", id, roleView(role))
	}
	if c := r.w.channel(id); c != nil && kind == 7 {
		r.put("channels", id, struct {
			*Channel
			Permissions Perm `json:"permissions"`
		}{c, r.w.rights(r.who, c)})
	}
}

func (r *resolver) into(data object) {
	if len(r.data) > 0 {
		data["resolved"] = r.data
	}
}
