package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/text"
)

// Outline is a parsed plan: what is common to all steps, and the steps.
type Outline struct {
	Title      string        `json:"title,omitempty"`
	Background string        `json:"background,omitempty"`
	Steps      []OutlineStep `json:"steps"`
	// Explicit reports whether the text itself says that it is a plan: it numbers
	// its phases, or has a section called a plan. Any other text with headings or
	// a numbered list may be something else.
	Explicit bool `json:"-"`
}

// OutlineStep is a step of a plan.
type OutlineStep struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// The limits of a plan. Longer texts are cut. A plan with too many
// steps is refused, and never carried out in part.
const (
	MaxPlanSteps  = 50
	maxPlanText   = 400_000
	maxStepText   = 50_000
	maxBackground = 20_000
	maxStepTitle  = 120
	// maxHeading is how much of a heading is read, so that an endless line costs little.
	maxHeading = 1000
	// leastStepText is how much text makes a section a step if nothing else indicates that it is one.
	leastStepText = 20
)

// heading is a line that begins a section.
type heading struct {
	level, line int
	title       string // as written
}

// The formats of headings and lists.
var (
	headingLine  = pattern.Lazy(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$`)
	listLine     = pattern.Lazy(`^ {0,3}(\d{1,3})[.)][ \t]+(\S.*)$`)
	numberedName = pattern.Lazy(`(?i)^(?:phase|step|part|stage|milestone|task)[ \t]*#?[ \t]*(?:\d{1,3}|[ivx]{1,4}|[a-h])\b[ \t]*[:.)\-–—]*[ \t]*`)
	leadNumber   = pattern.Lazy(`^\d{1,3}(?:\.\d{1,3})*[.):]?[ \t]+`)
	emphasis     = pattern.Lazy("(\\*\\*|__|\\*|`)(\\S(?:.*?\\S)?)(\\*\\*|__|\\*|`)")
	linkText     = pattern.Lazy(`\[([^\]]*)\]\([^)]*\)`)
)

// planSections are headings whose sections contain the steps of a plan.
var planSections = words(`implementation plan; implementation; implementation steps; implementation phases; plan; the plan; steps; phases; tasks; action items; action plan; work plan; work items;
	execution plan; deliverables; milestones; todo; to do; subtasks; task list; task breakdown; roadmap`)

// informational are headings of sections that cannot be carried out.
var informational = words(`overview; summary; executive summary; introduction; background; context; goal; goals; objective; objectives; purpose; motivation; scope; out of scope; non-goals; non goals; problem; problem statement;
	current state; existing code; analysis; findings; research; assumptions; constraints; requirements; prerequisites; dependencies; risks; risk assessment; risks and mitigations; mitigations; open questions; questions;
	decisions; design decisions; alternatives; alternatives considered; trade-offs; tradeoffs; architecture; design; approach; strategy; testing; testing strategy; test plan; verification; validation; acceptance criteria;
	success criteria; success metrics; definition of done; rollout; rollout plan; timeline; schedule; estimates; estimate; effort; resources; references; links; appendix; glossary; notes; conclusion; next steps; future work;
	files; files to change; affected files; key files; critical files; file structure; directory structure; api; data model; security considerations; performance considerations; considerations`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.SplitSeq(list, ";") {
		out[strings.TrimSpace(w)] = true
	}
	return out
}

// ReadOutline parses a plan as people and models write them. It returns false if there are no
// steps. It looks, in this order, for headings that number phases or steps, for a section that is
// called a plan, for sections that can be carried out, and for a numbered list. Otherwise the
// whole text is one step. Code blocks always count as text.
func ReadOutline(plan string) (Outline, bool) {
	d := document{lines: strings.Split(tidy(plan), "\n")}
	d.findHeadings()
	var out Outline
	for _, h := range d.heads {
		if h.level == 1 && !numberedName().MatchString(plain(h.title)) {
			out.Title = cleanTitle(h.title, "")
			break
		}
	}
	var taken []span
	for _, read := range []func(*document) ([]span, bool){(*document).numberedHeadings, (*document).planSection, (*document).sections, (*document).numberedList} {
		if taken, out.Explicit = read(&d); len(taken) > 0 {
			break
		}
	}
	if len(taken) == 0 {
		return d.whole(out)
	}
	at := 0
	var background []string
	for i, s := range taken {
		background = append(background, d.lines[at:s.from]...)
		at = s.to
		out.Steps = append(out.Steps, OutlineStep{Title: cleanTitle(s.title, fmt.Sprintf("Step %d", i+1)), Text: text.Prefix(strings.TrimSpace(strings.Join(d.lines[s.body:s.to], "\n")), maxStepText)})
	}
	background = append(background, d.lines[at:]...)
	out.Background = d.withoutTitle(background)
	return out, true
}

