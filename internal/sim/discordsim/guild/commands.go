package guild

import (
	"fmt"
	"slices"

	"chorus/internal/pattern"
	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/jsonobject"
)

// Command is an application's command. Options are unchanged.
type Command struct {
	ID                ID             `json:"id"`
	ApplicationID     ID             `json:"application_id"`
	GuildID           ID             `json:"guild_id,omitzero"`
	Version           ID             `json:"version"`
	Type              int            `json:"type"`
	Name              string         `json:"name"`
	NameLocal         map[string]any `json:"name_localizations"`
	Description       string         `json:"description"`
	DescLocal         map[string]any `json:"description_localizations"`
	Options           []object       `json:"options,omitempty"`
	Permissions       *Perm          `json:"default_member_permissions"`
	DMPermission      *bool          `json:"dm_permission,omitempty"`
	NSFW              bool           `json:"nsfw"`
	Contexts          []int          `json:"contexts"`
	IntegrationTypes  []int          `json:"integration_types"`
	DefaultPermission bool           `json:"default_permission"`
}

// The kinds of commands.
const (
	commandChat    = 1
	commandUser    = 2
	commandMessage = 3
)

// The kinds of options whose values are checked.
const (
	optionString = 3
	optionFile   = 11
)

var commandName = pattern.Lazy(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)

