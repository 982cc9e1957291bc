package connector

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// Admin is what people change about agents and settings from a chat platform. It checks every
// request against our own rights, whatever the platform allows. Errors are written
// for the person who made the request.
type Admin interface {
	// CheckNewAgent reports what is wrong with a request for an agent, before anything is created.
	CheckNewAgent(ctx context.Context, by Caller, want NewAgent) error
	// CreateAgent creates an agent, or takes this guild's agent of that name, and gives it its channel.
	CreateAgent(ctx context.Context, by Caller, want NewAgent, in AgentChannel) (AgentView, error)
	// CheckDeleteAgent reports whether an agent can be deleted now, and returns its own channel.
	CheckDeleteAgent(ctx context.Context, by Caller, agent string) (AgentView, error)
	DeleteAgent(ctx context.Context, by Caller, agent string, keepFiles bool) error

	// GuildAgents are the agents that people of a guild may know of.
	GuildAgents(ctx context.Context, by Caller) ([]AgentView, error)
	AgentSetting(ctx context.Context, by Caller, agent, key string) (Setting, error)
	// SetAgent writes a value; the value Unset removes the agent's own. note is further information
	// for people.
	SetAgent(ctx context.Context, by Caller, agent, key, value string) (now Setting, note string, err error)

	GuildSettings(ctx context.Context, by Caller) ([]Setting, []KeyState, error)
	SetGuild(ctx context.Context, by Caller, key, value string) (now Setting, note string, err error)
	// CheckKeys asks the providers whether they accept our keys; it takes at most half a minute.
	CheckKeys(ctx context.Context, by Caller) ([]KeyState, error)

	// The proposals complete what somebody is typing.
	ProposeAgents(ctx context.Context, by Caller, part string) []string
	ProposeKeys(part string) []string
	ProposeValues(ctx context.Context, by Caller, key, part string) []string

	// Access reports who may do what in a channel, with an agent.
	Access(ctx context.Context, of Caller, agent string, in room.Channel) (Access, error)
}

// Caller is the person who makes a request, and their guild.
type Caller struct {
	By    chat.Principal
	Guild string
}

// NewAgent is a request for an agent.
type NewAgent struct{ Name, Model, Permissions, Prompt string }

// AgentView is an agent as a guild sees it.
type AgentView struct {
	Name, Model, Permissions, Description string
	Channel                               string // its own channel; "": none, or unknown
	MadeChannel                           bool   // the channel was created for it, and is deleted with it
	New                                   bool   // it was just created
}

// AgentChannel is the channel for an agent.
type AgentChannel struct {
	ID   string
	Made bool // created for the agent: it is deleted with it
}

// Setting is a setting for people: the effective value, and where it comes from.
type Setting struct{ Key, Value, From string }

// Unset is what people write to remove their own value.
const Unset = "default"

// KeyState is whether a provider's key is accepted. The key itself is never shown.
type KeyState struct {
	Vendor, State, Error string
	Models               []string
}

// Limit is one profile that limits what is done: whose it is, and where it is set.
type Limit struct{ Who, Profile, From string }

// Access is what somebody may have done in a channel, and why.
type Access struct {
	Limits   []Limit
	Profiles []ProfileSummary // all must allow an action; none: nothing is allowed
	Nothing  string           // why nothing is allowed
	Gives    []string         // profiles they may give to an agent
	Answers  string           // who answers approvals
	Open     bool             // only the agent itself limits them
	Project  bool             // the channel is a project's
	Task     bool             // it is the thread of a task
}

// ProfileSummary is a profile in a sentence.
type ProfileSummary struct{ Name, Means string }