// tidy normalises a text for reading by lines: it converts line ends, and removes a byte
// order mark and the code fence that models put around a whole answer.
func tidy(plan string) string {
	plan = strings.ToValidUTF8(text.Prefix(plan, maxPlanText), "�")
	plan = strings.TrimPrefix(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "").Replace(plan), "\ufeff")
	trimmed := strings.TrimSpace(plan)
	first, rest, found := strings.Cut(trimmed, "\n")
	if lang, fenced := strings.CutPrefix(first, "```"); found && fenced && (lang == "" || lang == "markdown" || lang == "md") && strings.HasSuffix(rest, "\n```") && strings.Count(rest, "```")%2 == 1 {
		return strings.TrimSuffix(rest, "```")
	}
	return plan
}

// document is a text being parsed.
type document struct {
	lines []string
	code  []bool // whether the line is in a code block
	heads []heading
}

// span is the lines of a step, from its title to the next section.
type span struct {
	title          string
	from, body, to int
}

func (d *document) findHeadings() {
	d.code = make([]bool, len(d.lines))
	fence := ""
	for i, line := range d.lines {
		mark := strings.TrimLeft(line, " ")
		if len(line)-len(mark) <= 3 {
			switch {
			case fence == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
				fence = mark[:3]
				d.code[i] = true
				continue
			case fence != "" && strings.HasPrefix(mark, fence) && strings.Trim(mark, fence[:1]+" \t") == "":
				fence = ""
				d.code[i] = true
				continue
			}
		}
		if d.code[i] = fence != ""; d.code[i] {
			continue
		}
		if m := headingLine().FindStringSubmatch(line); m != nil {
			d.heads = append(d.heads, heading{level: len(m[1]), line: i, title: text.Prefix(m[2], maxHeading)})
		}
	}
}

// end returns where the section of a heading ends: at the next heading of its level or above.
func (d *document) end(at int) int {
	for _, h := range d.heads[at+1:] {
		if h.level <= d.heads[at].level {
			return h.line
		}
	}
	return len(d.lines)
}

func (d *document) span(at int) span {
	h := d.heads[at]
	return span{title: h.title, from: h.line, body: h.line + 1, to: d.end(at)}
}

// numberedHeadings finds "## Phase 1: …", "### Step 2 - …" and the like, at
// the outermost level that has more than one of them.
func (d *document) numberedHeadings() ([]span, bool) {
	levels := map[int]int{}
	for _, h := range d.heads {
		if numberedName().MatchString(plain(h.title)) {
			levels[h.level]++
		}
	}
	level := 0
	for l := 6; l >= 1; l-- {
		if levels[l] > 1 || levels[l] == 1 && level == 0 {
			level = l
		}
	}
	var out []span
	for i, h := range d.heads {
		if h.level == level && numberedName().MatchString(plain(h.title)) {
			out = append(out, d.span(i))
		}
	}
	return out, len(out) > 1
}

// planSection finds a section that is called a plan. The subsections, or the list in it, are the steps.
func (d *document) planSection() ([]span, bool) {
	for i, h := range d.heads {
		if h.level > 3 || !planSections[name(h.title)] {
			continue
		}
		end := d.end(i)
		below := 0
		for _, c := range d.heads[i+1:] {
			if c.line >= end {
				break
			}
			if below == 0 || c.level < below {
				below = c.level
			}
		}
		var out []span
		for j := i + 1; j < len(d.heads) && d.heads[j].line < end; j++ {
			if d.heads[j].level == below && !informational[name(d.heads[j].title)] {
				out = append(out, d.span(j))
			}
		}
		if len(out) == 0 {
			out = d.list(h.line+1, end)
		}
		if len(out) > 0 {
			return out, true
		}
	}
	return nil, false
}

// sections returns the sections that can be carried out.
func (d *document) sections() ([]span, bool) {
	level := 0
	for _, want := range []int{2, 3} {
		n := 0
		for _, h := range d.heads {
			if h.level == want && !informational[name(h.title)] {
				n++
			}
		}
		if n > 0 {
			level = want
			break
		}
	}
	var out []span
	for i, h := range d.heads {
		if h.level != level || informational[name(h.title)] || name(h.title) == "" {
			continue
		}
		if s := d.span(i); len(strings.TrimSpace(strings.Join(d.lines[s.body:s.to], "\n"))) >= leastStepText {
			out = append(out, s)
		}
	}
	return out, false
}

