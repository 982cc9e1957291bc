package node

import (
	"context"
	"slices"

	"chorus/internal/store/nodes"
)

// The kinds of memos about processes of nodes: where one runs, and that it should end.
const (
	processPlace = "process-place"
	processStop  = "process-stop"
)

// Processes knows on which node a process runs. It implements watch.Places.
type Processes struct{ Member *Member }

// Place implements watch.Places.
func (p Processes) Place(ctx context.Context, id string) error {
	return p.Member.DB.Remember(ctx, processPlace, id, []byte(p.Member.Name()))
}

// PlaceOf implements watch.Places. A node that died is listed for an hour, so
// a node that is not listed has been gone for longer.
func (p Processes) PlaceOf(ctx context.Context, id string) (name string, lost bool, err error) {
	place, err := p.Member.DB.Recall(ctx, processPlace, id)
	if err != nil || len(place) == 0 {
		return "", false, err
	}
	list, err := nodes.List(ctx, p.Member.DB)
	known := slices.ContainsFunc(list, func(n nodes.Info) bool { return n.Name == string(place) })
	return string(place), err == nil && !known, err
}

// AskStop implements watch.Places.
func (p Processes) AskStop(ctx context.Context, id string) error {
	return p.Member.DB.Remember(ctx, processStop, id, []byte("stop"))
}

// StopsAsked implements watch.Places.
func (p Processes) StopsAsked(ctx context.Context) ([]string, error) {
	memos, err := p.Member.DB.Memos(ctx, processStop)
	var out []string
	for _, m := range memos {
		out = append(out, m.Key)
	}
	return out, err
}

// StopDone implements watch.Places.
func (p Processes) StopDone(ctx context.Context, id string) error {
	return p.Member.DB.Forget(ctx, processStop, id)
}
