package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// The addresses of resources.
const (
	threadsURI   = "chorus://threads"
	approvalsURI = "chorus://approvals"
	schedulesURI = "chorus://schedules"
	agentsURI    = "chorus://agents"
	projectsURI  = "chorus://projects"
	tasksURI     = "chorus://tasks"
	// earlier is the parameter of a thread's address for the messages before a number.
	earlier = "before"
)

const (
	// maxResource limits a resource, in bytes: a longer thread is cut to its newest part.
	maxResource = 256 << 10
	// pageOfThreads is how many threads one page of resources/list names.
	pageOfThreads = 100
	// pageOfMessages is how many objects of a thread are read at most.
	pageOfMessages = 200
	jsonMedia      = "application/json"
)

// single is a kind of resource that one operation reads by its id.
type single struct {
	uri, name, help string
	get             *operation.Definition
	noun            string // of names to complete the id
}

func singles() []single {
	return []single{
		{approvalsURI, "approval", "An approval with all details.", operations.GetApproval.Definition, "approval"},
		{schedulesURI, "schedule", "A schedule with its next dates and last runs.", operations.GetSchedule.Definition, "schedule"},
		{agentsURI, "agent", "An agent with everything that shapes its answers.", operations.GetAgent.Definition, "agent"},
		{projectsURI, "project", "A project with its repositories and how many tasks it has.", operations.GetProject.Definition, "project"},
		{tasksURI, "task", "A task with its state, what it needs and its subtasks. Clients can subscribe to it.", operations.GetTask.Definition, "task"},
	}
}

// lists are the resources that everybody has: the outputs of list operations.
func lists() []sdk.Resource {
	return []sdk.Resource{
		{URI: threadsURI, Name: "threads", Description: "The most recently active threads.", MIMEType: jsonMedia},
		{URI: approvalsURI, Name: "approvals", Description: "Pending approvals.", MIMEType: jsonMedia},
		{URI: schedulesURI, Name: "schedules", Description: "Schedules, the newest first.", MIMEType: jsonMedia},
		{URI: agentsURI, Name: "agents", Description: "Agents.", MIMEType: jsonMedia},
		{URI: projectsURI, Name: "projects", Description: "Projects.", MIMEType: jsonMedia},
		{URI: tasksURI, Name: "tasks", Description: "Open tasks, most urgent first.", MIMEType: jsonMedia},
	}
}

// listReads are the operations that read the lists.
func listReads() map[string]*operation.Definition {
	return map[string]*operation.Definition{threadsURI: operations.ListSessions.Definition, approvalsURI: operations.ListApprovals.Definition,
		schedulesURI: operations.ListSchedules.Definition, agentsURI: operations.ListAgents.Definition, projectsURI: operations.ListProjects.Definition, tasksURI: operations.ListTasks.Definition}
}

func (s *Server) addResources(to *sdk.Server) {
	reads := listReads()
	for _, r := range lists() {
		d := reads[r.URI]
		to.AddResource(&r, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return s.read(ctx, req, d, reflect.Zero(d.In).Interface())
		})
	}
	to.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: threadsURI + "/{id}", Name: "thread", MIMEType: jsonMedia,
		Description: "A thread with its newest messages and tool calls."}, s.readThread)
	to.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: threadsURI + "/{id}{?" + earlier + "}", Name: "earlier part of a thread", MIMEType: jsonMedia,
		Description: "The messages and tool calls of a thread before a number, which the newer part names."}, s.readThread)
	for _, one := range singles() {
		to.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: one.uri + "/{id}", Name: one.name, Description: one.help, MIMEType: jsonMedia},
			func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				id, _, ok := parts(req.Params.URI, one.uri)
				if !ok {
					return nil, sdk.ResourceNotFoundError(req.Params.URI)
				}
				in := reflect.New(one.get.In).Elem()
				in.Field(0).SetString(id)
				return s.read(ctx, req, one.get, in.Interface())
			})
	}
	to.AddReceivingMiddleware(s.listThreads)
}

// parts splits a resource's address: the part after the kind's own address, and its parameters.
func parts(uri, kind string) (id string, query url.Values, ok bool) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", nil, false
	}
	query = u.Query()
	u.RawQuery = ""
	id, ok = strings.CutPrefix(u.String(), kind+"/")
	if id, err = url.PathUnescape(id); err != nil || id == "" {
		return "", nil, false
	}
	return id, query, ok
}

// read returns an operation's output as a resource.
func (s *Server) read(ctx context.Context, req *sdk.ReadResourceRequest, d *operation.Definition, in any) (*sdk.ReadResourceResult, error) {
	var out any
	var err error
	if uri := req.Params.URI; uri == agentsURI || uri == projectsURI { // readers of resources cannot ask for the next page
		out, err = d.Whole(ctx, s.o.Executor, callerOf(ctx, req), in)
	} else {
		out, err = s.o.Executor.Execute(ctx, callerOf(ctx, req), d, in)
	}
	if err != nil {
		return nil, s.unreadable(req, err)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if len(data) > maxResource {
		return nil, operation.Errorf(operation.TooLarge, "%s is larger than 256 kB; use the tools to read less", req.Params.URI)
	}
	return contents(req, data), nil
}

func contents(req *sdk.ReadResourceRequest, data []byte) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: jsonMedia, Text: string(data)}}}
}

// unreadable converts the error of reading a resource.
func (s *Server) unreadable(req *sdk.ReadResourceRequest, err error) error {
	switch operation.KindOf(err) {
	case operation.NotFound, operation.Invalid:
		return sdk.ResourceNotFoundError(req.Params.URI)
	case operation.Failed:
		s.o.Log.Warn("a resource could not be read", "component", "mcp", "event", "resource_failed", "uri", req.Params.URI, "error", err.Error())
		return operation.Errorf(operation.Failed, "internal error; the log of Chorus has the details")
	default:
		return err
	}
}

