package guild

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// ID is a snowflake: a creation time, and a number to distinguish ids of the same millisecond. It is sent as a string, as Discord does.
type ID uint64

// epoch is the first second of 2015, from which Discord counts.
var epoch = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// ParseID reads a snowflake as a client writes it in a path.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a snowflake", s)
	}
	return ID(n), nil
}

// String is the number.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Time is the creation time, to the millisecond.
func (id ID) Time() time.Time { return epoch.Add(time.Duration(id>>22) * time.Millisecond) }

// MarshalText writes the number; JSON puts it in quotes.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads a map's key.
func (id *ID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("%q is not a snowflake", text)
	}
	*id = ID(n)
	return nil
}

// UnmarshalJSON accepts the string that Discord sends, and a number as Discord does.
func (id *ID) UnmarshalJSON(data []byte) error {
	data = bytes.Trim(data, `"`)
	if len(data) == 0 || string(data) == "null" {
		*id = 0
		return nil
	}
	return id.UnmarshalText(data)
}

// mint issues snowflakes that only grow, whatever the clock does.
type mint struct{ last ID }

func (m *mint) next(now time.Time) ID {
	id := ID(now.Sub(epoch).Milliseconds()) << 22
	if id <= m.last {
		id = m.last + 1
	}
	m.last = id
	return id
}

// Perm is a set of permissions, sent as a decimal string.
type Perm uint64

// The permissions that the simulator checks.
const (
	PermKick            Perm = 1 << 1
	PermBan             Perm = 1 << 2
	PermAdministrator   Perm = 1 << 3
	PermManageChannels  Perm = 1 << 4
	PermManageGuild     Perm = 1 << 5
	PermAddReactions    Perm = 1 << 6
	PermView            Perm = 1 << 10
	PermSend            Perm = 1 << 11
	PermManageMessages  Perm = 1 << 13
	PermEmbedLinks      Perm = 1 << 14
	PermAttachFiles     Perm = 1 << 15
	PermReadHistory     Perm = 1 << 16
	PermMentionEveryone Perm = 1 << 17
	PermExternalEmojis  Perm = 1 << 18
	PermChangeNickname  Perm = 1 << 26
	PermManageNicknames Perm = 1 << 27
	PermManageRoles     Perm = 1 << 28
	PermManageWebhooks  Perm = 1 << 29
	PermUseCommands     Perm = 1 << 31
	PermManageThreads   Perm = 1 << 34
	PermPublicThreads   Perm = 1 << 35
	PermPrivateThreads  Perm = 1 << 36
	PermSendInThreads   Perm = 1 << 38
	PermModerateMembers Perm = 1 << 40
	PermPinMessages     Perm = 1 << 51
	permAll             Perm = 1<<52 - 1
	permPeople               = PermAddReactions | PermView | PermSend | PermEmbedLinks | PermAttachFiles | PermReadHistory |
		PermExternalEmojis | PermChangeNickname | PermUseCommands | PermPublicThreads | PermPrivateThreads | PermSendInThreads
	permBots = permAll &^ PermAdministrator
)

// permNames are the names that scenarios use: Discord's own, in lower case.
var permNames = map[string]Perm{
	"kick_members": PermKick, "ban_members": PermBan, "administrator": PermAdministrator, "manage_channels": PermManageChannels,
	"manage_guild": PermManageGuild, "add_reactions": PermAddReactions, "view_channel": PermView, "send_messages": PermSend,
	"manage_messages": PermManageMessages, "embed_links": PermEmbedLinks, "attach_files": PermAttachFiles,
	"read_message_history": PermReadHistory, "mention_everyone": PermMentionEveryone, "use_external_emojis": PermExternalEmojis,
	"change_nickname": PermChangeNickname, "manage_nicknames": PermManageNicknames, "manage_roles": PermManageRoles,
	"manage_webhooks": PermManageWebhooks, "use_application_commands": PermUseCommands, "manage_threads": PermManageThreads,
	"create_public_threads": PermPublicThreads, "create_private_threads": PermPrivateThreads,
	"send_messages_in_threads": PermSendInThreads, "moderate_members": PermModerateMembers, "pin_messages": PermPinMessages,
	"all": permAll,
}

// Has reports whether all of want are in p.
func (p Perm) Has(want Perm) bool { return p&want == want }

// MarshalText writes the decimal number.
func (p Perm) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(p), 10), nil }

// UnmarshalJSON reads a decimal string or a number.
func (p *Perm) UnmarshalJSON(data []byte) error {
	data = bytes.Trim(data, `"`)
	if len(data) == 0 || string(data) == "null" {
		*p = 0
		return nil
	}
	n, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a set of permissions", data)
	}
	*p = Perm(n)
	return nil
}

var (
	_ json.Unmarshaler = (*ID)(nil)
	_ json.Unmarshaler = (*Perm)(nil)
)
