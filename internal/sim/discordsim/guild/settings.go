package guild

import (
	"fmt"
	"time"
)

// Settings describe a guild, and connect it to the holder of its lock.
type Settings struct {
	Name     string
	System   string // the channel in which Discord greets new members; "": none
	Bots     []BotSpec
	People   []PersonSpec
	Roles    []RoleSpec
	Channels []ChannelSpec

	URL       string  // where attachments are read from
	TimeScale float64 // how many times faster its time runs
	Now       func() time.Time
	Emit      func(Event)                 // gets events, in order
	After     func(time.Duration, func()) // calls after a delay, with the lock held
}

// BotSpec is an application with its bot.
type BotSpec struct {
	Name string `yaml:"name"`
	// Intents are the privileged intents that its owner enabled (members, presences, content); nil: all.
	Intents *[]string `yaml:"intents"`
	// Permissions of its role; nil: all but administrator.
	Permissions *[]string `yaml:"permissions"`
	Roles       []string  `yaml:"roles"`
	// Away means that it is not in the guild until somebody invites it.
	Away bool `yaml:"away"`
}

// PersonSpec is a member who is a person.
type PersonSpec struct {
	Name  string   `yaml:"name"`
	Nick  string   `yaml:"nick"`
	Roles []string `yaml:"roles"`
	Owner bool     `yaml:"owner"`
}

// RoleSpec is a role; "@everyone" changes what everybody may do.
type RoleSpec struct {
	Name        string   `yaml:"name"`
	Color       int      `yaml:"color"`
	Permissions []string `yaml:"permissions"`
	Mentionable bool     `yaml:"mentionable"`
}

// ChannelSpec is a channel. Allow and Deny map the name of a role, a person or a bot to permissions.
type ChannelSpec struct {
	Name     string              `yaml:"name"`
	Type     string              `yaml:"type"` // text, forum, announcement, category, voice
	Topic    string              `yaml:"topic"`
	Parent   string              `yaml:"parent"`
	SlowMode int                 `yaml:"slowMode"`
	Tags     []string            `yaml:"tags"`
	Allow    map[string][]string `yaml:"allow"`
	Deny     map[string][]string `yaml:"deny"`
}

// permissions parses the names of permissions.
func permissions(names []string) (Perm, error) {
	var all Perm
	for _, name := range names {
		p, ok := permNames[name]
		if !ok {
			return 0, fmt.Errorf("there is no permission %q; use Discord's names in lower case, such as send_messages", name)
		}
		all |= p
	}
	return all, nil
}
