package split

import "strings"

// Embed is a card of the platform's. Color and links are the connector's.
type Embed struct {
	Title, Description, Author, Footer string
	Fields                             []Field
}

// Field is a line of a card.
type Field struct {
	Name, Value string
	Inline      bool
}

// Discord's limits of embeds.
const (
	embedTotal       = 6000 // of all embeds of one message together
	embedCount       = 10   // in one message
	embedTitle       = 256
	embedDescription = 4096
	embedFields      = 25
	fieldName        = 256
	fieldValue       = 1024
	embedFooter      = 2048
	embedAuthor      = 256

	nothing = "\u200b" // the platform refuses an empty name or value
)

// Size is what an embed counts towards a message's limit.
func (e Embed) Size() int {
	n := Length(e.Title) + Length(e.Description) + Length(e.Author) + Length(e.Footer)
	for _, f := range e.Fields {
		n += Length(f.Name) + Length(f.Value)
	}
	return n
}

// Empty reports an embed with nothing in it, which the platform refuses.
func (e Embed) Empty() bool { return e.Size() == 0 }

// Embeds spreads cards over as many messages as the limits ask for, in order. Texts that
// are too long are clipped; fields that are too many go on in a further embed with
// the same author. Empty ones are left out.
func Embeds(in []Embed) [][]Embed {
	var pages [][]Embed
	var page []Embed
	used := 0
	for _, e := range in {
		for _, part := range spread(clipped(e)) {
			size := part.Size()
			if size == 0 {
				continue
			}
			if len(page) == embedCount || len(page) > 0 && used+size > embedTotal {
				pages, page, used = append(pages, page), nil, 0
			}
			page, used = append(page, part), used+size
		}
	}
	if len(page) > 0 {
		pages = append(pages, page)
	}
	return pages
}

// clipped holds each text to its limit.
func clipped(e Embed) Embed {
	e.Title = Clip(e.Title, embedTitle)
	e.Description = Clip(e.Description, embedDescription)
	e.Author = Clip(e.Author, embedAuthor)
	e.Footer = Clip(e.Footer, min(embedFooter, embedTotal-embedDescription-embedTitle-embedAuthor)) // all four in one message
	fields := make([]Field, 0, len(e.Fields))
	for _, f := range e.Fields {
		if strings.TrimSpace(f.Name) == "" && strings.TrimSpace(f.Value) == "" {
			continue
		}
		f.Name, f.Value = filled(Clip(f.Name, fieldName)), filled(Clip(f.Value, fieldValue))
		fields = append(fields, f)
	}
	e.Fields = fields
	return e
}

func filled(s string) string {
	if strings.TrimSpace(s) == "" {
		return nothing
	}
	return s
}

// spread gives one embed as several that each fit a message; the footer is under the last.
func spread(e Embed) []Embed {
	fields, footer := e.Fields, e.Footer
	e.Fields, e.Footer = nil, ""
	out := []Embed{e}
	for _, f := range fields {
		last := &out[len(out)-1]
		if len(last.Fields) == embedFields || last.Size()+Length(f.Name)+Length(f.Value) > embedTotal {
			out = append(out, Embed{Author: e.Author})
			last = &out[len(out)-1]
		}
		last.Fields = append(last.Fields, f)
	}
	if last := &out[len(out)-1]; footer != "" && last.Size()+Length(footer) <= embedTotal {
		last.Footer = footer
	} else if footer != "" {
		out = append(out, Embed{Author: e.Author, Footer: footer})
	}
	return out
}
