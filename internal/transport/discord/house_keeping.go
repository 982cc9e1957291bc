package discord

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// Keeping is what people change about agents and settings from Discord. Every order is held
// against the house's own rights, whatever Discord allows; errors are for whoever gave it.
type Keeping interface {
	AgentLife
	AgentSettings
	GuildSettings
	Proposals
	// Access says who may do what in a channel, with an agent.
	Access(ctx context.Context, of Giver, agent string, in room.Channel) (Access, error)
}

// Giver is who gives an order, and in which guild.
type Giver struct {
	By    chat.Principal
	Guild string
}

// NewAgent is an agent that somebody wants.
type NewAgent struct{ Name, Model, Permissions, Prompt string }

// AgentView is an agent as a guild sees it.
type AgentView struct {
	Name, Model, Permissions, Description string
	Channel                               string // the one that is its own; "": none that is known
	MadeChannel                           bool   // that one was made for it, and goes with it
	New                                   bool   // it was made just now
}

// Dwelling is the channel that an agent gets.
type Dwelling struct {
	ID   string
	Made bool // for the agent: it goes with it
}

// AgentLife makes agents and ends them.
type AgentLife interface {
	// MayInit says what is wrong with a wish for an agent, before anything is made.
	MayInit(ctx context.Context, by Giver, want NewAgent) error
	// Init makes an agent, or takes the one of that name that this guild has, and gives it its channel.
	Init(ctx context.Context, by Giver, want NewAgent, in Dwelling) (AgentView, error)
	// MayRetire says whether an agent can be ended now, and which channel is its own.
	MayRetire(ctx context.Context, by Giver, agent string) (AgentView, error)
	Retire(ctx context.Context, by Giver, agent string, keepFiles bool) error
}

// Setting is a value for people: what holds, and where it comes from.
type Setting struct{ Key, Value, From string }

// AgentSettings are what holds for one agent.
type AgentSettings interface {
	// GuildAgents are the agents that people of a guild may know of.
	GuildAgents(ctx context.Context, by Giver) ([]AgentView, error)
	AgentSetting(ctx context.Context, by Giver, agent, key string) (Setting, error)
	// SetAgent writes a value; Unset as value takes the agent's own away. note is what people should know beside.
	SetAgent(ctx context.Context, by Giver, agent, key, value string) (now Setting, note string, err error)
}

// Unset is what people write to have no value of their own.
const Unset = "default"

// KeyState is whether a vendor's key is accepted. The key itself is never told.
type KeyState struct {
	Vendor, State, Error string
	Models               []string
}

// GuildSettings are what holds for all agents of a guild.
type GuildSettings interface {
	GuildSettings(ctx context.Context, by Giver) ([]Setting, []KeyState, error)
	SetGuild(ctx context.Context, by Giver, key, value string) (now Setting, note string, err error)
	// CheckKeys asks the vendors whether they accept our keys; it takes half a minute at most.
	CheckKeys(ctx context.Context, by Giver) ([]KeyState, error)
}

// Proposals are what could be meant by the beginning of a word.
type Proposals interface {
	ProposeAgents(ctx context.Context, by Giver, part string) []string
	ProposeKeys(part string) []string
	// ProposeValues are those of a key: its choices, models, profiles.
	ProposeValues(ctx context.Context, by Giver, key, part string) []string
}

// Limit is one profile that limits what is done: whose it is, and where that is set.
type Limit struct{ Part, Who, Profile, From string }

// Access is what somebody may have done in a channel, and why.
type Access struct {
	Limits   []Limit
	Profiles []Explained // that must all allow; none: nothing is allowed
	Nothing  string      // why nothing is
	Gives    []string    // profiles they may give to an agent
	Answers  string      // who answers when it must be asked
	Open     bool        // nothing limits them but the agent itself
}

// Explained is a profile in a sentence.
type Explained struct{ Name, Means string }
