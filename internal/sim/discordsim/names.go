package discordsim

import "chorus/internal/sim/discordsim/guild"

// object is a part of a message that the simulator passes on as it came.
type object = map[string]any

// What those need who use a Sim: the guild's words for what they give it and get from it.
type (
	ID          = guild.ID
	Message     = guild.Message
	Attachment  = guild.Attachment
	Reference   = guild.Reference
	Reaction    = guild.Reaction
	Channel     = guild.Channel
	Command     = guild.Command
	Interaction = guild.Interaction
	Said        = guild.Said
	BotSpec     = guild.BotSpec
	PersonSpec  = guild.PersonSpec
	RoleSpec    = guild.RoleSpec
	ChannelSpec = guild.ChannelSpec
)

// Flags and types that tests look for.
const (
	FlagEphemeral     = guild.FlagEphemeral
	FlagComponentsV2  = guild.FlagComponentsV2
	TypePrivateThread = guild.TypePrivateThread
)

// ParseID reads a snowflake as a client writes it in a path.
func ParseID(s string) (ID, error) { return guild.ParseID(s) }
