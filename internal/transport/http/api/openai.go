package api

import (
	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/operation"
	"chorus/internal/transport/http/rest"
)

// openAITag groups the routes below /v1/, which the package compat serves.
const openAITag = "openai-compatible"

// openAIRoutes describes the routes for clients of OpenAI's protocol. They are served outside the kernel, with errors in
// that protocol's format.
func openAIRoutes() map[string]map[string]*rest.Described {
	completion := describeOpenAI("createChatCompletion", "Ask an agent, in OpenAI's protocol",
		"Runs the agent once. The status says whether to retry; X-Should-Retry: false means never. "+
			"With stream: true, the answer is a stream of server-sent events that ends with [DONE].")
	most := 200
	completion.Parameters = []rest.Parameter{
		{Name: "Idempotency-Key", In: "header", Description: "a retry with the same key continues the same run and returns the same answer; the run outlives the connection",
			Schema: &jsonschema.Schema{Type: "string", MaxLength: &most}},
		{Name: "X-Chorus-Session", In: "header", Description: "the session to continue; only the last message is then used", Schema: &jsonschema.Schema{Type: "string"}},
	}
	completion.RequestBody = &rest.RequestBody{Required: true, Content: map[string]rest.Media{"application/json": {Schema: openAIRef("CompletionRequest")}}}
	completion.Responses["200"] = &rest.Answer{Description: "OK", Content: map[string]rest.Media{
		"application/json": {Schema: openAIRef("Completion")}, "text/event-stream": {Schema: &jsonschema.Schema{Type: "string"}},
	}, Headers: map[string]rest.Header{
		"X-Chorus-Session":     {Description: "the session of the run", Schema: &jsonschema.Schema{Type: "string"}},
		"Idempotency-Replayed": {Description: "true: this is the answer of an earlier request with the same key", Schema: &jsonschema.Schema{Type: "string"}},
	}}
	for status, why := range map[string]string{
		"400": "the request is not valid, is too long for the model, or was refused by it", "404": "there is no such agent or session", "413": "the request is too long",
		"422": "the Idempotency-Key was used for another request", "500": "the run failed", "502": "the provider could not be reached or refused the key",
		"504": "the run timed out while waiting",
	} {
		completion.Responses[status] = openAIProblem(why)
	}
	list := describeOpenAI("listModels", "List the agents as models", "")
	list.Responses["200"] = &rest.Answer{Description: "OK", Content: map[string]rest.Media{"application/json": {Schema: openAIRef("ModelList")}}}
	one := describeOpenAI("getModel", "Show an agent as a model", "")
	one.Parameters = []rest.Parameter{{Name: "model", In: "path", Description: "agent/NAME", Required: true, Schema: &jsonschema.Schema{Type: "string"}}}
	one.Responses["200"] = &rest.Answer{Description: "OK", Content: map[string]rest.Media{"application/json": {Schema: openAIRef("Model")}}}
	one.Responses["404"] = openAIProblem("there is no such agent")
	return map[string]map[string]*rest.Described{
		"/v1/models": {"get": list}, "/v1/models/{model}": {"get": one}, "/v1/chat/completions": {"post": completion},
	}
}

func describeOpenAI(id, summary, doc string) *rest.Described {
	return &rest.Described{OperationID: id, Summary: summary, Description: doc, Tags: []string{openAITag}, Scope: string(operation.Chat), Responses: map[string]*rest.Answer{
		"401": openAIProblem("the token is missing or not valid"), "403": openAIProblem("the token lacks the scope"),
		"429": openAIProblem("too much is waiting already, the provider's rate limit is reached, or a budget is used up"), "503": openAIProblem("not possible now"),
	}}
}

func openAIProblem(why string) *rest.Answer {
	return &rest.Answer{Description: why, Content: map[string]rest.Media{"application/json": {Schema: openAIRef("Error")}}}
}

func openAIRef(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/components/schemas/OpenAI" + name}
}

// openAISchemas are the types of openAIRoutes, limited to what matters here: OpenAI's own document has the rest.
func openAISchemas() map[string]*jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	number := &jsonschema.Schema{Type: "integer"}
	object := func(doc string, required []string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Description: doc, Required: required, Properties: properties}
	}
	list := func(of *jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{Type: "array", Items: of} }
	maybe := &jsonschema.Schema{Types: []string{"string", "null"}}
	return map[string]*jsonschema.Schema{
		"OpenAICompletionRequest": object("A request to an agent. Parameters that only tune a model have no effect; tools, stop, n above 1 and formats are refused.",
			[]string{"model", "messages"}, map[string]*jsonschema.Schema{
				"model":    {Type: "string", Description: "agent/NAME"},
				"messages": list(openAIRef("Message")), "stream": {Type: "boolean"},
				"stream_options": object("", nil, map[string]*jsonschema.Schema{"include_usage": {Type: "boolean"}}),
				"metadata":       object("", nil, map[string]*jsonschema.Schema{"chorus_session": {Type: "string", Description: "like the header X-Chorus-Session"}}),
			}),
		"OpenAIMessage": object("One message; the last one must be the user's.", []string{"role", "content"}, map[string]*jsonschema.Schema{
			"role":    {Type: "string", Enum: []any{"system", "developer", "user", "assistant"}},
			"name":    text,
			"content": {Types: []string{"string", "array", "null"}, Description: "text, or parts of the types text and image_url (with a data: URL)"},
		}),
		"OpenAICompletion": object("The answer of an agent.", []string{"id", "object", "created", "model", "choices"}, map[string]*jsonschema.Schema{
			"id": text, "object": text, "created": number, "model": text,
			"choices": list(object("", nil, map[string]*jsonschema.Schema{"index": number, "message": openAIRef("Message"), "finish_reason": text})),
			"usage":   object("", nil, map[string]*jsonschema.Schema{"prompt_tokens": number, "completion_tokens": number, "total_tokens": number}),
		}),
		"OpenAIModel":     object("An agent.", []string{"id", "object", "created", "owned_by"}, map[string]*jsonschema.Schema{"id": text, "object": text, "created": number, "owned_by": text}),
		"OpenAIModelList": object("All agents.", []string{"object", "data"}, map[string]*jsonschema.Schema{"object": text, "data": list(openAIRef("Model"))}),
		"OpenAIError": object("Why a request failed.", []string{"error"}, map[string]*jsonschema.Schema{
			"error": object("", []string{"message", "type"}, map[string]*jsonschema.Schema{"message": text, "type": text, "param": maybe, "code": maybe}),
		}),
	}
}
