package connector

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// Admin is what people change about agents and settings from a chat platform. Every
// request is held against our own rights, whatever the platform allows; errors are written
// for whoever made it.
type Admin interface {
	// CheckNewAgent says what is wrong with a request for an agent, before anything is made.
	CheckNewAgent(ctx context.Context, by Caller, want NewAgent) error
	// CreateAgent makes an agent, or takes the one of that name that this guild has, and gives it its channel.
	CreateAgent(ctx context.Context, by Caller, want NewAgent, in AgentChannel) (AgentView, error)
	// CheckDeleteAgent says whether an agent can be deleted now, and which channel is its own.
	CheckDeleteAgent(ctx context.Context, by Caller, agent string) (AgentView, error)
	DeleteAgent(ctx context.Context, by Caller, agent string, keepFiles bool) error

	// GuildAgents are the agents that people of a guild may know of.
	GuildAgents(ctx context.Context, by Caller) ([]AgentView, error)
	AgentSetting(ctx context.Context, by Caller, agent, key string) (Setting, error)
	// SetAgent writes a value; Unset as value removes the agent's own. note is what people
	// should know besides.
	SetAgent(ctx context.Context, by Caller, agent, key, value string) (now Setting, note string, err error)

	GuildSettings(ctx context.Context, by Caller) ([]Setting, []KeyState, error)
	SetGuild(ctx context.Context, by Caller, key, value string) (now Setting, note string, err error)
	// CheckKeys asks the providers whether they accept our keys; it takes half a minute at most.
	CheckKeys(ctx context.Context, by Caller) ([]KeyState, error)

	// The proposals complete what somebody has begun to type.
	ProposeAgents(ctx context.Context, by Caller, part string) []string
	ProposeKeys(part string) []string
	ProposeValues(ctx context.Context, by Caller, key, part string) []string

	// Access says who may do what in a channel, with an agent.
	Access(ctx context.Context, of Caller, agent string, in room.Channel) (Access, error)
}

// Caller is who makes a request, and in which guild.
type Caller struct {
	By    chat.Principal
	Guild string
}

// NewAgent is an agent that somebody wants.
type NewAgent struct{ Name, Model, Permissions, Prompt string }

// AgentView is an agent as a guild sees it.
type AgentView struct {
	Name, Model, Permissions, Description string
	Channel                               string // the one that is its own; "": none that is known
	MadeChannel                           bool   // that one was made for it, and is deleted with it
	New                                   bool   // it was made just now
}

// AgentChannel is the channel that an agent gets.
type AgentChannel struct {
	ID   string
	Made bool // for the agent: it is deleted with it
}

// Setting is a value for people: what is in force, and where it comes from.
type Setting struct{ Key, Value, From string }

// Unset is what people write to have no value of their own.
const Unset = "default"

// KeyState is whether a provider's key is accepted. The key itself is never shown.
type KeyState struct {
	Vendor, State, Error string
	Models               []string
}

// Limit is one profile that limits what is done: whose it is, and where that is set.
type Limit struct{ Part, Who, Profile, From string }

// Access is what somebody may have done in a channel, and why.
type Access struct {
	Limits   []Limit
	Profiles []ProfileSummary // that must all allow; none: nothing is allowed
	Nothing  string           // why nothing is
	Gives    []string         // profiles they may give to an agent
	Answers  string           // who answers when approval is needed
	Open     bool             // nothing limits them but the agent itself
	Project  bool             // the channel is a project's
	Task     bool             // it is the thread of a task
}

// ProfileSummary is a profile in a sentence.
type ProfileSummary struct{ Name, Means string }
