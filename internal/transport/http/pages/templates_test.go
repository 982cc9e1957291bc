package pages

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/charts"
	"chorus/internal/transport/http/diffview"
)

// Escaping is the library's task. These are the places where a missing rule lets a link run a
// script or lets a value leave its place, so a change of library must not lose them.
func TestEscaping(t *testing.T) {
	t.Parallel()
	const script, text = "javascript:alert(1)", `a&b=c d"<'>`
	for _, c := range []struct{ source, value, want string }{
		{`<a href="{{.}}">`, script, `<a href="#ZgotmplZ">`},
		{`<a href="{{.}}">`, "/s/1?a=b&c=d", `<a href="/s/1?a=b&amp;c=d">`},
		{`<object data="{{.}}">`, script, `<object data="#ZgotmplZ">`},
		{`<video poster="{{.}}">`, script, `<video poster="#ZgotmplZ">`},
		{`<use xlink:href="{{.}}">`, script, `<use xlink:href="#ZgotmplZ">`},
		{`<body background="{{.}}">`, script, `<body background="#ZgotmplZ">`},
		{`<meta http-equiv="refresh" content="0; url={{.}}">`, script, `<meta http-equiv="refresh" content="0; url=#ZgotmplZ">`},
		{`<form action="{{.}}">`, "\tJavaScript:alert(1)", `<form action="#ZgotmplZ">`},
		{`<a href="/search?q={{.}}&amp;x=1">`, text, `<a href="/search?q=a%26b%3dc%20d%22%3c%27%3e&amp;x=1">`},
		{`<p title="{{.}}">{{.}}</p>`, text, `<p title="a&amp;b=c d&#34;&lt;&#39;&gt;">a&amp;b=c d&#34;&lt;&#39;&gt;</p>`},
		{`<p title={{.}}>`, "x onclick=alert(1)", `<p title=x&#32;onclick&#61;alert(1)>`},
		{`<script>let x = {{.}};</script>`, `</script><b>`, `<script>let x = "\u003c/script\u003e\u003cb\u003e";</script>`},
		{`<p onclick="f({{.}})">`, `");alert(1)//`, `<p onclick="f(&#34;\&#34;);alert(1)//&#34;)">`},
		{"<p\fonclick=\"f({{.}})\">", `");alert(1)//`, "<p\fonclick=\"f(&#34;\\&#34;);alert(1)//&#34;)\">"},
		{`<p style="color: {{.}}">`, "red; background: url(x)", `<p style="color: ZgotmplZ">`},
	} {
		var out strings.Builder
		parsed, err := template.New("t").Parse(c.source)
		if err == nil {
			err = parsed.Execute(&out, c.value)
		}
		if err != nil || out.String() != c.want {
			t.Errorf("%s with %q: %v %s, want %s", c.source, c.value, err, out.String(), c.want)
		}
	}
}

// The library looks for values in places that cannot be escaped when a template is first executed.
// Here every one is, so that no page can fail that way later.
func TestEveryTemplateCanBeEscaped(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	sets := map[string]*template.Template{}
	for name, read := range p.templates {
		page, err := read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sets[name] = page.Lookup("layout.html")
	}
	for _, piece := range newPages(t).fragments.Templates() {
		if name := piece.Name(); !strings.HasSuffix(name, ".html") && name != "places" {
			sets[name] = piece
		}
	}
	if len(sets) < 40 {
		t.Fatalf("only %d templates", len(sets))
	}
	for name, set := range sets {
		var refused *template.Error
		if err := set.Execute(io.Discard, nil); errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// full is a value in which every exported field is set, so that every branch of a template is taken.
func full[T any]() T {
	var v T
	fillIn(reflect.ValueOf(&v).Elem(), 6)
	return v
}

func fillIn(v reflect.Value, depth int) {
	switch {
	case depth == 0:
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(noon))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillIn(v.Field(i), depth-1)
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), depth)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fillIn(v.Index(i), depth)
		}
	case v.Kind() == reflect.String:
		v.SetString("value <x>")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(3)
	case v.CanUint():
		v.SetUint(3)
	case v.CanFloat():
		v.SetFloat(1.5)
	}
}