// thread is a conversation as a resource.
type thread struct {
	Session  operations.Session `json:"session"`
	Messages []json.RawMessage  `json:"messages"`
	Earlier  string             `json:"earlier,omitempty"` // the address of earlier messages
}

func (s *Server) readThread(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id, query, ok := parts(req.Params.URI, threadsURI)
	before, err := strconv.ParseInt(query.Get(earlier), 10, 64)
	if !ok || query.Has(earlier) && (err != nil || before < 1) {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	by := callerOf(ctx, req)
	session, err := operations.GetSession.Call(ctx, s.o.Executor, by, operations.SessionRef{ID: id})
	if err != nil {
		return nil, s.unreadable(req, err)
	}
	before = cmp.Or(before, session.Seq+1)
	page, err := operations.Messages.Call(ctx, s.o.Executor, by, operations.EventRange{ID: id, Before: before, Limit: pageOfMessages})
	if err != nil {
		return nil, s.unreadable(req, err)
	}
	session.Runs = nil
	out := thread{Session: session}
	var first int64
	if out.Messages, first, err = newest(page.Items); err != nil {
		return nil, err
	}
	if first > 1 {
		out.Earlier = threadsURI + "/" + url.PathEscape(id) + "?" + earlier + "=" + strconv.FormatInt(first, 10)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return contents(req, data), nil
}

// newest returns the last objects that fit into a resource, oldest first, and the number of the first. Objects of one
// number stay together, so that earlier ones can be requested.
func newest(items []feed.Item) (out []json.RawMessage, first int64, err error) {
	size := 0
	for end := len(items); end > 0; {
		begin, number := end-1, items[end-1].Header().Seq
		for begin > 0 && items[begin-1].Header().Seq == number {
			begin--
		}
		group := make([]json.RawMessage, 0, end-begin)
		for _, item := range items[begin:end] {
			data, err := json.Marshal(item)
			if err != nil {
				return nil, 0, err
			}
			size += len(data) + 1
			group = append(group, data)
		}
		if size > maxResource {
			if out == nil { // too large on its own
				return []json.RawMessage{json.RawMessage(`{"type":"trace","kind":"too_large"}`)}, number, nil
			}
			return out, first, nil
		}
		out, first, end = append(group, out...), number, begin
	}
	return out, first, nil
}

// listThreads adds the caller's threads to the list of resources, page by page.
func (s *Server) listThreads(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		params, ok := req.GetParams().(*sdk.ListResourcesParams)
		if method != "resources/list" || !ok {
			return next(ctx, method, req)
		}
		cursor := ""
		if params != nil {
			cursor = params.Cursor
		}
		list, err := operations.ListSessions.Call(ctx, s.o.Executor, callerOf(ctx, req), operations.SessionQuery{Cursor: cursor, Limit: pageOfThreads})
		if err != nil {
			return nil, err
		}
		out := &sdk.ListResourcesResult{NextCursor: list.Next, Resources: []*sdk.Resource{}}
		if cursor == "" {
			for _, r := range lists() {
				out.Resources = append(out.Resources, &r)
			}
			if err := s.listWork(ctx, callerOf(ctx, req), out); err != nil {
				return nil, err
			}
		}
		for _, one := range list.Items {
			out.Resources = append(out.Resources, &sdk.Resource{URI: threadsURI + "/" + url.PathEscape(one.ID), Name: one.ID, Title: one.Title,
				Description: "A thread of the agent " + one.Agent + ", " + one.Status + ".", MIMEType: jsonMedia})
		}
		return out, nil
	}
}

// listWork adds projects and open tasks to the first page of resources.
func (s *Server) listWork(ctx context.Context, by operation.Caller, out *sdk.ListResourcesResult) error {
	projects, err := operation.CallWhole(ctx, operations.ListProjects, s.o.Executor, by, operations.ProjectList{})
	if err != nil {
		return err
	}
	for _, p := range projects {
		out.Resources = append(out.Resources, &sdk.Resource{URI: projectsURI + "/" + url.PathEscape(p.ID), Name: p.ID, Title: p.Name, Description: "A project.", MIMEType: jsonMedia})
	}
	list, err := operations.ListTasks.Call(ctx, s.o.Executor, by, operations.TaskQuery{Limit: pageOfThreads})
	if err != nil {
		return err
	}
	for _, t := range list.Items {
		out.Resources = append(out.Resources, &sdk.Resource{URI: tasksURI + "/" + url.PathEscape(t.ID), Name: t.ID, Title: t.Title, Description: "A task of the project " + t.ProjectID + ", " + t.Status + ".", MIMEType: jsonMedia})
	}
	return nil
}

// complete suggests the ids of resources.
func (s *Server) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	out := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	ref := req.Params.Ref
	if ref == nil || ref.Type != "ref/resource" || req.Params.Argument.Name != "id" {
		return out, nil
	}
	noun := ""
	if strings.HasPrefix(ref.URI, threadsURI+"/") {
		noun = "session"
	}
	for _, one := range singles() {
		if strings.HasPrefix(ref.URI, one.uri+"/") {
			noun = one.noun
		}
	}
	if noun == "" {
		return out, nil
	}
	names, err := operation.Names.Call(ctx, s.o.Executor, callerOf(ctx, req), operation.Prefix{Noun: noun, Prefix: req.Params.Argument.Value})
	if err == nil {
		out.Completion.Values = append(out.Completion.Values, names.Items...)
	}
	return out, err
}
