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

// kernelOptions say what the kernel cannot know.
func (a *API) kernelOptions(o Options) rest.Options {
	return rest.Options{
		Title: "Chorus", Version: "1",
		Doc: "Agents that work for people, over HTTP. JSON in camelCase; errors as RFC 9457 problems; lists go on at next; " +
			"every POST that makes something honours Idempotency-Key for a day.",
		Allow: allow, Explain: explain, Who: who, Memory: o.Memory, Log: o.Log,
		Common:  []int{429, 503},
		Name:    typeName,
		Schemas: schemas(), OneOf: unions(), Docs: docs(),
		Beside: openAIRoutes(), Types: openAISchemas(),
		Tags: withOthers(o.Operations, [][2]string{
			{"sessions", "Conversations: begin one, say something, stop it."},
			{"history", "What was said, and what is being said."},
			{"approvals", "Pending approvals."},
			{"agents", "Who answers."},
			{"records", "Costs and decisions."},
			{"system", "What holds for everybody."},
			{"tokens", "The keys of the API."},
			{"commands", "Every operation by the name of its tool."},
			{openAITag, "For clients that speak OpenAI's protocol: an agent is a model."},
			{"server", "Beside the API."},
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

// tagOf is the group of a route: by default its noun's plural.
func tagOf(d *operation.Definition, h operation.HTTP) string {
	noun, _, _ := strings.Cut(d.Name, ".")
	return cmp.Or(h.Tag, noun+"s")
}

// typeName tells types apart that have the same name in different packages.
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
		reflect.TypeFor[commandAnswer]():   {Type: "object", Description: "what the operation's own route answers"},
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
		reflect.TypeFor[operations.Session]():    "A conversation as it stands.",
		reflect.TypeFor[operations.RunSummary](): "What one run came to.",
		reflect.TypeFor[operations.Said]():       "What became of words: their number, and how many are answered first.",
		reflect.TypeFor[operations.Approval]():   "Something that waits for a yes, with everything a person needs to answer it.",
		reflect.TypeFor[operations.Request]():    "One call of a model: what was sent, what of it was cached, what it cost.",
		reflect.TypeFor[operations.RawEvent]():   "An event as the journal has it.",
		reflect.TypeFor[operations.Replayed]():   "One request, rebuilt from the journal alone.",
		reflect.TypeFor[operations.ReplayLine](): "One line of a replay: a request, or the end.",
		reflect.TypeFor[operations.ReplayEnd]():  "How a replay ended.",
		reflect.TypeFor[operations.Hit]():        "One place where something was said.",
		reflect.TypeFor[operations.Overview]():   "What is going on.",
		reflect.TypeFor[operations.Costs]():      "Sums of spending.",
		reflect.TypeFor[operations.AuditLine]():  "One decision.",
		reflect.TypeFor[operations.Token]():      "A key of the API. Its text is there once, when it is made.",
		reflect.TypeFor[operations.Check]():      "One thing that was looked at: ok, warn or broken.",
		reflect.TypeFor[operations.Model]():      "A model that could answer; prices are dollars for a million tokens.",
		reflect.TypeFor[operations.Entry]():      "A file, or a folder with what is in it.",
		reflect.TypeFor[chat.Participant]():      "Anybody who speaks.",
		reflect.TypeFor[feed.Item]():             "An object of the stream; type tells which.",
		reflect.TypeFor[feed.AssistantMessage](): "A whole answer of the model's. It replaces the deltas of its run, step and attempt.",
		reflect.TypeFor[feed.TextDelta]():        "A piece of an answer in the making. Offset 0 begins it anew.",
		reflect.TypeFor[feed.Completed]():        "The end of a run: done, aborted, limit or denied.",
		reflect.TypeFor[feed.Error]():            "The end of a run that could not go on: failed or budget.",
		reflect.TypeFor[feed.Trace]():            "Everything else, for the curious.",
		reflect.TypeFor[rest.Problem]():          "Why a request was not served (RFC 9457).",
	}
}
