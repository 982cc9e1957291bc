package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// MCPServers implements operations on the MCP servers whose tools agents use.
type MCPServers interface {
	ListMCPServers(context.Context, operation.Caller, MCPServerQuery) (operation.List[MCPServer], error)
	AddMCPServer(context.Context, operation.Caller, NewMCPServer) (MCPServer, error)
	TestMCPServer(context.Context, operation.Caller, MCPServerRef) (MCPServerReport, error)
	RemoveMCPServer(context.Context, operation.Caller, MCPServerRef) (MCPServerName, error)
	LoginMCPServer(context.Context, operation.Caller, NewMCPLogin) (MCPLogin, error)
	FinishMCPLogin(context.Context, operation.Caller, MCPLoginReturn) (MCPServerName, error)
	MCPLoginState(context.Context, operation.Caller, MCPLoginRef) (MCPLogin, error)
	LogoutMCPServer(context.Context, operation.Caller, MCPServerRef) (MCPServerName, error)
}

// MCPServerQuery selects the servers to list.
type MCPServerQuery struct {
	Workspace string `json:"workspacePath,omitempty" maxLen:"4096" cli:"repo,r" doc:"include the servers of this folder's .mcp.json; left out: only the servers of every agent"`
}

// MCPServerRef names a server.
type MCPServerRef struct {
	Name      string `json:"name" minLen:"1" maxLen:"200" noun:"mcp" doc:"the server's name"`
	Workspace string `json:"workspacePath,omitempty" maxLen:"4096" cli:"repo,r" doc:"start the server in this folder, and include the servers of its .mcp.json"`
}

// MCPServerName names a server that was changed.
type MCPServerName struct {
	Name string `json:"name"`
}

// NewMCPServer describes a new server: a program on this machine, or an address.
type NewMCPServer struct {
	Name      string   `json:"name" minLen:"1" maxLen:"200" doc:"its name, also used in the names of its tools"`
	Command   string   `json:"command,omitempty" maxLen:"4096" doc:"the program to start"`
	Args      []string `json:"args,omitempty" maxItems:"200" doc:"its arguments"`
	URL       string   `json:"url,omitempty" maxLen:"4096" doc:"the address of a server on the network"`
	Type      string   `json:"type,omitempty" enum:"stdio,http,sse" doc:"the transport: stdio, http or sse (default: derived from the rest)"`
	Env       []string `json:"env,omitempty" maxItems:"200" cli:"-" doc:"NAME=VALUE for its program; \"${NAME}\" is taken from the environment"`
	Headers   []string `json:"headers,omitempty" maxItems:"50" cli:"-" doc:"NAME=VALUE to send to its address"`
	Workspace string   `json:"workspacePath,omitempty" maxLen:"4096" cli:"-" doc:"the folder whose .mcp.json may already use the name"`
}

// MCPServer is a configured server, and its last known state.
type MCPServer struct {
	Name      string    `json:"name"`
	Where     string    `json:"where"`               // its command, or its address
	From      string    `json:"from"`                // the configuration, mcp.json of the home, or .mcp.json of the folder
	State     string    `json:"state"`               // enabled, logged in, not trusted
	Status    string    `json:"status,omitempty"`    // ready, restarting or failed when last seen; "": it never ran
	Error     string    `json:"error,omitempty"`     // why it was not ready
	SeenAt    time.Time `json:"seenAt,omitzero"`     // when that was
	Tools     int       `json:"tools,omitempty"`     // number of tools
	Prompts   int       `json:"prompts,omitempty"`   // number, as of the last test
	Resources int       `json:"resources,omitempty"` // number, as of the last test
	Lock      string    `json:"lock,omitempty"`      // on, changed or off: whether the descriptions of its tools were approved; "": it was not used yet
	LockID    string    `json:"lockId,omitempty"`    // for skill.diff and skill.approve
	Added     bool      `json:"added,omitempty"`     // added with mcp.add, so it can be removed
}

// MCPServerReport is the result of testing a server.
type MCPServerReport struct {
	Name         string   `json:"name"`
	State        string   `json:"state"`
	Why          string   `json:"why,omitempty"`
	Tools        []string `json:"tools"`
	Prompts      []string `json:"prompts"`
	Resources    []string `json:"resources"`
	Instructions string   `json:"instructions,omitempty"`
}

// NewMCPLogin starts a login to a server on the network.
type NewMCPLogin struct {
	Name         string   `json:"name" minLen:"1" maxLen:"200" noun:"mcp" doc:"the server's name"`
	Workspace    string   `json:"workspacePath,omitempty" maxLen:"4096" doc:"include the servers of this folder's .mcp.json"`
	Address      string   `json:"address,omitempty" maxLen:"2000" doc:"how the browser reaches this server, such as https://chorus.example.org: it returns to /mcp-login there; left out: pass the address it returned to with mcp.login_finish"`
	Scopes       []string `json:"scopes,omitempty" maxItems:"50" doc:"what the login should allow besides what the server asks for"`
	ClientID     string   `json:"clientId,omitempty" maxLen:"2000" doc:"a client that is registered with the server; left out: Chorus registers itself"`
	ClientSecret string   `json:"clientSecret,omitempty" maxLen:"2000" doc:"its secret"`
}

// MCPLoginRef names a started login.
type MCPLoginRef struct {
	ID   string `json:"id" minLen:"1" maxLen:"64" doc:"the login's id"`
	Wait int    `json:"waitSeconds,omitempty" min:"0" max:"60" doc:"how long to wait for the end of the login; left out: do not wait"`
}

