package pages

import (
	"net/http"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// servers lists the MCP servers that agents have, with their last known state. It needs the scope admin and tells others so.
func (p *Pages) servers(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListMCPServers.Call(r.Context(), p.Executor, by, operations.MCPServerQuery{})
	if err != nil {
		return err
	}
	rows := make([]serverRow, 0, len(list.Items))
	for _, s := range list.Items {
		rows = append(rows, serverRow{s, strings.HasPrefix(s.Where, "http://") || strings.HasPrefix(s.Where, "https://")})
	}
	return p.render(w, http.StatusOK, "servers.html", map[string]any{"Layout": p.layout(r, by, "MCP servers"), "List": rows})
}

// serverRow is a server in the list.
type serverRow struct {
	operations.MCPServer
	Remote bool // it can be logged in to
}

// changeServer adds, tests or removes a server. The page it leads back to shows the result of a test.
func (p *Pages) changeServer(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ref := operations.MCPServerRef{Name: strings.TrimSpace(r.PostFormValue("name"))}
	done, err := "", error(nil)
	switch do := r.PostFormValue("do"); do {
	case "add":
		_, err = operations.AddMCPServer.Call(r.Context(), p.Executor, by, operations.NewMCPServer{Name: ref.Name, Command: strings.TrimSpace(r.PostFormValue("command")),
			Args: lines(r.PostFormValue("args")), URL: strings.TrimSpace(r.PostFormValue("url")), Env: lines(r.PostFormValue("env")), Headers: lines(r.PostFormValue("headers"))})
		done = ref.Name + " added. Test it to see whether it works"
	case "test":
		var report operations.MCPServerReport
		report, err = operations.TestMCPServer.Call(r.Context(), p.Executor, by, ref)
		done = report.Name + " is " + report.State
	case "remove":
		_, err = operations.RemoveMCPServer.Call(r.Context(), p.Executor, by, ref)
		done = ref.Name + " removed"
	case "login":
		return p.beginServerLogin(w, r, by, ref.Name)
	case "logout":
		_, err = operations.LogoutMCPServer.Call(r.Context(), p.Executor, by, ref)
		done = "logged out of " + ref.Name
	default:
		err = operation.Errorf(operation.Invalid, "a server can be added, tested, removed, logged in to or logged out of, not %.20q", do)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, "/servers", done)
}

// lines returns the nonempty lines of a field.
func lines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
