package discordsim

import (
	"cmp"
	"fmt"
	"time"
)

// Options say what guild there is and how fast its time runs. The zero value is a
// small guild that can be talked to: one bot, two people, three channels.
type Options struct {
	// Addr is where to listen; empty: a free port of this machine.
	Addr string `yaml:"-"`
	// TimeScale makes rate limits, time-outs and scripts run so many times faster; 0: 1.
	TimeScale float64 `yaml:"timeScale"`
	// NoRateLimits answers however often it is asked.
	NoRateLimits bool `yaml:"noRateLimits"`
	// Replay is how many events a session keeps for a resume; 0: 10,000.
	Replay int `yaml:"replay"`
	// Shards is how many connections a bot is told to make; 0: 1. They may all identify at once.
	Shards int `yaml:"shards"`
	// Clock is what time it is; nil: the machine's.
	Clock Clock `yaml:"-"`

	Guild string `yaml:"guild"`
	// System is the channel in which Discord greets newcomers; "": there is none.
	System   string        `yaml:"system"`
	Bots     []BotSpec     `yaml:"bots"`
	People   []PersonSpec  `yaml:"people"`
	Roles    []RoleSpec    `yaml:"roles"`
	Channels []ChannelSpec `yaml:"channels"`
	// Script is played from the start on, one step after the other.
	Script []Step `yaml:"script"`
}

// BotSpec is an application with its bot.
type BotSpec struct {
	Name string `yaml:"name"`
	// Intents are the privileged ones that its owner switched on (members, presences,
	// content); nil: all of them.
	Intents *[]string `yaml:"intents"`
	// Permissions its role has; nil: all but administrator.
	Permissions *[]string `yaml:"permissions"`
	Roles       []string  `yaml:"roles"`
	// Away: it is not in the guild until somebody invites it.
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

// ChannelSpec is a channel. Allow and Deny are by the name of a role, a person or a bot.
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

// Clock tells the time and rings. Both are called from several goroutines.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }
func (wallClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

var _ Clock = wallClock{}

// filled is o with what was left out.
func (o Options) filled() (Options, error) {
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:0")
	o.TimeScale = cmp.Or(o.TimeScale, 1)
	if o.TimeScale < 0 {
		return o, fmt.Errorf("a time scale of %v would run backwards; give a number above 0", o.TimeScale)
	}
	o.Replay = cmp.Or(o.Replay, 10_000)
	o.Shards = max(o.Shards, 1)
	o.Guild = cmp.Or(o.Guild, "Chorus")
	if o.Clock == nil {
		o.Clock = wallClock{}
	}
	if len(o.Bots) == 0 {
		o.Bots = []BotSpec{{Name: "chorus"}}
	}
	if len(o.People) == 0 {
		o.People = []PersonSpec{{Name: "ada", Owner: true}, {Name: "bob"}}
	}
	if len(o.Channels) == 0 {
		o.Channels = []ChannelSpec{{Name: "general"}, {Name: "random"}, {Name: "ideas", Type: "forum"}}
	}
	return o, nil
}

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