// MCPLoginReturn is the address that a browser returned to.
type MCPLoginReturn struct {
	Redirect string `json:"redirectUrl" minLen:"1" maxLen:"8000" doc:"the full address that the browser returned to"`
}

// MCPLogin is a started login.
type MCPLogin struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`            // of the server
	URL       string    `json:"url"`             // the page on which a person approves
	State     string    `json:"state"`           // waiting, done or failed
	Error     string    `json:"error,omitempty"` // why it failed
	ExpiresAt time.Time `json:"expiresAt"`       // until when it can be finished
}

// The states of an MCPLogin.
const (
	LoginWaiting = "waiting"
	LoginDone    = "done"
	LoginFailed  = "failed"
)

// The operations on MCP servers. Their tools are only for runs without limits: an agent that could add a server could
// add tools of its own choice. Logging in is for people, because somebody must approve it in a browser.
var (
	ListMCPServers = operation.New(operation.Info{Name: "mcp.list", Help: "List the MCP servers that agents have, with their last known state", Scope: operation.Admin,
		HTTP:    []operation.HTTP{{Route: "GET /api/mcp/servers", Tag: "mcp", ID: "listMCPServers"}},
		CLI:     []operation.CLI{{Words: "mcp list", Help: "List the MCP servers that agents in this folder have"}},
		Tool:    "mcpserver_list",
		Columns: "NAME=name | STATE=state | LAST=status | TOOLS=tools | LOCK=lock | WHERE=where | FROM=from",
		Empty:   "there are no MCP servers; add one: chorus mcp add NAME -- COMMAND"}, MCPServers.ListMCPServers)

	AddMCPServer = operation.New(operation.Info{Name: "mcp.add", Help: "Add an MCP server, for all agents of the home", Scope: operation.Admin, Effect: operation.Changes,
		Doc: "Adds a server to mcp.json in the home, in the format that other programs use. Servers of\n" +
			"the configuration and of a repository's .mcp.json are not changed.\n\n" +
			"A value like ${NAME} is taken from the environment when the server starts. Adding the same server again\n" +
			"changes nothing; a different server of that name is refused.",
		HTTP: []operation.HTTP{{Route: "POST /api/mcp/servers", Tag: "mcp", ID: "addMCPServer", Body: "NewMCPServer"}},
		CLI: []operation.CLI{{Words: "mcp add", Args: "NAME [COMMAND] [ARGS…]", Example: `  chorus mcp add files -- npx -y @modelcontextprotocol/server-filesystem /data
  chorus mcp add issues --url https://mcp.example.org/mcp
  chorus mcp add wiki --url https://wiki.example.org/mcp --header 'Authorization=Bearer ${WIKI_TOKEN}'`}},
		Tool: "mcpserver_add",
		Done: "{name} is added; test it: chorus mcp test {name}"}, MCPServers.AddMCPServer)

	TestMCPServer = operation.New(operation.Info{Name: "mcp.test", Help: "Start an MCP server as a run would, and show what it provides", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "A server that does not start is not an error: state and why describe the problem.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/mcp/servers/{name}/test", Tag: "mcp", ID: "testMCPServer"}},
		CLI:    []operation.CLI{{Words: "mcp test", Args: "NAME"}},
		Tool:   "mcpserver_test"}, MCPServers.TestMCPServer)

	RemoveMCPServer = operation.New(operation.Info{Name: "mcp.remove", Help: "Remove an MCP server that was added, and its login", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/mcp/servers/{name}", Tag: "mcp", ID: "removeMCPServer"}},
		CLI:    []operation.CLI{{Words: "mcp remove", Args: "NAME"}},
		Tool:   "mcpserver_remove",
		Done:   "{name} is removed"}, MCPServers.RemoveMCPServer)

	LoginMCPServer = operation.New(operation.Info{Name: "mcp.login", Help: "Start a login to an MCP server on the network", Scope: operation.Admin, Effect: operation.Changes,
		Doc: "Returns the page on which a person approves the login in a browser, within ten minutes. The browser returns to\n" +
			"this server, which stores the tokens. If the browser cannot reach it, pass the address that the browser\n" +
			"returned to with mcp.login_finish. A new login replaces one that was started before.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/mcp/servers/{name}/login", Tag: "mcp", ID: "loginMCPServer", Body: "NewMCPLogin"}}}, MCPServers.LoginMCPServer)

	FinishMCPLogin = operation.New(operation.Info{Name: "mcp.login_finish", Help: "Finish a login to an MCP server by hand", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "For a browser that cannot reach this server. The address contains a code that works once.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/mcp/logins", Tag: "mcp", ID: "finishMCPLogin", Body: "MCPLoginReturn"}}}, MCPServers.FinishMCPLogin)

	MCPLoginState = operation.New(operation.Info{Name: "mcp.login_state", Help: "Show whether a login to an MCP server is complete", Scope: operation.Admin,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/mcp/logins/{id}", Tag: "mcp", ID: "getMCPLogin"}}}, MCPServers.MCPLoginState)

	LogoutMCPServer = operation.New(operation.Info{Name: "mcp.logout", Help: "Forget the login to an MCP server", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/mcp/servers/{name}/logout", Tag: "mcp", ID: "logoutMCPServer"}},
		CLI:    []operation.CLI{{Words: "mcp logout", Args: "NAME"}},
		Done:   "logged out of {name}"}, MCPServers.LogoutMCPServer)
)

func mcpServers() []operation.Any {
	return []operation.Any{ListMCPServers, AddMCPServer, TestMCPServer, RemoveMCPServer, LoginMCPServer, FinishMCPLogin, MCPLoginState, LogoutMCPServer}
}
