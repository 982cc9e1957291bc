package api

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/rest"
)

// kernelOptions returns what the kernel needs from this package.
func (a *API) kernelOptions(o Options) rest.Options {
	return rest.Options{
		Title: "Chorus", Version: "1",
		Doc: "AI agents over HTTP. JSON fields are in camelCase. Errors are RFC 9457 problems. Lists continue with the cursor in next. " +
			"Every POST that creates something honours Idempotency-Key for a day.",
		Allow: allow, Explain: explain, Who: who, Memory: o.Memory, Log: o.Log,
		Common:  []int{429, 503},
		Name:    typeName,
		Schemas: schemas(), OneOf: unions(), Docs: docs(),
		Beside: openAIRoutes(), Types: openAISchemas(),
		Tags: withOthers(o.Operations, [][2]string{
			{"sessions", "Conversations: start one, send messages, stop it."},
			{"history", "Messages and events, past and live."},
			{"approvals", "Pending approvals."},
			{"agents", "The agents that answer."},
			{"records", "Costs and decisions."},
			{"system", "Health, settings and models of this server."},
			{"tokens", "API tokens."},
			{"commands", "All operations, by the names of their tools."},
			{openAITag, "For OpenAI-compatible clients: each agent is a model."},
			{"server", "Health checks and this document."},
		}),
	}
}

// withOthers adds the groups of operations that are not described here.
func withOthers(set *operation.Set, tags [][2]string) [][2]string {
	for _, d := range set.All() {
		for _, h := range d.HTTP {
			if tag := tagOf(d, h); !slices.ContainsFunc(tags, func(t [2]string) bool { return t[0] == tag }) {
				tags = append(tags, [2]string{tag, ""})
			}
		}
	}
	return tags
}

// tagOf returns the group of a route: by default its noun's plural.
func tagOf(d *operation.Definition, h operation.HTTP) string {
	noun, _, _ := strings.Cut(d.Name, ".")
	return cmp.Or(h.Tag, noun+"s")
}

// typeName distinguishes types of the same name in different packages.
func typeName(t reflect.Type) string {
	switch path.Base(t.PkgPath()) {
	case "feed":
		if t == reflect.TypeFor[feed.Item]() {
			return "Event"
		}
		if t == reflect.TypeFor[feed.Usage]() {
			return "Usage"
		}
		return "Event" + t.Name()
	case "operation":
		if t == reflect.TypeFor[operation.List[feed.Item]]() {
			return "EventList"
		}
		if t == reflect.TypeFor[operation.List[string]]() {
			return "NameList"
		}
	}
	return ""
}

func schemas() map[reflect.Type]*jsonschema.Schema {
	scopes := &jsonschema.Schema{Type: "string"}
	for _, s := range operation.Scopes() {
		scopes.Enum = append(scopes.Enum, string(s))
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[feed.USD]():        {Type: "number", Description: "dollars, not rounded"},
		reflect.TypeFor[operation.Scope](): scopes,
		reflect.TypeFor[operation.JSON]():  {},
		reflect.TypeFor[commandAnswer]():   {Type: "object", Description: "the same answer as the operation's own route"},
	}
}

// unions lists the objects of the stream.
func unions() map[reflect.Type][]rest.Variant {
	return map[reflect.Type][]rest.Variant{reflect.TypeFor[feed.Item](): {
		variant[feed.SessionStarted](feed.TypeSessionStarted), variant[feed.RunStarted](feed.TypeRunStarted),
		variant[feed.UserMessage](feed.TypeUserMessage), variant[feed.AssistantMessage](feed.TypeAssistantMessage),
		variant[feed.Refused](feed.TypeRefused), variant[feed.Cleared](feed.TypeCleared),
		variant[feed.TextDelta](feed.TypeTextDelta), variant[feed.ThinkingDelta](feed.TypeThinkingDelta),
		variant[feed.ToolCall](feed.TypeToolCall), variant[feed.ToolProgress](feed.TypeToolProgress), variant[feed.ToolResult](feed.TypeToolResult),
		variant[feed.ApprovalRequired](feed.TypeApprovalRequired), variant[feed.ApprovalResolved](feed.TypeApprovalResolved),
		variant[feed.Steered](feed.TypeSteered), variant[feed.Compacted](feed.TypeCompacted),
		variant[feed.Completed](feed.TypeCompleted), variant[feed.Error](feed.TypeError), variant[feed.Trace](feed.TypeTrace),
	}}
}

func variant[T feed.Item](name feed.Type) rest.Variant {
	return rest.Variant{Value: string(name), Type: reflect.TypeFor[T]()}
}

func docs() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[operations.Session]():    "The current state of a conversation.",
		reflect.TypeFor[operations.RunSummary](): "The result of one run.",
		reflect.TypeFor[operations.Said]():       "What happened to a message: its number, and how many are answered before it.",
		reflect.TypeFor[operations.Approval]():   "A pending approval, with everything a person needs to decide.",
		reflect.TypeFor[operations.Request]():    "One request to a model: what was sent, how much of it was cached, and what it cost.",
		reflect.TypeFor[operations.RawEvent]():   "An event as it is in the journal.",
		reflect.TypeFor[operations.Replayed]():   "One request, rebuilt from the journal alone.",
		reflect.TypeFor[operations.ReplayLine](): "One line of a replay: a request or the end.",
		reflect.TypeFor[operations.ReplayEnd]():  "How a replay ended.",
		reflect.TypeFor[operations.Hit]():        "One match in a conversation.",
		reflect.TypeFor[operations.Overview]():   "What is running, waiting and failed.",
		reflect.TypeFor[operations.Costs]():      "Total costs.",
		reflect.TypeFor[operations.AuditLine]():  "One entry of the audit log.",
		reflect.TypeFor[operations.Token]():      "An API token. Its text is shown once, when it is created.",
		reflect.TypeFor[operations.Check]():      "The result of one check: ok, warn or broken.",
		reflect.TypeFor[operations.Model]():      "An available model. Prices are in dollars per million tokens.",
		reflect.TypeFor[operations.Entry]():      "A file, or a folder with its entries.",
		reflect.TypeFor[chat.Participant]():      "Somebody who speaks in a conversation: a person, an agent or the system.",
		reflect.TypeFor[feed.Item]():             "An object of the stream; type says which kind.",
		reflect.TypeFor[feed.AssistantMessage](): "A complete answer of the model. It replaces the deltas of its run, step and attempt.",
		reflect.TypeFor[feed.TextDelta]():        "A part of an answer that is being written. Offset 0 starts the answer over.",
		reflect.TypeFor[feed.Completed]():        "The end of a run: done, aborted, limit or denied.",
		reflect.TypeFor[feed.Error]():            "The end of a run that could not continue: failed or budget.",
		reflect.TypeFor[feed.Trace]():            "Everything else, for debugging.",
		reflect.TypeFor[rest.Problem]():          "Why a request failed (RFC 9457).",
	}
}
