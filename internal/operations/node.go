package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Nodes implements operations on the processes that share a database.
type Nodes interface {
	ListNodes(context.Context, operation.Caller, operation.None) (operation.List[Node], error)
	DrainNode(context.Context, operation.Caller, NodeDrain) (NodeDrained, error)
	LabelNode(context.Context, operation.Caller, NodeLabels) (NodeLabelled, error)
}

// Node is a process that runs threads, bots or tasks, and may share its database with others.
type Node struct {
	ID      string    `json:"id,omitempty"`
	Name    string    `json:"name"`
	State   string    `json:"state"` // alive, draining, dead, lost: threads wait for it; or alone: the database is a file, so there are no others
	Kind    string    `json:"kind,omitempty"`
	Address string    `json:"address,omitempty"`
	Version string    `json:"version,omitempty"`
	Labels  []string  `json:"labels"`
	Threads int       `json:"threads"` // current threads
	Waiting int       `json:"waiting"` // threads that cannot continue without its files while it is gone
	Owns    []string  `json:"owns"`    // exclusive roles that it has: bots, hooks, schedules
	Since   time.Time `json:"since,omitzero"`
	DiedAt  time.Time `json:"diedAt,omitzero"`
}

// NodeDrain names a node to drain.
type NodeDrain struct {
	Name string `json:"name" maxLen:"63" noun:"node" doc:"the node's name"`
	Undo bool   `json:"undo,omitempty" doc:"let it take work again"`
}

// NodeDrained is a node after a change of its drain state.
type NodeDrained struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// NodeLabels changes the labels of a node.
type NodeLabels struct {
	Name   string   `json:"name" maxLen:"63" noun:"node" doc:"the node's name"`
	Add    []string `json:"add,omitempty" maxItems:"20" doc:"labels to add"`
	Remove []string `json:"remove,omitempty" maxItems:"20" doc:"labels to remove; its name always stays"`
}

// NodeLabelled is a node with its new labels.
type NodeLabelled struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
}

// The operations on nodes.
var (
	ListNodes = operation.New(operation.Info{Name: "node.list", Help: "List the nodes: the processes that share this database, and what each has", Scope: operation.Read,
		Doc:  "Nodes share a PostgreSQL database. A dead node is listed for an hour; others take over its work after about three seconds. A node whose files threads wait for is listed as lost for as long as they wait. With a database in a file there is one node.",
		HTTP: []operation.HTTP{{Route: "GET /api/nodes", ID: "listNodes"}},
		CLI:  []operation.CLI{{Words: "node list"}}, Tool: "list_nodes",
		Columns: "NAME=name | STATE=state | KIND=kind | THREADS=threads | WAITING=waiting | OWNS=owns | LABELS=labels | SINCE=since:minute | VERSION=version | ADDRESS=address",
		Empty:   "no node is alive; start chorus serve"}, Nodes.ListNodes)

	DrainNode = operation.New(operation.Info{Name: "node.drain", Help: "Have a node hand over its work and take nothing new", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "Threads are released at their next step and continue elsewhere; another node connects the bots. The process keeps running and answers requests. Stop it when node list shows that it has nothing.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/nodes/{name}/drain", ID: "drainNode"}},
		CLI:    []operation.CLI{{Words: "node drain", Args: "NAME", Example: "  chorus node drain berlin\n  chorus node drain berlin --undo"}},
		Done:   "node {name} is {state}"}, Nodes.DrainNode)

	LabelNode = operation.New(operation.Info{Name: "node.label", Help: "Add or remove labels of a node", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "A thread or task whose files are on certain machines has a label, and only nodes with that label run it. A node's name is always one of its labels. Labels survive restarts.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict, operation.Invalid},
		HTTP:   []operation.HTTP{{Route: "POST /api/nodes/{name}/labels", ID: "labelNode"}},
		CLI:    []operation.CLI{{Words: "node label", Args: "NAME", Example: "  chorus node label berlin --add shared-disk\n  chorus node label berlin --remove shared-disk"}},
		Done:   "node {name} has the labels {labels}"}, Nodes.LabelNode)
)

func nodes() []operation.Any { return []operation.Any{ListNodes, DrainNode, LabelNode} }
