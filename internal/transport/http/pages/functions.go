package pages

import (
	"cmp"
	"html"
	"net/url"
	"slices"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/text"
	"chorus/internal/transport/http/charts"
	"chorus/internal/transport/http/diffview"
	"chorus/internal/transport/http/display"
	"chorus/internal/work"
)

// functions are the functions that templates can call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"static":        p.assets.href,
		"markdown":      func(text string) template.HTML { return template.HTML(markdown.HTML(text)) }, // safe: see markdown.HTML
		"diff":          diff,
		"isQuestion":    approval.IsQuestion,
		"asker":         func(actions []string) string { _, from, _ := strings.Cut(actions[0], ":"); return from },
		"question":      questionOf,
		"pairs":         diffview.SideBySide,
		"edits":         edits,
		"callEdits":     callEdits,
		"previewOf":     previewOf,
		"changedLines":  changedLines,
		"failedAs":      failedAs,
		"reasonOf":      reasonOf,
		"command":       display.ShellCommand,
		"took":          display.Took,
		"rulename":      permit.RuleName,
		"ruletitle":     display.RuleTitle,
		"setting":       settingOf,
		"lower":         strings.ToLower,
		"reason":        work.Reason,
		"firstSentence": display.FirstSentence,
		"taskState":     display.TaskState,
		"code":          func(text, lang string) template.HTML { return template.HTML(markdown.Code(text, lang)) },
		"pretty":        display.JSON,
		"visible":       markdown.Visible,
		"clean":         markdown.Clean,
		"set":           func(t time.Time) bool { return !t.IsZero() },
		"ago":           func(t time.Time) string { return display.Ago(t, p.Now()) },
		"soon":          func(t time.Time) string { return display.Soon(t, p.Now()) },
		"clock":         func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"moment":        func(t time.Time) string { return t.Format("Mon 2 Jan 2006, 15:04 MST") },
		"usd":           display.USD,
		"dollars":       text.Dollars,
		"count":         display.CountAny,
		"short":         display.Short,
		"shown":         shownStatus,
		"toolRule":      display.ToolRule,
		"zone":          display.Zone,
		"firstOf":       cmp.Or[string],
		"join":          strings.Join,
		"actions":       display.Actions,
		"verdict":       display.Verdict,
		"span":          charts.SpanName,
		"spantook":      charts.SpanTook,
		"since":         charts.SinceFirst,
		"depth":         func(n int) int { return min(n, deepest) },
		"prefix":        strings.HasPrefix,
		"person":        display.Person,
		"who":           display.Who,
		"initial":       display.Initial,
		"marked":        marked,
		"sentence":      text.Sentence,
		"percent":       display.Percent,
		"sum":           func(a, b int) int { return a + b },
		"chosen":        toolChosen,
		"skillsOf":      func(agent string, list []operations.Skill) agentForm { return agentForm{Name: agent, Skills: list} },
		"skillState":    display.SkillState,
		"decision":      operations.DecisionText,
		"shortIDs":      display.ShortIDs,
		"act":           display.Action,
		"channel":       display.Channel,
		"budget":        display.Budget,
		"period":        display.Period,
		"place":         display.Folder,
		"decidedAs":     display.TrialVerdict,
		"trimTool":      func(action string) string { return strings.TrimPrefix(action, "tool:bash:") },
		"status":        display.Status,
		"path":          func(text string) string { return (&url.URL{Path: text}).EscapedPath() },
		"words":         func(text string) string { said, _ := display.SplitFiles(text); return said },
		"inlined":       func(text string) []display.InlineFile { _, files := display.SplitFiles(text); return files },
		"tokens":        display.NewTokens,
	}
}

// diff colours a unified diff. Characters that hide or reorder text are escaped.
func diff(text string) template.HTML {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return template.HTML(markdown.Code(text, "diff"))
}

// deepest limits the indentation of parts of a command.
const deepest = 4

// marked highlights the matches of a search.
func marked(snippet string) template.HTML {
	text := html.EscapeString(snippet)
	return template.HTML(strings.NewReplacer("\x01", "<mark>", "\x02", "</mark>").Replace(text))
}

// reasonOf is why an approval is asked for, unless its risk or its parts say the same.
func reasonOf(a operations.Approval) string {
	said := func(part chat.JudgedPart) bool { return strings.Contains(part.Why, a.Reason) }
	if strings.Contains(a.RiskWhy, a.Reason) || len(a.Parts) > 1 && slices.ContainsFunc(a.Parts, said) { // a single part is not listed
		return ""
	}
	return a.Reason
}

// failedAs says in one word how a call without an exit code failed.
func failedAs(outcome string) string {
	if outcome == string(chat.Ran) {
		return "failed" // it ran, or was about to
	}
	return cmp.Or(outcome, "failed")
}