// A template that hands a function a value of the wrong type fails when it is executed, and only in the
// branch that does so. Every page is rendered with everything set and with nothing set.
func TestEveryPageRenders(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	sessions, groups := full[[]operations.Session](), full[[]group]()
	pages := map[string][]map[string]any{
		"agent.html":       {{"A": full[operations.AgentDetail](), "Memory": full[[]operations.MemoryFile](), "Skills": full[[]operations.Skill](), "May": true}, {"A": operations.AgentDetail{}, "Memory": []operations.MemoryFile(nil), "Skills": []operations.Skill(nil), "May": false}},
		"agents.html":      {{"List": full[[]operations.Agent](), "May": true}, {"List": []operations.Agent{}, "May": false}},
		"agentform.html":   {{"Form": full[agentForm]()}, {"Form": agentForm{New: true}}},
		"delete.html":      {{"ID": "s", "Title": "x <y>", "Status": "running", "Gone": false, "Days": 30}, {"ID": "s", "Title": "", "Gone": true, "Until": time.Time{}}},
		"erase.html":       {{"ID": "s"}, {"ID": ""}},
		"share.html":       {{"Session": full[operations.Session](), "List": full[[]operations.Share](), "Made": "http://x/shared/y", "May": true}, {"Session": operations.Session{}, "List": []operations.Share{{Open: true}}, "Made": "", "May": false}},
		"shared.html":      {{"C": full[operations.SharedConversation](), "Rows": template.HTML("<p>x</p>"), "Earlier": "3", "Problem": ""}, {"Problem": "over"}},
		"permissions.html": {{"List": full[[]operations.ProfileDetail]()}, {"List": nil}},
		"permission.html":  {{"Form": full[profileForm]()}, {"Form": profileForm{New: true, Trial: &operations.ProfileTrial{}}}},
		"approvals.html":   {{"List": full[operation.List[operations.Approval]](), "State": "all", "Answer": true, "Wrong": map[string]string{"x": "x"}}, {"List": operation.List[operations.Approval]{Items: []operations.Approval{{State: "pending", MayAnswer: true, Actions: []string{approval.QuestionAction("s")}, Fields: full[[]chat.Field]()}}}, "State": "pending", "Answer": true, "Wrong": map[string]string(nil)}, {"List": operation.List[operations.Approval]{}, "State": "pending"}},
		"audit.html": {{"List": full[operation.List[operations.AuditLine]](), "Query": full[operations.AuditQuery](), "Decisions": []string{"allow"}, "More": "?x=1", "Filtered": true, "Since": "2026-11-17", "Until": "", "Export": "/x?format=", "Check": full[operations.AuditCheck]()},
			{"List": operation.List[operations.AuditLine]{}, "Query": operations.AuditQuery{}, "Filtered": false, "Export": "/x?format=", "Check": operations.AuditCheck{}}},
		"command.html": {{"Answer": full[answered]()}, {"Answer": answered{}}},
		"conversation.html": {{"Session": full[operations.Session](), "Rows": template.HTML("<p>x</p>"), "After": 3, "Earlier": "3", "View": view{MayWrite: true}, "State": full[state]()},
			{"Session": operations.Session{}, "Rows": template.HTML(""), "View": view{Past: true}, "State": state{}}},
		"costs.html": {{"C": full[operations.Costs](), "Query": operations.CostQuery{By: "person"}, "Most": 2.5, "CachedShare": 40, "Month": 2.0, "Forecast": 3.5, "Free": true, "Chart": template.HTML("<svg></svg>"), "SmallChart": template.HTML("<svg></svg>"), "Bys": []string{"person"}, "Sinces": []string{"7d"}},
			{"C": operations.Costs{}, "Query": operations.CostQuery{}, "Most": 0.0, "CachedShare": 0, "Month": 0.0, "Forecast": 0.0, "Free": false, "Chart": template.HTML("")}},
		"doctor.html": {{"Checks": full[[]operations.Check]()}, {}},
		"file.html":   {{"E": full[operations.Entry](), "Agent": "a", "Up": "b/c", "Lang": "go"}, {"E": operations.Entry{}, "Agent": "a", "Up": "", "Lang": ""}},
		"journal.html": {{"Session": full[operations.Session](), "Audit": full[[]operations.AuditLine](), "Events": full[operation.List[operations.RawEvent]](), "Query": full[operations.EventQuery](), "Kinds": []eventKind{{"said", "Answer of the model"}}, "More": "?after=3", "Export": "/x?format=", "ExportAudit": "/y?format=", "Requests": map[int64]*operations.Request{3: new(full[operations.Request]())}},
			{"Session": operations.Session{}, "Events": operation.List[operations.RawEvent]{}, "Query": operations.EventQuery{}, "Export": "/x?format=", "ExportAudit": "/y?format="}},
		"hook.html": {{"H": full[operations.Hook](), "Runs": full[[]operations.HookRun](), "May": true, "Secret": "s", "Test": full[operations.HookTest](), "TestSteps": full[[]hookResult]()},
			{"H": operations.Hook{}, "Runs": nil, "May": false}},
		"hookform.html": {{"Form": full[hookForm](), "May": true}, {"Form": hookForm{}, "May": false}},
		"hookrun.html":  {{"R": full[operations.HookRun](), "Steps": full[[]hookResult](), "Actions": full[[]hookResult]()}, {"R": operations.HookRun{}, "Steps": []hookResult(nil), "Actions": []hookResult(nil)}},
		"hooks.html":    {{"List": full[[]operations.Hook](), "May": true}, {"List": nil, "May": false}},
		"new.html":      {{"Agents": full[[]operations.Agent](), "Models": full[[]operations.Model](), "Profiles": full[[]operations.Profile](), "Asked": full[wishes](), "Problem": "x <y>"}, {"Asked": wishes{}, "Problem": ""}},
		"overview.html": {{"O": full[operations.Overview](), "May": true}, {"O": operations.Overview{}, "May": true}},
		"problem.html":  {{"Text": "x"}, {}},
		"process.html": {{"P": full[operations.Process](), "Output": full[operations.ProcessOutput](), "Runs": true, "May": true, "Form": full[hooksForm]()},
			{"P": operations.Process{}, "Output": operations.ProcessOutput{}, "Runs": false, "May": false, "Form": hooksForm{}}},
		"processes.html": {{"List": full[operation.List[operations.Process]]()}, {"List": operation.List[operations.Process]{}}},
		"memory.html": {{"File": new(full[operations.MemoryText]()), "History": full[operation.List[operations.MemoryVersion]](), "May": true, "Draft": full[memoryDraft]()},
			{"List": full[operation.List[operations.MemoryFile]](), "File": (*operations.MemoryText)(nil), "May": false}},
		"request.html": {{"Q": full[operations.Request](), "Session": "s"}, {"Q": operations.Request{}, "Session": "s"}},
		"run.html": {{"Session": full[operations.Session](), "T": full[operations.Timeline](), "Why": "asked  ada", "Sums": full[[]charts.SpanSum](), "Cut": true, "Timeline": template.HTML("<svg></svg>"), "SmallTimeline": template.HTML("<svg></svg>")},
			{"Session": operations.Session{}, "T": operations.Timeline{}, "Cut": false}},
		"schedule.html":    {{"S": full[operations.Schedule](), "May": true}, {"S": operations.Schedule{}, "May": false}},
		"servers.html":     {{"List": []serverRow{{full[operations.MCPServer](), true}, {operations.MCPServer{State: "logged in"}, true}}}, {"List": nil}},
		"serverlogin.html": {{"Login": full[operations.MCPLogin]()}, {"Login": operations.MCPLogin{URL: "https://far.example/authorize?state=x"}}},
		"loggedin.html":    {{"Problem": "x <y>"}, {"Server": "far <x>"}},
		"skill.html":       {{"S": full[operations.SkillDetail](), "Agent": "a", "Diff": full[operations.SkillDiff](), "May": true}, {"S": operations.SkillDetail{}, "Diff": operations.SkillDiff{}, "May": false}},
		"skills.html":      {{"Waiting": []operations.Skill{full[operations.Skill]()}, "List": []operations.Skill{full[operations.Skill]()}}, {"Waiting": nil, "List": nil}},
		"schedules.html":   {{"List": full[operation.List[operations.Schedule]](), "Form": full[scheduleForm](), "May": true}, {"List": operation.List[operations.Schedule]{}, "Form": scheduleForm{}, "May": true}},
		"search.html":      {{"Text": "x", "Agent": "a", "Hits": full[[]operations.Hit](), "Count": "2 places", "More": "?x"}, {"Text": "", "Agent": "", "Listing": "deleted", "Sessions": sessions}},
		"settings.html": {{"News": settingsNews{Made: new(full[operations.Token]()), Key: "value <x>", Value: "y", Problem: "no <x>"}, "Changed": true, "Admin": true, "Rules": full[[]operations.KeptRule](), "Tokens": full[[]operations.Token](), "Scopes": operation.Scopes(), "Models": full[[]operations.Model](), "Groups": full[[]settingGroup]()},
			{"News": settingsNews{}, "Groups": []settingGroup(nil), "Changed": false, "Admin": false}},
		"task.html": {{"T": full[operations.Task](), "Result": full[operations.TaskResult](), "Changes": taskChanges{Split: true, Cut: true, Files: full[[]diffview.File]()}, "Log": new(full[taskLog]()), "Plan": new(full[operations.TaskPlan]()), "Events": full[[]operations.WorkEvent](), "May": true, "Types": []string{"docs"}, "Can": map[string]bool{"stop": true, "restart": true, "approve": true, "skip": true, "reopen": true}},
			{"T": operations.Task{}, "Result": operations.TaskResult{}, "Changes": taskChanges{Files: []diffview.File{{Hunks: []diffview.Hunk{{Lines: []diffview.Line{{Kind: "add"}, {Kind: "del"}}}}}}}, "Log": (*taskLog)(nil), "Plan": (*operations.TaskPlan)(nil), "May": false, "Can": map[string]bool{}}},
		"work.html":     {{"Board": full[boardView]()}, {"Board": boardView{May: true}}},
		"projects.html": {{"List": full[[]operations.Project]()}, {"List": nil}},
		"project.html": {{"P": full[operations.Project](), "May": true, "Counts": full[[]stateCount](), "Days": full[[]operations.TokenUsageLine](), "TokenChart": template.HTML("<svg></svg>"), "DollarChart": template.HTML("<svg></svg>"),
			"TaskCosts": full[[]taskCost](), "MostTokens": int64(3), "Tokens": int64(3), "Dollars": 1.5, "Notes": full[[]operations.Note](), "Note": new(full[operations.Note]()), "Hooks": full[[]operations.Hook]()},
			{"P": operations.Project{Status: "PAUSED"}, "May": true, "Tokens": int64(0), "Dollars": 0.0, "Note": (*operations.Note)(nil), "TokenChart": template.HTML(""), "DollarChart": template.HTML("")}},
		"graph.html":   {{"G": full[operations.TaskGraph](), "Needs": map[string][]string{"value <x>": {"y"}}, "Graph": template.HTML("<svg></svg>"), "SmallGraph": template.HTML("<svg></svg>"), "Down": true, "Query": full[operations.TaskGraphQuery](), "All": "?limit=9"}, {"G": operations.TaskGraph{}, "Graph": template.HTML(""), "Down": false, "Query": operations.TaskGraphQuery{}, "All": ""}},
		"workers.html": {{"Status": full[operations.WorkStatus](), "List": full[[]operations.Worker](), "Admin": true}, {"Status": operations.WorkStatus{}, "List": nil, "Admin": true}},
		"always.html":  {{"List": full[operations.RuleProposal](), "Back": "/approvals"}, {"List": operations.RuleProposal{Rules: full[[]operations.RuleStep]()}, "Back": ""}},
		"signin.html":  {{"Problem": "x", "Next": "/"}, {"Problem": "", "Next": ""}},
	}
	for name := range p.templates {
		if len(pages[name]) < 2 {
			t.Errorf("%s is not tried with everything and with nothing", name)
		}
		for _, data := range pages[name] {
			data["Layout"], data["Names"] = layout{Title: name, Groups: groups, Pending: 1, Plain: name == "signin.html" || name == "loggedin.html" || name == "shared.html"}, map[string]string{"value <x>": "Ada"}
			var out strings.Builder
			if err := p.execute(&out, name, "layout.html", data); err != nil || strings.Contains(out.String(), "ZgotmplZ") {
				t.Errorf("%s: %v\n%s", name, err, out.String())
			}
		}
	}
}

