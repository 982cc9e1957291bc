package discordsim

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// Command is an application's command. Options stay as they came.
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

// The kinds of options whose values are looked at.
const (
	optionString = 3
	optionFile   = 11
)

var commandName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`) })

func (c *Command) check(f *form, at string) {
	if c.Type == 0 {
		c.Type = commandChat
	}
	switch {
	case c.Type < commandChat || c.Type > 4:
		f.add(at+"type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4}.")
	case c.Name == "":
		f.required(at + "name")
	case c.Type == commandChat && (!commandName().MatchString(c.Name) || lower(c.Name) != c.Name):
		f.add(at+"name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
	}
	f.longest(at+"name", c.Name, 32)
	if c.Type == commandChat {
		f.between(at+"description", len([]rune(c.Description)), 1, 100)
	} else if c.Description != "" || len(c.Options) > 0 {
		f.add(at+"description", "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION_NOT_ALLOWED", "Context menu commands cannot have a description or options")
	}
	checkLocalized(f, at, c.NameLocal, c.DescLocal, c.Type == commandChat)
	for i, n := range c.Contexts {
		if n < 0 || n > 2 {
			f.add(index(at+"contexts", i), "BASE_TYPE_CHOICES", "Value must be one of {0, 1, 2}.")
		}
	}
	for i, n := range c.IntegrationTypes {
		if n < 0 || n > 1 {
			f.add(index(at+"integration_types", i), "BASE_TYPE_CHOICES", "Value must be one of {0, 1}.")
		}
	}
	checkCommandOptions(f, at+"options", c.Options)
}

// languages are those that commands can be translated to.
var languages = []string{"id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl", "no", "pl", "pt-BR", "ro", "fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th", "zh-CN",
	"ja", "zh-TW", "ko"}

// checkLocalized holds translated names and descriptions against the rules of the originals.
func checkLocalized(f *form, at string, names, descriptions map[string]any, strict bool) {
	for language, v := range names {
		name, _ := v.(string)
		switch where := at + "name_localizations." + language; {
		case !slices.Contains(languages, language):
			f.add(where, "BASE_TYPE_CHOICES", "There is no such locale.")
		case strict && (!commandName().MatchString(name) || lower(name) != name):
			f.add(where, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		default:
			f.between(where, len([]rune(name)), 1, 32)
		}
	}
	for language, v := range descriptions {
		text, _ := v.(string)
		f.between(at+"description_localizations."+language, len([]rune(text)), 1, 100)
	}
}

func checkCommandOptions(f *form, at string, options []object) {
	if len(options) > 25 {
		f.add(at, "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	}
	seen, optional := map[string]bool{}, false
	for i, o := range options {
		where := index(at, i)
		name := textOf(o, "name")
		if !commandName().MatchString(name) || lower(name) != name {
			f.add(where+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		if seen[name] {
			f.add(where+".name", "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option name already exists")
		}
		seen[name] = true
		f.between(where+".description", len([]rune(textOf(o, "description"))), 1, 100)
		names, _ := o["name_localizations"].(map[string]any)
		descriptions, _ := o["description_localizations"].(map[string]any)
		checkLocalized(f, where+".", names, descriptions, true)
		kind := kindOf(o)
		if kind < 1 || kind > 11 {
			f.add(where+".type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}.")
		}
		required, _ := o["required"].(bool)
		if required && optional {
			f.add(where+".required", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
		optional = optional || !required && kind > 2
		choices := listOf(o, "choices")
		if len(choices) > 25 {
			f.add(where+".choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		if auto, _ := o["autocomplete"].(bool); auto && len(choices) > 0 {
			f.add(where+".choices", "APPLICATION_COMMAND_OPTIONS_CHOICES_AUTOCOMPLETE", "Choices cannot be given together with autocomplete")
		}
		checkCommandOptions(f, where+".options", listOf(o, "options"))
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

// setCommand adds a command, or replaces the one with its name in the same scope.
func (w *world) setCommand(app *account, guild ID, c Command) (*Command, bool, error) {
	f := &form{}
	c.check(f, "")
	if err := f.err(); err != nil {
		return nil, false, err
	}
	have := find(app.commands, func(o *Command) bool { return o.GuildID == guild && o.Name == c.Name && o.Type == c.Type })
	c.ApplicationID, c.GuildID, c.Version, c.DefaultPermission = app.ID, guild, w.id(), true
	if c.IntegrationTypes == nil {
		c.IntegrationTypes = []int{0}
	}
	if have != nil {
		c.ID = have.ID
		*have = c
		return have, false, nil
	}
	if len(app.commandsIn(guild)) >= 125 {
		return nil, false, badRequest(30032, "Maximum number of application commands reached (125)")
	}
	c.ID = w.id()
	app.commands = append(app.commands, &c)
	return &c, true, nil
}

// overwriteCommands replaces all commands of one scope.
func (w *world) overwriteCommands(app *account, guild ID, list []Command) ([]*Command, error) {
	f := &form{}
	seen := map[string]bool{}
	for i := range list {
		list[i].check(f, fmt.Sprintf("%d.", i))
		key := fmt.Sprint(list[i].Type, list[i].Name)
		if seen[key] {
			f.add(fmt.Sprintf("%d.name", i), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		seen[key] = true
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	app.commands = slices.DeleteFunc(app.commands, func(o *Command) bool {
		return o.GuildID == guild && !seen[fmt.Sprint(o.Type, o.Name)]
	})
	for _, c := range list {
		if _, _, err := w.setCommand(app, guild, c); err != nil {
			return nil, err
		}
	}
	return app.commandsIn(guild), nil
}

func (a *account) commandsIn(guild ID) []*Command {
	out := []*Command{}
	for _, c := range a.commands {
		if c.GuildID == guild {
			out = append(out, c)
		}
	}
	return out
}
