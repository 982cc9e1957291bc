package api

import (
	"context"
	"net/http"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

// NewAgent is the body that makes an agent.
type NewAgent struct {
	Name         string `json:"name" minLen:"2" maxLen:"32" doc:"a–z, 0–9 and hyphens"`
	Model        string `json:"model,omitempty" maxLen:"200"`
	Permissions  string `json:"permissions,omitempty" maxLen:"64"`
	SystemPrompt string `json:"systemPrompt,omitempty" maxLen:"200000"`
}

// Change is the body that sets one key.
type Change struct {
	Key   string `json:"key" minLen:"1" maxLen:"200"`
	Value string `json:"value" maxLen:"200000" doc:"empty: as it was built"`
}

// Value is the body that sets the key of the path.
type Value struct {
	Value string `json:"value" maxLen:"200000" doc:"empty: as it was built"`
}

type oneAgent struct {
	Name string `path:"name" maxLen:"64" doc:"the agent's name"`
}

func (a *API) agentOps() []rest.Operation {
	const tag = "agents"
	missing := []int{404}
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/api/agents", ID: "listAgents", Tag: tag, Scope: readScope, Summary: "List agents"},
			func(ctx context.Context, _ struct{}) (command.List[command.Agent], error) {
				return a.service.ListAgents(ctx, by(ctx))
			}),
		rest.Op(rest.Route{Method: "POST", Path: "/api/agents", ID: "createAgent", Tag: tag, Scope: adminScope, Status: http.StatusCreated, Creates: true,
			Summary: "Make an agent", Errors: []int{409}}, func(ctx context.Context, in struct{ Body NewAgent }) (command.Agent, error) {
			return a.service.CreateAgent(ctx, by(ctx), command.NewAgent{Name: in.Body.Name, Model: in.Body.Model,
				Permissions: in.Body.Permissions, SystemPrompt: in.Body.SystemPrompt, Key: rest.Key(ctx)})
		}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/agents/{name}", ID: "getAgent", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Show an agent with all that shapes its answers"}, func(ctx context.Context, in oneAgent) (command.AgentDetail, error) {
			return a.service.GetAgent(ctx, by(ctx), in.Name)
		}),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/agents/{name}", ID: "configureAgent", Tag: tag, Scope: adminScope, Errors: []int{404, 409},
			Summary: "Change one setting of an agent"}, func(ctx context.Context, in struct {
			Name string `path:"name" maxLen:"64" doc:"the agent's name"`
			Body Change
		}) (command.Agent, error) {
			return a.service.ConfigureAgent(ctx, by(ctx), in.Name, in.Body.Key, in.Body.Value)
		}),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/agents/{name}", ID: "destroyAgent", Tag: tag, Scope: adminScope, Errors: []int{404, 409},
			Summary: "Remove an agent"}, func(ctx context.Context, in struct {
			Name      string `path:"name" maxLen:"64" doc:"the agent's name"`
			KeepFiles bool   `query:"keepFiles" doc:"leave its folder where it is"`
		}) (rest.None, error) {
			return rest.None{}, a.service.DestroyAgent(ctx, by(ctx), in.Name, in.KeepFiles)
		}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/agents/{name}/files", ID: "agentFile", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Read a file or list a folder of an agent's workspace"}, func(ctx context.Context, in struct {
			Name string `path:"name" maxLen:"64" doc:"the agent's name"`
			Path string `query:"path" maxLen:"4096" doc:"within the workspace; left out: the workspace itself"`
		}) (command.Entry, error) {
			return a.service.AgentFile(ctx, by(ctx), in.Name, in.Path)
		}),
	}
}
