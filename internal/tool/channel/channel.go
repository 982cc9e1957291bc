// Package channel lets an agent use the place where its conversation is held:
// it searches what was said there and posts files there.
//
// It promises that a search finds only what was said in that very place, that the
// results are presented as the words of others, and that a file is posted once, comes
// from inside the roots, and is judged under its path.
package channel

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

//go:embed search_channel.md
var searchProse string

//go:embed upload.md
var uploadProse string

// MaxUpload is the most that a message may carry where nobody pays for more.
const MaxUpload = 10 << 20

// How many messages a search returns.
const (
	maxFound  = 20
	mostFound = 50
	maxShown  = 600 // bytes shown of one message
)

// Channel is a conversation's place on its platform. Implementations are safe for
// concurrent use. A mistake that the model can correct is a tool.Mistake.
type Channel interface {
	// Search finds messages that were said in the place, best match first.
	Search(ctx context.Context, q Query) ([]Message, error)
	// Post posts a file there, once for each key, and returns a link to it.
	Post(ctx context.Context, key string, f File) (link string, err error)
}

// Query says what to search for.
type Query struct {
	Text  string // all of its words must occur
	From  string // part of the author's name; "": anybody
	Limit int
	Older bool // includes what was said before the agent listened
}

// Message is a message that was found.
type Message struct {
	Author string
	At     time.Time
	Text   string
	Link   string // "" if there is none
}

// File is a file to post.
type File struct {
	Name string
	Data []byte
	Text string // posted with it
}

type searchIn struct {
	Query string `json:"query" jsonschema:"words that all must occur"`
	From  string `json:"from,omitempty" jsonschema:"only messages of this author"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most 50; 20 if left out"`
	Older bool   `json:"older,omitempty" jsonschema:"also look through the channel's older history, which takes longer"`
}

type uploadIn struct {
	Path string `json:"path" jsonschema:"the file"`
	Name string `json:"name,omitempty" jsonschema:"what it is called there"`
	Text string `json:"text,omitempty" jsonschema:"a line said with it"`
	// Comment is the name that other tool designs use for Text.
	Comment string `json:"comment,omitempty" jsonschema:"the same as text"`
}

// Tools returns search_channel and upload.
func Tools(c Channel, roots *files.Roots) []tool.Tool {
	return []tool.Tool{searchTool(c), uploadTool(c, roots)}
}

func searchTool(c Channel) tool.Tool {
	return tool.New(tool.Func[searchIn]{
		Name: "search_channel", Description: searchProse, Risk: tool.Low, ReadOnly: true,
		Access: func(in searchIn) []tool.Access {
			return []tool.Access{{Tool: "search_channel", Detail: strings.Join(strings.Fields(in.Query), " ")}}
		},
		Label: func(in searchIn) string { return "search the channel for " + in.Query },
		Run: func(ctx context.Context, in searchIn) (tool.Result, error) {
			if strings.TrimSpace(in.Query) == "" && strings.TrimSpace(in.From) == "" {
				return tool.Fail("Give words to look for, or an author."), nil
			}
			q := Query{Text: in.Query, From: strings.TrimPrefix(strings.TrimSpace(in.From), "@"), Limit: min(in.Limit, mostFound), Older: in.Older}
			if q.Limit <= 0 {
				q.Limit = maxFound
			}
			list, err := c.Search(ctx, q)
			if err != nil {
				return tool.FailOrEnd(ctx, err)
			}
			if len(list) == 0 {
				return tool.OK(nothing(q)), nil
			}
			return tool.From("messages of this channel", tool.Clip(ctx, told(list), tool.Head, nil)), nil
		},
	})
}

func nothing(q Query) string {
	if q.Older {
		return "Nothing was found, not even in the older history that could be read."
	}
	return "Nothing was found in what I have heard here. Set older to look through the channel's history too."
}

// told formats the messages that were found, one paragraph each.
func told(list []Message) string {
	var b strings.Builder
	for _, m := range list {
		text := strings.TrimSpace(m.Text)
		if len(text) > maxShown {
			text = strings.ToValidUTF8(text[:maxShown], "") + "…"
		}
		fmt.Fprintf(&b, "%s %s: %s", m.At.UTC().Format("2006-01-02 15:04"), m.Author, text)
		if m.Link != "" {
			fmt.Fprintf(&b, "\n  %s", m.Link)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func uploadTool(c Channel, roots *files.Roots) tool.Tool {
	return tool.New(tool.Func[uploadIn]{
		Name: "upload", Description: uploadProse, Risk: tool.Medium,
		Aliases: []tool.Alias{tool.Also("upload_file"), tool.Also("attach")},
		Access:  func(in uploadIn) []tool.Access { return roots.Access("upload", in.Path) },
		Label:   func(in uploadIn) string { return "upload " + in.Path },
		Run: func(ctx context.Context, in uploadIn) (tool.Result, error) {
			place, data, err := load(ctx, roots, in.Path)
			if err != nil {
				return tool.FailOrEnd(ctx, err)
			}
			name := cmp.Or(in.Name, path.Base(place.Path))
			link, err := c.Post(ctx, tool.CallFrom(ctx).Key, File{Name: name, Data: data, Text: cmp.Or(in.Text, in.Comment)})
			if err != nil {
				return tool.FailOrEnd(ctx, err)
			}
			res := tool.OK(strings.TrimSpace("Posted " + place.String() + " " + link))
			res.Read = []string{place.String()}
			return res, nil
		},
	})
}

// load reads the file to post.
func load(ctx context.Context, roots *files.Roots, name string) (files.Place, []byte, error) {
	place, err := roots.Find(name)
	if err != nil {
		return place, nil, err
	}
	f, info, err := roots.OpenJudged(ctx, "upload", place)
	if err != nil {
		return place, nil, err
	}
	defer f.Close()
	tooLarge := tool.Mistake(fmt.Sprintf("%s is larger than the %d MB that a message may carry. Make it smaller, or split it.", place, MaxUpload>>20))
	switch {
	case info.IsDir():
		return place, nil, tool.Mistake(place.String() + " is a directory. Make an archive of it first.")
	case info.Size() > MaxUpload:
		return place, nil, tooLarge
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxUpload+1))
	switch {
	case err != nil:
		return place, nil, tool.Mistake(place.String() + " could not be read.")
	case len(data) > MaxUpload:
		return place, nil, tooLarge
	case len(data) == 0:
		return place, nil, tool.Mistake(place.String() + " is empty; there is nothing to post.")
	}
	return place, data, nil
}
