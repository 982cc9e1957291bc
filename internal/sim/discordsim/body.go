package discordsim

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// messageBody is what a client sends to make or change a message, over any of the
// routes that do. keys are the fields that were there at all: an edit changes those.
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
	edits bool // its components are looked at with those flags that the message has
	files []upload
	lie   func(*Attachment)
}

// attachmentBody names a file of the same request by its number, or an attachment that stays by its id.
type attachmentBody struct {
	ID          json.RawMessage `json:"id"`
	Filename    string          `json:"filename"`
	Description string          `json:"description"`
}

// upload is a file of a multipart request.
type upload struct {
	number, name, kind string
	data               []byte
}

type allowedMentions struct {
	Parse       []string `json:"parse"`
	Users       []ID     `json:"users"`
	Roles       []ID     `json:"roles"`
	RepliedUser bool     `json:"replied_user"`
}

// decode reads a JSON body, and says no as Discord does: 50109 for what is no JSON, 50035 at the
// place that has the wrong type.
func decode(raw []byte, into any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return wrong(kind.Field, "BASE_TYPE_BAD_TYPE", "Value of type %q is not allowed here.", kind.Value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	}
	return wrong("_", "BASE_TYPE_BAD_TYPE", "%s", err.Error())
}

// decodeMessage reads and checks the body of a new message, decodeEdit that of a change: which
// components are good depends on the message then.
func decodeMessage(raw []byte, files []upload) (*messageBody, error) {
	return decodeBody(raw, &messageBody{files: files, keys: map[string]bool{}})
}

func decodeEdit(raw []byte, files []upload) (*messageBody, error) {
	return decodeBody(raw, &messageBody{files: files, keys: map[string]bool{}, edits: true})
}

func decodeBody(raw []byte, b *messageBody) (*messageBody, error) {
	if err := decode(raw, b); err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := decode(raw, &keys); err != nil {
		return nil, err
	}
	for k := range keys {
		b.keys[k] = true
	}
	f := &form{}
	b.check(f)
	return b, f.err()
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

func (b *messageBody) check(f *form) {
	f.longest("content", b.text(), 2000)
	switch n := b.Nonce.(type) {
	case nil, float64:
	case string:
		f.longest("nonce", n, 25)
	default:
		f.add("nonce", "BASE_TYPE_BAD_TYPE", "Must be a string or a number.")
	}
	if b.flags()&FlagComponentsV2 != 0 {
		for _, field := range []string{"content", "embeds", "poll", "sticker_ids"} {
			if b.keys[field] && !b.emptyField(field) {
				f.add(field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
					"The '%s' field cannot be used when using MessageFlags.IS_COMPONENTS_V2", field)
			}
		}
	}
	if b.forwards() && (b.text() != "" || len(b.Embeds)+len(b.Components)+len(b.files) > 0 || !b.emptyField("poll")) {
		f.add("message_reference", "MESSAGE_FORWARD_CANNOT_HAVE_CONTENT", "A forward cannot have content of its own")
	}
	checkEmbeds(f, b.Embeds)
	if !b.edits {
		checkComponents(f, b.Components, b.flags()&FlagComponentsV2 != 0)
	}
	if a := b.Allowed; a != nil {
		for i, p := range a.Parse {
			if p != "users" && p != "roles" && p != "everyone" {
				f.add(index("allowed_mentions.parse", i), "BASE_TYPE_CHOICES", "Value must be one of {'users', 'everyone', 'roles'}.")
			}
			if p == "users" && len(a.Users) > 0 || p == "roles" && len(a.Roles) > 0 {
				f.add("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", "parse:[\"%s\"] and %s: [ids...] are mutually exclusive.", p, p)
			}
		}
		if len(a.Users) > 100 || len(a.Roles) > 100 {
			f.add("allowed_mentions", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
		}
	}
	if len(b.files) > 10 {
		f.add("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
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

// empty is a body that would make a message with nothing in it.
func (b *messageBody) empty() bool {
	return strings.TrimSpace(b.text()) == "" && len(b.Embeds) == 0 && len(b.Components) == 0 && len(b.files) == 0 &&
		b.emptyField("poll") && len(b.StickerIDs) == 0 && !b.forwards()
}

// forwards is a body that takes another message along.
func (b *messageBody) forwards() bool {
	return b.Reference != nil && b.Reference.Type == refForward && b.Reference.MessageID != 0
}

func textOf(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

func listOf(o object, key string) []object {
	list, _ := o[key].([]any)
	out := make([]object, 0, len(list))
	for _, v := range list {
		one, _ := v.(map[string]any)
		out = append(out, one)
	}
	return out
}

// checkEmbeds holds embeds against Discord's limits, the sum of 6,000 characters over all of them included.
func checkEmbeds(f *form, embeds []object) {
	if len(embeds) > 10 {
		f.add("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
	sum := 0
	for i, e := range embeds {
		at := index("embeds", i)
		take := func(path, text string, most int) {
			f.longest(at+"."+path, text, most)
			sum += len([]rune(text))
		}
		take("title", textOf(e, "title"), 256)
		take("description", textOf(e, "description"), 4096)
		footer, _ := e["footer"].(map[string]any)
		take("footer.text", textOf(footer, "text"), 2048)
		author, _ := e["author"].(map[string]any)
		take("author.name", textOf(author, "name"), 256)
		fields := listOf(e, "fields")
		if len(fields) > 25 {
			f.add(at+".fields", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		for j, field := range fields {
			for key, most := range map[string]int{"name": 256, "value": 1024} {
				text := textOf(field, key)
				if text == "" {
					f.required(index(at+".fields", j) + "." + key)
				}
				take(index("fields", j)+"."+key, text, most)
			}
		}
	}
	if sum > 6000 {
		f.add("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
	}
}
