package markdown

import (
	"bufio"
	"bytes"
	"html"
	"strings"
	"sync"

	"chorus/internal/pattern"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	goldmark "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The library needs quadratic time for long texts full of unclosed marks, for deep nesting and for wide tables with many
// short rows. These limits are far above what people and models write; a text beyond them is shown as it is.
const (
	maxInline = 8 << 10 // bytes of one paragraph, heading or table cell
	maxDepth  = 32      // nodes around a block: a list counts for two
	maxCells  = 20_000  // of one table
)

// blockParser parses the blocks of a document but not their text. Two constructs are missing on purpose: raw HTML is
// text, and reference definitions ("[name]: address") would change earlier blocks that are already final.
var blockParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(shallow{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000)),
		parser.WithParagraphTransformers(util.Prioritized(smallTables{extension.NewTableParagraphTransformer()}, 200)))
})

// bareAddress accepts hosts without a dot, unlike the library's own pattern: models write localhost.
var bareAddress = pattern.Lazy("^https?://[^\\s/<>\"`|\\\\^{}*]+[^\\s<>\"`|\\\\^{}*]*")

// inlineParser parses the text of one block.
var inlineParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 100)),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(extension.WithLinkifyURLRegexp(bareAddress())), 999)))
})

// shallow opens no list or quote beyond maxDepth.
type shallow struct{ parser.BlockParser }

func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth > maxDepth {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// smallTables does not turn a paragraph into a table with more than maxCells.
type smallTables struct{ parser.ParagraphTransformer }

func (s smallTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	columns := 0
	for _, line := range node.Lines().Sliced(0, node.Lines().Len()) {
		columns = max(columns, bytes.Count(line.Value(reader.Source()), []byte("|"))+1)
	}
	if columns*node.Lines().Len() <= maxCells {
		s.ParagraphTransformer.Transform(node, reader, pc)
	}
}

// parseInline returns the nodes of one block's text, or nil if it is too long.
func parseInline(src string) ast.Node {
	if len(src) > maxInline {
		return nil
	}
	return inlineParser().Parse(text.NewReader([]byte(src)))
}

// literal resolves escapes and entities in source text, and removes control characters that come from entities.
func literal(src []byte) string {
	if bytes.IndexByte(src, '\\') < 0 && bytes.IndexByte(src, '&') < 0 {
		return string(src)
	}
	var out strings.Builder
	w := bufio.NewWriter(&out)
	goldmark.DefaultWriter.Write(w, src)
	_ = w.Flush() // a strings.Builder never fails
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(html.UnescapeString(out.String())))
}

// codeText is the text of a code span.
func codeText(n *ast.CodeSpan, src []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out.Write(t.Value(src))
		}
	}
	return strings.ReplaceAll(out.String(), "\n", " ")
}

// linkTarget is where an automatic link leads.
func linkTarget(n *ast.AutoLink, src []byte) string {
	target := string(n.URL(src))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
		target = "mailto:" + target
	}
	return target
}
