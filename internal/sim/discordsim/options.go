package discordsim

import (
	"cmp"
	"fmt"
	"time"

	"chorus/internal/sim/discordsim/guild"
)

// Options describe the guild and the speed of its time. The zero value is a small usable guild: one bot, two people, three channels.
type Options struct {
	// Addr is the address to listen on; empty: a free port of this machine.
	Addr string `yaml:"-"`
	// TimeScale speeds up rate limits, time-outs and scripts; 0: 1.
	TimeScale float64 `yaml:"timeScale"`
	// NoRateLimits turns rate limits off.
	NoRateLimits bool `yaml:"noRateLimits"`
	// Replay is how many events a session stores for a resume; 0: 10,000.
	Replay int `yaml:"replay"`
	// Shards is how many connections a bot is told to make; 0: 1. They may all identify at once.
	Shards int `yaml:"shards"`
	// Clock is the clock; nil: the machine's.
	Clock Clock `yaml:"-"`

	Guild string `yaml:"guild"`
	// System is the channel in which Discord greets new members; "": none.
	System   string              `yaml:"system"`
	Bots     []guild.BotSpec     `yaml:"bots"`
	People   []guild.PersonSpec  `yaml:"people"`
	Roles    []guild.RoleSpec    `yaml:"roles"`
	Channels []guild.ChannelSpec `yaml:"channels"`
	// Script is played from the start, one step after the other.
	Script []Step `yaml:"script"`
}

// Clock returns the time and calls functions later. It is used by several goroutines.
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

// filled returns o with defaults.
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
		o.Bots = []guild.BotSpec{{Name: "chorus"}}
	}
	if len(o.People) == 0 {
		o.People = []guild.PersonSpec{{Name: "ada", Owner: true}, {Name: "bob"}}
	}
	if len(o.Channels) == 0 {
		o.Channels = []guild.ChannelSpec{{Name: "general"}, {Name: "random"}, {Name: "ideas", Type: "forum"}}
	}
	return o, nil
}
