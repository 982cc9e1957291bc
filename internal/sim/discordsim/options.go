package discordsim

import (
	"cmp"
	"fmt"
	"time"

	"chorus/internal/sim/discordsim/guild"
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
	System   string              `yaml:"system"`
	Bots     []guild.BotSpec     `yaml:"bots"`
	People   []guild.PersonSpec  `yaml:"people"`
	Roles    []guild.RoleSpec    `yaml:"roles"`
	Channels []guild.ChannelSpec `yaml:"channels"`
	// Script is played from the start on, one step after the other.
	Script []Step `yaml:"script"`
}

// Clock tells the time and calls when some of it has passed. Both are called from several goroutines.
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
