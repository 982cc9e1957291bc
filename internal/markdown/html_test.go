package markdown

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHTML(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src, want string }{
		{"paragraphs", "one\ntwo\n\nthree", "<p>one<br>\ntwo</p>\n<p>three</p>"},
		{"spans", "**b** *i* ~~s~~ `c<d`", "<p><strong>b</strong> <em>i</em> <s>s</s> <code>c&lt;d</code></p>"},
		{"markup is text", "<script>alert(1)</script> & <b>", "<p>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;</p>"},
		{"heading", "# Title *x*", "<h2>Title <em>x</em></h2>"},
		{"rule", "a\n\n---\nb", "<p>a</p>\n<hr>\n<p>b</p>"},
		{"list", "- a\n- b\n  - c\n- d", "<ul><li>a</li><li>b\n<ul><li>c</li></ul></li><li>d</li></ul>"},
		{"numbered", "3. c\n4. d", `<ol start="3"><li>c</li><li>d</li></ol>`},
		{"loose list", "1. a\n\n   more\n\n2. b\n\nend", "<ol><li><p>a</p>\n<p>more</p></li><li><p>b</p></li></ol>\n<p>end</p>"},
		{"tasks", "- [x] done\n- [ ] not", `<ul><li class="task">☑ done</li><li class="task">☐ not</li></ul>`},
		{"quote", "> a\n> - b", "<blockquote><p>a</p>\n<ul><li>b</li></ul></blockquote>"},
		{"code", "```go\nvar x = \"<\" // c\n```", `<figure class="code"><figcaption>go</figcaption><pre><code><span class="k">var</span> x = <span class="s">&#34;&lt;&#34;</span> <span class="c">// c</span>` + "\n</code></pre></figure>"},
		{"open code", "```\nx", `<figure class="code"><pre><code>x` + "\n</code></pre></figure>"},
		{"table", "a | b\n--|--:\n1 | **2**", `<div class="table"><table><thead><tr><th>a</th><th class="right">b</th></tr></thead><tbody><tr><td>1</td><td class="right"><strong>2</strong></td></tr></tbody></table></div>`},
		{"link", "[x](https://a.example/?q=\"1\")", `<p><a href="https://a.example/?q=&#34;1&#34;" rel="noopener noreferrer nofollow" target="_blank">x</a></p>`},
		{"bare address", "see https://a.example/x(y).", `<p>see <a href="https://a.example/x(y)" rel="noopener noreferrer nofollow" target="_blank">https://a.example/x(y)</a>.</p>`},
		{"bad link", "[x](javascript:alert(1)) [y](data:text/html,x) [z](//evil.example)", "<p>x y z</p>"},
		{"hidden scheme", "[x](javascript&colon;alert(1)) [y](<java\tscript:alert(1)>) <javascript:alert(1)>", "<p>x y javascript:alert(1)</p>"},
		{"host without a dot", "http://localhost:8080/x", `<p><a href="http://localhost:8080/x" rel="noopener noreferrer nofollow" target="_blank">http://localhost:8080/x</a></p>`},
		{"mail address", "ask a@b.example", `<p>ask <a href="mailto:a@b.example" rel="noopener noreferrer nofollow" target="_blank">a@b.example</a></p>`},
		{"definition", "[a]\n\n[a]: https://a.example", "<p>[a]</p>\n<p>[a]: <a href=\"https://a.example\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">https://a.example</a></p>"},
		{"entities", "&amp;lt; &#27;[31m \\&lt; &copy;", "<p>&amp;lt; [31m &amp;lt; ©</p>"},
		{"nested spans", "**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"},
		{"underlined heading", "Title\n===\ntext", "<h2>Title</h2>\n<p>text</p>"},
		{"indented code", "a\n\n    <b>\n\tc", `<p>a</p>` + "\n" + `<figure class="code"><pre><code>&lt;b&gt;` + "\nc\n</code></pre></figure>"},
		{"code in an item", "- a\n  ```\n  x\n    y\n  ```", `<ul><li>a` + "\n" + `<figure class="code"><pre><code>x` + "\n  y\n</code></pre></figure></li></ul>"},
		{"block of markup", "<div onclick=x>\n\n<!-- a -->\n<p>", "<p>&lt;div onclick=x&gt;</p>\n<p>&lt;!-- a --&gt;<br>\n&lt;p&gt;</p>"},
		{"many columns", "a | **b** | <i> | \"d\"\n--|--|--:|--\n1 | 2 | 3 | 4", `<div class="table wide"><table><thead><tr><th>a</th><th><strong>b</strong></th><th class="right">&lt;i&gt;</th><th>&#34;d&#34;</th></tr></thead>` +
			`<tbody><tr><td data-label="a">1</td><td data-label="b">2</td><td class="right" data-label="&lt;i&gt;">3</td><td data-label="&#34;d&#34;">4</td></tr></tbody></table></div>`},
		{"pipes in cells", "a | b\n--|--\n`x\\|y` | \\| z\nonly", `<div class="table"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x|y</code></td><td>| z</td></tr><tr><td>only</td><td></td></tr></tbody></table></div>`},
		{"linked picture", "[![alt](https://a.example/p.png)](https://b.example)", `<p><a href="https://b.example" rel="noopener noreferrer nofollow" target="_blank">alt</a></p>`},
		{"picture", "![alt](https://a.example/p.png)", `<p><a href="https://a.example/p.png" rel="noopener noreferrer nofollow" target="_blank">alt</a></p>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := HTML(c.src); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// known are the only things that may stand between angle brackets.
var known = regexp.MustCompile(`^(/?(p|strong|em|s|code|h[2-6]|ul|ol|li|blockquote|pre|figure|figcaption|div|table|thead|tbody|tr|th|td|span|a)|br|hr|` +
	`ol start="\d+"|li class="task"|figure class="code"|div class="table( wide)?"|t[hd]( class="(right|middle)")?( data-label="[^"<>]*")?|span class="[a-z]+"|` +
	`a href="(https?://|mailto:)[^"<>]*" rel="noopener noreferrer nofollow" target="_blank")$`)

func checkSafe(t interface{ Fatalf(string, ...any) }, src string) {
	var open []string
	rest := HTML(src)
	for {
		at := strings.IndexByte(rest, '<')
		if at < 0 {
			break
		}
		end := strings.IndexByte(rest[at:], '>')
		if end < 0 || !known.MatchString(rest[at+1:at+end]) {
			t.Fatalf("%q makes %.200q", src, rest[at:])
		}
		tag, _, _ := strings.Cut(rest[at+1:at+end], " ")
		switch name, closing := strings.CutPrefix(tag, "/"); {
		case closing:
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("%q closes %s inside %v", src, name, open)
			}
			open = open[:len(open)-1]
		case tag != "br" && tag != "hr":
			open = append(open, tag)
		}
		rest = rest[at+end+1:]
	}
	if len(open) > 0 {
		t.Fatalf("%q leaves %v open", src, open)
	}
}

func scraps() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "word ", "\n", "\n\n", "- ", "  - ", "1. ", "> ", "```\n", "```go\n", "| a | b |\n", "|--|--|\n", "# ",
		"**", "*", "`", "~~", "[x](https://a.b)", "[", "](", "<b>", "\"'>", "---\n", "    ", "https://x.y/z ", "- [ ] ", "\t", "javascript:", "\\", "&amp;", "é", "\x1b[31m",
		"===\n", "[a]: https://x.y\n", "&#106;", "<div>\n", "![", "+ ", "* ", "2) ", "~~~\n", "<https://x.y>", "_", "www.x.y ", "a@b.c "}),
		0, 40), func(parts []string) string { return strings.Join(parts, "") })
}

