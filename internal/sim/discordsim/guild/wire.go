package guild

import (
	"encoding/json"
	"time"
)

// User is a person or a bot, as everybody sees them.
type User struct {
	ID            ID      `json:"id"`
	Username      string  `json:"username"`
	Discriminator string  `json:"discriminator"`
	GlobalName    *string `json:"global_name"`
	Avatar        *string `json:"avatar"`
	Bot           bool    `json:"bot,omitempty"`
	PublicFlags   int     `json:"public_flags"`
}

// Member is a user in the guild.
type Member struct {
	User        *User      `json:"user,omitempty"`
	Nick        *string    `json:"nick"`
	Avatar      *string    `json:"avatar"`
	Roles       []ID       `json:"roles"`
	JoinedAt    time.Time  `json:"joined_at"`
	Premium     *time.Time `json:"premium_since"`
	Until       *time.Time `json:"communication_disabled_until"`
	Deaf        bool       `json:"deaf"`
	Mute        bool       `json:"mute"`
	Pending     bool       `json:"pending"`
	Flags       int        `json:"flags"`
	Permissions *Perm      `json:"permissions,omitempty"`
}

// Role gives permissions to its members.
type Role struct {
	ID          ID      `json:"id"`
	Name        string  `json:"name"`
	Color       int     `json:"color"`
	Colors      object  `json:"colors"`
	Hoist       bool    `json:"hoist"`
	Position    int     `json:"position"`
	Permissions Perm    `json:"permissions"`
	Managed     bool    `json:"managed"`
	Mentionable bool    `json:"mentionable"`
	Icon        *string `json:"icon"`
	Emoji       *string `json:"unicode_emoji"`
	Flags       int     `json:"flags"`
	Tags        object  `json:"tags,omitempty"`
}

// Overwrite is what one role or member may do differently in one channel.
type Overwrite struct {
	ID    ID   `json:"id"`
	Type  int  `json:"type"`
	Allow Perm `json:"allow"`
	Deny  Perm `json:"deny"`
}

// The kinds of channels that the simulator knows.
const (
	TypeText          = 0
	TypeDM            = 1
	TypeVoice         = 2
	TypeCategory      = 4
	TypeAnnouncement  = 5
	TypePublicThread  = 11
	TypePrivateThread = 12
	TypeForum         = 15
)

// ChannelRequireTag is the flag of a forum whose posts need a tag.
const ChannelRequireTag = 1 << 4

// Channel is a place for messages, including a thread or a forum post.
type Channel struct {
	ID               ID              `json:"id"`
	Type             int             `json:"type"`
	GuildID          ID              `json:"guild_id,omitzero"`
	Name             string          `json:"name,omitempty"`
	Position         int             `json:"position"`
	Topic            *string         `json:"topic"`
	NSFW             bool            `json:"nsfw"`
	ParentID         *ID             `json:"parent_id"`
	LastMessageID    *ID             `json:"last_message_id"`
	LastPin          *time.Time      `json:"last_pin_timestamp,omitempty"`
	RateLimitPerUser int             `json:"rate_limit_per_user"`
	Overwrites       []Overwrite     `json:"permission_overwrites,omitempty"`
	OwnerID          ID              `json:"owner_id,omitzero"`
	Metadata         *ThreadMetadata `json:"thread_metadata,omitempty"`
	MessageCount     int             `json:"message_count,omitempty"`
	MemberCount      int             `json:"member_count,omitempty"`
	TotalSent        int             `json:"total_message_sent,omitempty"`
	AppliedTags      []ID            `json:"applied_tags,omitempty"`
	AvailableTags    []Tag           `json:"available_tags,omitempty"`
	Recipients       []User          `json:"recipients,omitempty"`
	Flags            int             `json:"flags"`

	messages []*Message // by id, which is by time
	joined   map[ID]time.Time
	spoke    map[ID]time.Time // when each account last wrote, for slow mode
}

// Tag is a forum's label.
type Tag struct {
	ID        ID      `json:"id"`
	Name      string  `json:"name"`
	Moderated bool    `json:"moderated"`
	EmojiID   *ID     `json:"emoji_id"`
	EmojiName *string `json:"emoji_name"`
}

// ThreadMetadata is what only threads have.
type ThreadMetadata struct {
	Archived   bool      `json:"archived"`
	AutoAfter  int       `json:"auto_archive_duration"`
	ArchivedAt time.Time `json:"archive_timestamp"`
	Locked     bool      `json:"locked"`
	Invitable  *bool     `json:"invitable,omitempty"`
	CreatedAt  time.Time `json:"create_timestamp"`
}

// IsThread reports whether it is a thread or a forum post.
func (c *Channel) IsThread() bool { return c.Type == TypePublicThread || c.Type == TypePrivateThread }

