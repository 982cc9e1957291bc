package rest

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Page renders the document for people, as HTML without any script. style is the
// address of a style sheet; version is of the program that serves it; problems are the words and sentences of the problem types.
func (k *Kernel) Page(style, version string, problems [][2]string) ([]byte, error) {
	doc, err := k.document()
	if err != nil {
		return nil, err
	}
	p := &page{doc: doc}
	p.head(style, version)
	for _, tag := range doc.Tags {
		p.add(`<h2 id="tag-%s">%s</h2><p>%s</p>`, tag.Name, tag.Name, tag.Description)
		for _, r := range k.Operations() {
			if r.Tag == tag.Name {
				path := plainPath(r.Path)
				p.operation(r.Method, path, doc.Paths[path][strings.ToLower(r.Method)])
			}
		}
		for _, path := range slices.Sorted(maps.Keys(k.o.Beside)) {
			for _, method := range slices.Sorted(maps.Keys(k.o.Beside[path])) {
				if op := k.o.Beside[path][method]; slices.Contains(op.Tags, tag.Name) {
					p.operation(strings.ToUpper(method), path, op)
				}
			}
		}
	}
	p.add(`<h2 id="problems">problems</h2><p>Errors are application/problem+json. Their type is one of these.</p><dl>`)
	for _, problem := range problems {
		p.add(`<dt id="problem-%s"><code>%s</code></dt><dd>%s</dd>`, problem[0], problem[0], problem[1])
	}
	p.add(`</dl><h2 id="types">types</h2>`)
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		schema := doc.Components.Schemas[name]
		p.add(`<section><h3 id="type-%s">%s</h3>`, name, name)
		if schema.Description != "" {
			p.add(`<p>%s</p>`, schema.Description)
		}
		p.fields(schema)
		p.out.WriteString("</section>\n")
	}
	p.out.WriteString("</main></body></html>\n")
	return []byte(p.out.String()), nil
}

type page struct {
	doc *Document
	out strings.Builder
}

// add writes with every value escaped.
func (p *page) add(format string, values ...string) {
	safe := make([]any, len(values))
	for i, v := range values {
		safe[i] = html.EscapeString(v)
	}
	fmt.Fprintf(&p.out, format, safe...)
	p.out.WriteByte('\n')
}

func (p *page) head(style, version string) {
	p.add(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%s</title><link rel="stylesheet" href="%s"></head><body><main><h1>%s</h1><p>%s</p>
<p>Served by %s. As JSON: <a href="/openapi.json">openapi.json</a>.</p><nav><ul>`,
		p.doc.Info.Title, style, p.doc.Info.Title, p.doc.Info.Description, version)
	for _, tag := range p.doc.Tags {
		p.add(`<li><a href="#tag-%s">%s</a></li>`, tag.Name, tag.Name)
	}
	p.add(`<li><a href="#problems">problems</a></li><li><a href="#types">types</a></li></ul></nav>`)
}

func (p *page) operation(method, path string, d *Described) {
	if d == nil {
		return
	}
	p.add(`<section><h3 id="%s"><code>%s %s</code></h3><p>%s.</p>`, d.OperationID, method, path, d.Summary)
	if d.Description != "" {
		p.add(`<p>%s</p>`, d.Description)
	}
	if d.Scope != "" {
		p.add(`<p>Needs a token with <code>%s</code>.</p>`, d.Scope)
	}
	if len(d.Parameters) > 0 {
		p.out.WriteString("<table><tr><th>parameter</th><th>in</th><th>is</th><th></th></tr>\n")
		for _, v := range d.Parameters {
			p.add(`<tr><td><code>%s</code></td><td>%s</td><td>%s</td><td>%s</td></tr>`, v.Name, v.In, need(v.Required)+limits(v.Schema), v.Description)
		}
		p.out.WriteString("</table>\n")
	}
	if d.RequestBody != nil {
		p.media("Takes", d.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(d.Responses)) {
		if status < "400" {
			p.media("Answers "+status, d.Responses[status].Content)
		}
	}
	var failures []string
	for _, status := range slices.Sorted(maps.Keys(d.Responses)) {
		if status >= "400" {
			failures = append(failures, status)
		}
	}
	p.add(`<p>Or %s.</p></section>`, strings.Join(failures, ", "))
}

func (p *page) media(what string, content map[string]Media) {
	if len(content) == 0 {
		p.add(`<p>%s, without a body.</p>`, what)
	}
	for _, media := range slices.Sorted(maps.Keys(content)) {
		p.add(`<p>%s <code>%s</code>`, what, media)
		if name := refName(content[media].Schema); name != "" {
			p.add(`<a href="#type-%s">%s</a>`, name, name)
		}
		p.out.WriteString("</p>\n")
	}
}

func (p *page) fields(schema *jsonschema.Schema) {
	for _, member := range schema.OneOf {
		p.add(`<p>or <a href="#type-%s">%s</a></p>`, refName(member), refName(member))
	}
	if len(schema.Properties) == 0 {
		return
	}
	p.out.WriteString("<table><tr><th>field</th><th>is</th><th></th></tr>\n")
	for _, name := range schema.PropertyOrder {
		prop := schema.Properties[name]
		p.add(`<tr><td><code>%s</code></td><td>%s`, name, need(slices.Contains(schema.Required, name))+limits(prop))
		target := prop
		if prop.Items != nil {
			target = prop.Items
		}
		if ref := refName(target); ref != "" {
			p.add(` <a href="#type-%s">%s</a>`, ref, ref)
		}
		p.add(`</td><td>%s</td></tr>`, prop.Description)
	}
	p.out.WriteString("</table>\n")
}

func need(required bool) string {
	if required {
		return ""
	}
	return "optional "
}

func refName(s *jsonschema.Schema) string {
	if s == nil {
		return ""
	}
	return strings.TrimPrefix(s.Ref, "#/components/schemas/")
}

// limits describes the limits of a value in a few words.
func limits(s *jsonschema.Schema) string {
	said := s.Type
	if s.Type == "array" {
		said = "list of"
		if s.Items != nil {
			said += " " + s.Items.Type
		}
	}
	if s.Format != "" {
		said += " (" + s.Format + ")"
	}
	if len(s.Enum) > 0 {
		said = strings.TrimPrefix(oneOf(s.Enum, nil), "it must be ")
	}
	if s.Minimum != nil && s.Maximum != nil {
		said += " " + number(*s.Minimum) + "–" + number(*s.Maximum)
	}
	if s.MaxLength != nil {
		said += fmt.Sprintf(", at most %d characters", *s.MaxLength)
	}
	return said
}