func (d *document) numberedList() ([]span, bool) {
	if out := d.list(0, len(d.lines)); len(out) > 1 {
		return out, false
	}
	return nil, false
}

// list returns the entries of the numbered list within some lines, each with what is indented below it.
func (d *document) list(from, to int) (out []span) {
	for i := from; i < to; i++ {
		if d.code[i] || d.isHeading(i) {
			continue
		}
		if m := listLine().FindStringSubmatch(d.lines[i]); m != nil {
			if len(out) > 0 {
				out[len(out)-1].to = i
			}
			out = append(out, span{title: text.Prefix(m[2], maxHeading), from: i, body: i, to: to})
		}
	}
	if len(out) > 0 { // text after the list, at the margin and after an empty line, is not part of its last entry
		last := &out[len(out)-1]
		for i := last.from + 1; i < last.to; i++ {
			line := d.lines[i]
			if d.isHeading(i) || strings.TrimSpace(d.lines[i-1]) == "" && line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") && !d.code[i] {
				last.to = i
			}
		}
	}
	return out
}

func (d *document) isHeading(line int) bool {
	_, found := slices.BinarySearchFunc(d.heads, line, func(h heading, line int) int { return h.line - line })
	return found
}

// whole makes one step of everything. A title alone is not a step.
func (d *document) whole(out Outline) (Outline, bool) {
	body := d.withoutTitle(d.lines)
	if strings.TrimSpace(strings.NewReplacer("#", "", "-", "", "*", "").Replace(body)) == "" {
		return Outline{Title: out.Title}, false
	}
	title := cmp.Or(out.Title, "Implementation Plan")
	out.Steps = []OutlineStep{{Title: title, Text: text.Prefix(strings.TrimSpace(strings.Join(d.lines, "\n")), maxStepText)}}
	return out, true
}

// withoutTitle returns what is common to all steps: the rest of the text, without the document's title.
func (d *document) withoutTitle(lines []string) string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if m := headingLine().FindStringSubmatch(line); m != nil && len(m[1]) == 1 {
			lines[i] = ""
		}
		break
	}
	return text.Prefix(strings.TrimSpace(strings.Join(lines, "\n")), maxBackground)
}

// plain returns a title without emphasis and link marks.
func plain(title string) string {
	if strings.ContainsAny(title, "*_`[") { // few titles have any
		title = linkText().ReplaceAllString(title, "$1")
		for range 3 { // marks within marks
			title = emphasis().ReplaceAllString(title, "$2")
		}
	}
	return strings.Join(strings.Fields(title), " ")
}

// name returns the form of a title by which sections are recognised: without its number, in lower case.
func name(title string) string {
	return strings.ToLower(strings.TrimRight(leadNumber().ReplaceAllString(plain(title), ""), ": ."))
}

// cleanTitle returns the title of a step: "Step 1: **Parse**" gives Parse.
func cleanTitle(title, otherwise string) string {
	title = plain(title)
	short := leadNumber().ReplaceAllString(numberedName().ReplaceAllString(title, ""), "")
	short = strings.TrimRight(strings.TrimLeft(short, ":.-–— "), ": ")
	if strings.IndexFunc(short, func(r rune) bool { return r > ' ' && !strings.ContainsRune("*_`#-.:", r) }) < 0 {
		short = strings.Trim(title, "*_`#: ")
	}
	if short == "" {
		return otherwise
	}
	if runes := []rune(short); len(runes) > maxStepTitle {
		return strings.TrimSpace(string(runes[:maxStepTitle-1])) + "…"
	}
	return short
}

// Describe returns the description for the worker of a step. It is all that the worker sees of the plan.
func (o Outline) Describe(parent Task, at int) string {
	var b strings.Builder
	step := o.Steps[at]
	fmt.Fprintf(&b, "**%s**\n\nThis is step %d of %d of the plan for: %s\n", step.Title, at+1, len(o.Steps), parent.Title)
	if o.Background != "" {
		fmt.Fprintf(&b, "\n## Background context\n\n%s\n", o.Background)
	}
	b.WriteString("\n## All steps\n\n")
	for i, s := range o.Steps {
		mark := ""
		if i == at {
			mark = " (this one)"
		}
		fmt.Fprintf(&b, "%d. %s%s\n", i+1, s.Title, mark)
	}
	fmt.Fprintf(&b, "\n## Task details\n\n%s\n", step.Text)
	return b.String()
}