// Archived reports whether it is an archived thread.
func (c *Channel) Archived() bool { return c.Metadata != nil && c.Metadata.Archived }

// Emoji is what reacts: a character, or a custom one by its id.
type Emoji struct {
	ID       *ID    `json:"id"`
	Name     string `json:"name"`
	Animated bool   `json:"animated,omitempty"`
}

func (e Emoji) key() string {
	if e.ID != nil {
		return e.ID.String()
	}
	return e.Name
}

// Reaction is one emoji under a message, as one viewer sees it.
type Reaction struct {
	Emoji   Emoji    `json:"emoji"`
	Count   int      `json:"count"`
	Details object   `json:"count_details"`
	Me      bool     `json:"me"`
	MeBurst bool     `json:"me_burst"`
	Colors  []string `json:"burst_colors"`

	users []ID
}

// Attachment is a file under a message.
type Attachment struct {
	ID          ID     `json:"id"`
	Filename    string `json:"filename"`
	Description string `json:"description,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
	ProxyURL    string `json:"proxy_url"`
	Height      *int   `json:"height,omitempty"`
	Width       *int   `json:"width,omitempty"`
	Ephemeral   bool   `json:"ephemeral,omitempty"`
	Flags       int    `json:"flags,omitempty"`
}

// Reference says which message a message answers.
type Reference struct {
	Type      int   `json:"type"`
	MessageID ID    `json:"message_id,omitzero"`
	ChannelID ID    `json:"channel_id,omitzero"`
	GuildID   ID    `json:"guild_id,omitzero"`
	Fail      *bool `json:"fail_if_not_exists,omitempty"`
}

// The kinds of messages that the simulator makes.
const (
	kindDefault       = 0
	kindPinned        = 6
	kindThreadCreated = 18
	kindReply         = 19
	kindChatInput     = 20
	KindStarter       = 21
	kindContextMenu   = 23
	kindPollResult    = 46
)

// The flags of messages that mean something here.
const (
	FlagSuppressEmbeds = 1 << 2
	FlagHasThread      = 1 << 5
	FlagEphemeral      = 1 << 6
	FlagLoading        = 1 << 7
	FlagSilent         = 1 << 12
	FlagHasSnapshot    = 1 << 14
	FlagComponentsV2   = 1 << 15
)

// Message is a message with everything in it. Parts that depend on the viewer (their own reactions, the message it
// answers) are filled in when it is shown.
type Message struct {
	ID              ID              `json:"id"`
	Type            int             `json:"type"`
	ChannelID       ID              `json:"channel_id"`
	GuildID         ID              `json:"guild_id,omitzero"` // only in events
	Author          User            `json:"author"`
	Member          *Member         `json:"member,omitempty"` // only in events
	Content         string          `json:"content"`
	Timestamp       time.Time       `json:"timestamp"`
	Edited          *time.Time      `json:"edited_timestamp"`
	TTS             bool            `json:"tts"`
	MentionEveryone bool            `json:"mention_everyone"`
	Mentions        []User          `json:"mentions"`
	MentionRoles    []ID            `json:"mention_roles"`
	Attachments     []Attachment    `json:"attachments"`
	Embeds          []object        `json:"embeds"`
	Components      []object        `json:"components"`
	Reactions       []Reaction      `json:"reactions,omitempty"`
	Nonce           any             `json:"nonce,omitempty"` // only in events and in the answer to the post
	Pinned          bool            `json:"pinned"`
	WebhookID       ID              `json:"webhook_id,omitzero"`
	ApplicationID   ID              `json:"application_id,omitzero"`
	Flags           int             `json:"flags"`
	Reference       *Reference      `json:"message_reference,omitempty"`
	Referenced      json.RawMessage `json:"referenced_message,omitempty"`
	Interaction     object          `json:"interaction_metadata,omitempty"`
	OldInteraction  object          `json:"interaction,omitempty"`
	Thread          *Channel        `json:"thread,omitempty"`
	Poll            *Poll           `json:"poll,omitempty"`
	Snapshots       []Snapshot      `json:"message_snapshots,omitempty"`
	Position        int             `json:"position,omitempty"`

	pinnedAt  time.Time
	seenBy    ID // the only viewer of an ephemeral message
	reactions []*Reaction
	mentions  []ID
	allowed   *allowedMentions
	changed   uint64 // its last change, by the guild's counter
}

// VisibleTo reports whether an account sees the message, if it sees the channel.
func (m *Message) VisibleTo(id ID) bool { return m.seenBy == 0 || m.seenBy == id }

func (m *Message) ephemeral() bool { return m.Flags&FlagEphemeral != 0 }
