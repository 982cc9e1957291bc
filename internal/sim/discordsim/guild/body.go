package guild

import (
	"encoding/json"
	"strings"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/jsonobject"
)

// messageBody is a client's request to create or change a message, over any route. keys are the given fields: an edit changes those.
type messageBody struct {
	Content      *string          `json:"content"`
	Nonce        any              `json:"nonce"`
	EnforceNonce bool             `json:"enforce_nonce"`
	TTS          bool             `json:"tts"`
	Embeds       []object         `json:"embeds"`
	Components   []object         `json:"components"`
	Attachments  []attachmentBody `json:"attachments"`
	Allowed      *allowedMentions `json:"allowed_mentions"`
	Reference    *Reference       `json:"message_reference"`
	Flags        *int             `json:"flags"`
	Poll         json.RawMessage  `json:"poll"`
	StickerIDs   []ID             `json:"sticker_ids"`
	// Only webhooks send these.
	Username    string `json:"username"`
	AvatarURL   string `json:"avatar_url"`
	ThreadName  string `json:"thread_name"`
	AppliedTags []ID   `json:"applied_tags"`

	keys  map[string]bool
	edits bool // its components are checked with the flags of the message
	files []Upload
	lie   func(*Attachment)
}

// attachmentBody names a file of the same request by its number, or an attachment that stays by its id.
type attachmentBody struct {
	ID          json.RawMessage `json:"id"`
	Filename    string          `json:"filename"`
	Description string          `json:"description"`
}

// Upload is a file of a multipart request.
type Upload struct {
	Number, Name, Kind string
	Data               []byte
}

type allowedMentions struct {
	Parse       []string `json:"parse"`
	Users       []ID     `json:"users"`
	Roles       []ID     `json:"roles"`
	RepliedUser bool     `json:"replied_user"`
}

// DecodeMessage parses and checks the body of a new message.
func DecodeMessage(raw []byte, files []Upload) (*messageBody, error) {
	return decodeBody(raw, &messageBody{files: files, keys: map[string]bool{}})
}

// DecodeEdit parses and checks the body of a change: which components are valid depends on the message.
func DecodeEdit(raw []byte, files []Upload) (*messageBody, error) {
	return decodeBody(raw, &messageBody{files: files, keys: map[string]bool{}, edits: true})
}

func decodeBody(raw []byte, b *messageBody) (*messageBody, error) {
	if err := apierror.Decode(raw, b); err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := apierror.Decode(raw, &keys); err != nil {
		return nil, err
	}
	for k := range keys {
		b.keys[k] = true
	}
	f := &apierror.Form{}
	b.check(f)
	return b, f.Err()
}

func (b *messageBody) flags() int {
	if b.Flags == nil {
		return 0
	}
	return *b.Flags
}

func (b *messageBody) text() string {
	if b.Content == nil {
		return ""
	}
	return *b.Content
}

func (b *messageBody) check(f *apierror.Form) {
	f.Longest("content", b.text(), 2000)
	switch n := b.Nonce.(type) {
	case nil, float64:
	case string:
		f.Longest("nonce", n, 25)
	default:
		f.Add("nonce", "BASE_TYPE_BAD_TYPE", "Must be a string or a number.")
	}
	if b.flags()&FlagComponentsV2 != 0 {
		for _, field := range []string{"content", "embeds", "poll", "sticker_ids"} {
			if b.keys[field] && !b.emptyField(field) {
				f.Add(field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
					"The '%s' field cannot be used when using MessageFlags.IS_COMPONENTS_V2", field)
			}
		}
	}
	if b.forwards() && (b.text() != "" || len(b.Embeds)+len(b.Components)+len(b.files) > 0 || !b.emptyField("poll")) {
		f.Add("message_reference", "MESSAGE_FORWARD_CANNOT_HAVE_CONTENT", "A forward cannot have content of its own")
	}
	checkEmbeds(f, b.Embeds)
	if !b.edits {
		components.Check(f, b.Components, b.flags()&FlagComponentsV2 != 0)
	}
	if a := b.Allowed; a != nil {
		for i, p := range a.Parse {
			if p != "users" && p != "roles" && p != "everyone" {
				f.Add(apierror.Item("allowed_mentions.parse", i), "BASE_TYPE_CHOICES", "Value must be one of {'users', 'everyone', 'roles'}.")
			}
			if p == "users" && len(a.Users) > 0 || p == "roles" && len(a.Roles) > 0 {
				f.Add("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", "parse:[\"%s\"] and %s: [ids...] are mutually exclusive.", p, p)
			}
		}
		if len(a.Users) > 100 || len(a.Roles) > 100 {
			f.Add("allowed_mentions", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
		}
	}
	if len(b.files) > 10 {
		f.Add("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
}

func (b *messageBody) emptyField(field string) bool {
	switch field {
	case "content":
		return b.text() == ""
	case "embeds":
		return len(b.Embeds) == 0
	case "sticker_ids":
		return len(b.StickerIDs) == 0
	}
	return len(b.Poll) == 0 || string(b.Poll) == "null"
}

// empty reports a body that would make an empty message.
func (b *messageBody) empty() bool {
	return strings.TrimSpace(b.text()) == "" && len(b.Embeds) == 0 && len(b.Components) == 0 && len(b.files) == 0 &&
		b.emptyField("poll") && len(b.StickerIDs) == 0 && !b.forwards()
}

// forwards reports a body that forwards another message.
func (b *messageBody) forwards() bool {
	return b.Reference != nil && b.Reference.Type == refForward && b.Reference.MessageID != 0
}

// checkEmbeds validates embeds against Discord's limits, including 6,000 characters in total.
func checkEmbeds(f *apierror.Form, embeds []object) {
	if len(embeds) > 10 {
		f.Add("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
	sum := 0
	for i, e := range embeds {
		at := apierror.Item("embeds", i)
		take := func(path, text string, most int) {
			f.Longest(at+"."+path, text, most)
			sum += len([]rune(text))
		}
		take("title", jsonobject.Text(e, "title"), 256)
		take("description", jsonobject.Text(e, "description"), 4096)
		footer, _ := e["footer"].(map[string]any)
		take("footer.text", jsonobject.Text(footer, "text"), 2048)
		author, _ := e["author"].(map[string]any)
		take("author.name", jsonobject.Text(author, "name"), 256)
		fields := jsonobject.List(e, "fields")
		if len(fields) > 25 {
			f.Add(at+".fields", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		for j, field := range fields {
			for key, most := range map[string]int{"name": 256, "value": 1024} {
				text := jsonobject.Text(field, key)
				if text == "" {
					f.Required(apierror.Item(at+".fields", j) + "." + key)
				}
				take(apierror.Item("fields", j)+"."+key, text, most)
			}
		}
	}
	if sum > 6000 {
		f.Add("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
	}
}

// TextBody is a message with text only, as people usually write.
func TextBody(text string) *messageBody {
	return &messageBody{Content: &text, keys: map[string]bool{"content": true}}
}
