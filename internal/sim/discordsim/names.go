package discordsim

import "chorus/internal/sim/discordsim/guild"

// object is a part of a message that the simulator passes on unchanged.
type object = map[string]any

// Aliases for users of a Sim: the guild's types for its input and output.
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

// ParseID parses a snowflake in a path.
func ParseID(s string) (ID, error) { return guild.ParseID(s) }