// Whatever a model writes, a page shows elements of ours, each closed.
func TestHTMLIsSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkSafe(t, rapid.OneOf(scraps(), rapid.String()).Draw(t, "src")) })
}

// A line that is still being written may become part of the block before it.
func TestUnfinishedLine(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{"1. \n1": 1, "1. a\n\n2.": 1, "- a\n\n-": 1, "- a\n\n1\n": 2, "| a | b |\n|--|--|\nc": 1, "|--|--|\n| a | b |\n- |": 1, "a\n\nb\n\nc": 2, "a\n\nb\n": 2} {
		if got := Blocks(src); len(got) != want {
			t.Errorf("%q is %q", src, got)
		}
	}
}

// Blocks before the last one never change while more is written.
func TestBlocksAreFinal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := scraps().Draw(t, "src")
		cut := rapid.IntRange(0, len(src)).Draw(t, "cut")
		if cut < len(src) && src[cut]&0xc0 == 0x80 || strings.Contains(src, "\x1b") {
			return // half a character is not yet written
		}
		before, after := Blocks(src[:cut]), Blocks(src)
		n := max(0, len(before)-1)
		if len(after) < n || !slices.Equal(before[:n], after[:n]) {
			t.Fatalf("%q\nof %q:\n%q\n%q", src[:cut], src, before, after)
		}
	})
}

// A text that is made to be slow is shown as it is.
func TestNoHTMLIsSlow(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"*a_ ", "a_*b", "[a](b", "> ", "1. ", "- ", "***a_", "|", "[", "`", "|a\n", "*a_ \n"} {
		src := strings.Repeat(piece, 200_000/len(piece))
		begin := time.Now()
		if HTML(src); time.Since(begin) > time.Minute {
			t.Errorf("%q took %v", piece, time.Since(begin))
		}
	}
	columns := strings.Repeat("|a", 2000) + "|\n" + strings.Repeat("|-", 2000) + "|\n" + strings.Repeat("x\n", 50_000)
	if html := HTML(columns); strings.Contains(html, "<table") {
		t.Error("a table of a hundred million cells was made")
	}
	var nested strings.Builder
	for i := range 300 {
		nested.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	if html := HTML(nested.String()); strings.Count(html, "<ul>") > maxDepth {
		t.Errorf("%d lists are nested", strings.Count(html, "<ul>"))
	}
}

func FuzzHTML(f *testing.F) {
	f.Add("# a\n- b\n```go\nx\n```\n| a | b |\n|--|--|\n| 1 | 2 |\n> q [l](https://x.y)")
	f.Add("<img src=x onerror=alert(1)>")
	f.Fuzz(func(t *testing.T, src string) { checkSafe(t, src) })
}