func (c *Command) check(f *apierror.Form, at string) {
	if c.Type == 0 {
		c.Type = commandChat
	}
	switch {
	case c.Type < commandChat || c.Type > 4:
		f.Add(at+"type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4}.")
	case c.Name == "":
		f.Required(at + "name")
	case c.Type == commandChat && (!commandName().MatchString(c.Name) || lower(c.Name) != c.Name):
		f.Add(at+"name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
	}
	f.Longest(at+"name", c.Name, 32)
	if c.Type == commandChat {
		f.Between(at+"description", len([]rune(c.Description)), 1, 100)
	} else if c.Description != "" || len(c.Options) > 0 {
		f.Add(at+"description", "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION_NOT_ALLOWED", "Context menu commands cannot have a description or options")
	}
	checkLocalized(f, at, c.NameLocal, c.DescLocal, c.Type == commandChat)
	for i, n := range c.Contexts {
		if n < 0 || n > 2 {
			f.Add(apierror.Item(at+"contexts", i), "BASE_TYPE_CHOICES", "Value must be one of {0, 1, 2}.")
		}
	}
	for i, n := range c.IntegrationTypes {
		if n < 0 || n > 1 {
			f.Add(apierror.Item(at+"integration_types", i), "BASE_TYPE_CHOICES", "Value must be one of {0, 1}.")
		}
	}
	checkCommandOptions(f, at+"options", c.Options)
}

// languages are those that commands can be translated to.
var languages = []string{"id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl", "no", "pl", "pt-BR", "ro", "fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th", "zh-CN",
	"ja", "zh-TW", "ko"}

// checkLocalized validates translated names and descriptions by the rules of the originals.
func checkLocalized(f *apierror.Form, at string, names, descriptions map[string]any, strict bool) {
	for language, v := range names {
		name, _ := v.(string)
		switch where := at + "name_localizations." + language; {
		case !slices.Contains(languages, language):
			f.Add(where, "BASE_TYPE_CHOICES", "There is no such locale.")
		case strict && (!commandName().MatchString(name) || lower(name) != name):
			f.Add(where, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		default:
			f.Between(where, len([]rune(name)), 1, 32)
		}
	}
	for language, v := range descriptions {
		text, _ := v.(string)
		f.Between(at+"description_localizations."+language, len([]rune(text)), 1, 100)
	}
}

func checkCommandOptions(f *apierror.Form, at string, options []object) {
	if len(options) > 25 {
		f.Add(at, "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	}
	seen, optional := map[string]bool{}, false
	for i, o := range options {
		where := apierror.Item(at, i)
		name := jsonobject.Text(o, "name")
		if !commandName().MatchString(name) || lower(name) != name {
			f.Add(where+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		if seen[name] {
			f.Add(where+".name", "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option name already exists")
		}
		seen[name] = true
		f.Between(where+".description", len([]rune(jsonobject.Text(o, "description"))), 1, 100)
		names, _ := o["name_localizations"].(map[string]any)
		descriptions, _ := o["description_localizations"].(map[string]any)
		checkLocalized(f, where+".", names, descriptions, true)
		kind := jsonobject.Kind(o)
		if kind < 1 || kind > 11 {
			f.Add(where+".type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}.")
		}
		required, _ := o["required"].(bool)
		if required && optional {
			f.Add(where+".required", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
		optional = optional || !required && kind > 2
		choices := jsonobject.List(o, "choices")
		if len(choices) > 25 {
			f.Add(where+".choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		if auto, _ := o["autocomplete"].(bool); auto && len(choices) > 0 {
			f.Add(where+".choices", "APPLICATION_COMMAND_OPTIONS_CHOICES_AUTOCOMPLETE", "Choices cannot be given together with autocomplete")
		}
		checkCommandOptions(f, where+".options", jsonobject.List(o, "options"))
	}
}

func lower(s string) string {
	out := []rune(s)
	for i, r := range out {
		if r >= 'A' && r <= 'Z' {
			out[i] = r + 'a' - 'A'
		}
	}
	return string(out)
}

// SetCommand adds a command, or replaces the one with its name in the same scope.
func (g *Guild) SetCommand(app *Account, guild ID, c Command) (*Command, bool, error) {
	f := &apierror.Form{}
	c.check(f, "")
	if err := f.Err(); err != nil {
		return nil, false, err
	}
	have := find(app.Commands, func(o *Command) bool { return o.GuildID == guild && o.Name == c.Name && o.Type == c.Type })
	c.ApplicationID, c.GuildID, c.Version, c.DefaultPermission = app.ID, guild, g.NewID(), true
	if c.IntegrationTypes == nil {
		c.IntegrationTypes = []int{0}
	}
	if have != nil {
		c.ID = have.ID
		*have = c
		return have, false, nil
	}
	if len(app.CommandsIn(guild)) >= 125 {
		return nil, false, apierror.BadRequest(30032, "Maximum number of application commands reached (125)")
	}
	c.ID = g.NewID()
	app.Commands = append(app.Commands, &c)
	return &c, true, nil
}

// OverwriteCommands replaces all commands of one scope.
func (g *Guild) OverwriteCommands(app *Account, guild ID, list []Command) ([]*Command, error) {
	f := &apierror.Form{}
	seen := map[string]bool{}
	for i := range list {
		list[i].check(f, fmt.Sprintf("%d.", i))
		key := fmt.Sprint(list[i].Type, list[i].Name)
		if seen[key] {
			f.Add(fmt.Sprintf("%d.name", i), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		seen[key] = true
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	app.Commands = slices.DeleteFunc(app.Commands, func(o *Command) bool {
		return o.GuildID == guild && !seen[fmt.Sprint(o.Type, o.Name)]
	})
	for _, c := range list {
		if _, _, err := g.SetCommand(app, guild, c); err != nil {
			return nil, err
		}
	}
	return app.CommandsIn(guild), nil
}

// Command returns a command of an application; nil: it has none with this id there.
func (a *Account) Command(scope, id ID) *Command {
	return find(a.CommandsIn(scope), func(c *Command) bool { return c.ID == id })
}

// CommandsIn returns the commands of an application for one guild; 0: for all.
func (a *Account) CommandsIn(guild ID) []*Command {
	out := []*Command{}
	for _, c := range a.Commands {
		if c.GuildID == guild {
			out = append(out, c)
		}
	}
	return out
}

// ChangeCommand replaces a command.
func (g *Guild) ChangeCommand(have *Command, next Command) error {
	f := &apierror.Form{}
	next.check(f, "")
	if err := f.Err(); err != nil {
		return err
	}
	next.ID, next.ApplicationID, next.GuildID, next.Version = have.ID, have.ApplicationID, have.GuildID, g.NewID()
	*have = next
	return nil
}

// DropCommand deletes a command.
func (a *Account) DropCommand(c *Command) {
	a.Commands = slices.DeleteFunc(a.Commands, func(have *Command) bool { return have == c })
}

// Offered reports whether Discord shows a command to somebody in a channel.
func (g *Guild) Offered(a *Account, in *Channel, c *Command) bool {
	context := 0 // a guild
	if in.GuildID == 0 {
		context = 1
	}
	have := g.Rights(a, in)
	return have.Has(PermUseCommands) && (c.Contexts == nil || slices.Contains(c.Contexts, context)) &&
		(c.Permissions == nil || *c.Permissions == 0 && have.Has(PermAdministrator) || *c.Permissions != 0 && have.Has(*c.Permissions))
}
