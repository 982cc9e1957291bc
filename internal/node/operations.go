package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store/nodes"
)

// Operations implements the operations on nodes.
type Operations struct {
	Member  *Member // nil if there is only one node, described by the fields below
	Name    string
	Version string
}

var _ operations.Nodes = Operations{}

// The states of a node.
const (
	nodeAlone    = "alone"
	nodeAlive    = "alive"
	nodeDraining = "draining"
	nodeDead     = "dead"
	nodeLost     = "lost" // threads wait for what it had
)

// ListNodes implements operations.Nodes.
func (o Operations) ListNodes(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.Node], error) {
	out := operation.List[operations.Node]{Items: []operations.Node{}}
	if o.Member == nil {
		out.Items = append(out.Items, operations.Node{Name: o.Name, State: nodeAlone, Version: o.Version, Labels: []string{o.Name}, Owns: []string{}})
		return out, nil
	}
	list, err := nodes.List(ctx, o.Member.DB)
	if err != nil {
		return out, err
	}
	for _, n := range list {
		item := operations.Node{ID: n.ID, Name: n.Name, State: nodeAlive, Kind: n.Kind, Address: n.Address, Version: n.Version, Labels: n.Labels, Owns: []string{}, Since: n.Started, DiedAt: n.Died}
		switch {
		case n.Dead:
			item.State = nodeDead
		case n.Draining:
			item.State = nodeDraining
		}
		for _, name := range n.Owns {
			if name.IsThread() {
				item.Threads++
			} else {
				item.Owns = append(item.Owns, strings.Replace(string(name), ":", " ", 1))
			}
		}
		out.Items = append(out.Items, item)
	}
	waiting, err := o.Member.waitingForNodes(ctx, list)
	if err != nil {
		return out, err
	}
	for _, label := range slices.Sorted(maps.Keys(waiting)) {
		out.Items = append(out.Items, operations.Node{Name: label, State: nodeLost, Labels: []string{label}, Owns: []string{}, Waiting: waiting[label]})
	}
	return out, nil
}

// waitingForNodes counts the threads that have something to do and whose label no living node carries.
func (m *Member) waitingForNodes(ctx context.Context, list []nodes.Info) (map[string]int, error) {
	waiting, err := m.DB.WaitingByPlacement(ctx)
	for _, n := range list {
		for _, label := range n.Labels {
			if !n.Dead {
				delete(waiting, label)
			}
		}
	}
	return waiting, err
}

// DrainNode implements operations.Nodes.
func (o Operations) DrainNode(ctx context.Context, by operation.Caller, in operations.NodeDrain) (operations.NodeDrained, error) {
	out := operations.NodeDrained{Name: in.Name, State: nodeDraining}
	if in.Undo {
		out.State = nodeAlive
	}
	if err := o.several(); err != nil {
		return out, err
	}
	o.Member.Log.Info("a node is told to hand over what it has", "component", "nodes", "event", "node_drain", "node", in.Name, "undo", in.Undo, "by", by.Principal.String())
	return out, explainNode(nodes.Drain(ctx, o.Member.DB, in.Name, !in.Undo))
}

// LabelNode implements operations.Nodes.
func (o Operations) LabelNode(ctx context.Context, _ operation.Caller, in operations.NodeLabels) (operations.NodeLabelled, error) {
	out := operations.NodeLabelled{Name: in.Name}
	if err := o.several(); err != nil {
		return out, err
	}
	for _, l := range append(append([]string{}, in.Add...), in.Remove...) {
		if err := nodes.CheckLabel(l); err != nil {
			return out, operation.Errorf(operation.Invalid, "%s", err)
		}
	}
	if slices.Contains(in.Remove, in.Name) {
		return out, operation.Errorf(operation.Invalid, "the name of node %s stays one of its labels: conversations that began there have it", in.Name)
	}
	given, err := nodes.Label(ctx, o.Member.DB, in.Name, in.Add, in.Remove)
	out.Labels = append([]string{in.Name}, given...) // as in the list
	return out, explainNode(err)
}

// several refuses what makes sense only with more than one node.
func (o Operations) several() error {
	if o.Member == nil {
		return operation.Errorf(operation.Conflict, "this Chorus is one node: its database is a file; several share one when databaseUrl names a PostgreSQL server")
	}
	return nil
}

func explainNode(err error) error {
	if errors.Is(err, nodes.ErrUnknown) {
		return operation.Errorf(operation.NotFound, "%s", nodes.ErrUnknown)
	}
	return err
}