func TestEveryFragmentRenders(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	for _, items := range [][2]feed.Item{
		{full[feed.UserMessage](), feed.UserMessage{}}, {full[feed.Steered](), feed.Steered{}}, {full[feed.AssistantMessage](), feed.AssistantMessage{Text: "x"}}, {full[feed.ToolCall](), feed.ToolCall{}},
		{full[feed.ToolResult](), feed.ToolResult{}}, {full[feed.ApprovalRequired](), feed.ApprovalRequired{}}, {feed.ApprovalRequired{Actions: []string{approval.QuestionAction("s")}, Fields: full[[]chat.Field]()}, feed.ApprovalRequired{Actions: []string{approval.QuestionAction("s")}}}, {full[feed.ApprovalResolved](), feed.ApprovalResolved{}}, {full[feed.Refused](), feed.Refused{}},
		{full[feed.Compacted](), feed.Compacted{}}, {full[feed.Cleared](), feed.Cleared{}}, {full[feed.Completed](), feed.Completed{}}, {full[feed.Error](), feed.Error{}},
	} {
		for _, item := range items {
			for _, tk := range []view{{Session: "s", Agent: "a", MayWrite: true, MayAnswer: true, MayFork: true}, {Past: true}} {
				rows := tk.rowsOf(item)
				if len(rows) == 0 {
					t.Errorf("%T is not shown", item)
				}
				for _, r := range rows {
					if r.Template == "nothing" {
						continue
					}
					if _, err := p.fragment(r.Template, r.Data); err != nil {
						t.Errorf("%T: %v", item, err)
					}
				}
			}
		}
	}
}
