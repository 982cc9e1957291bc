package app

import (
	"context"
	"slices"

	"chorus/internal/background/watch"
	"chorus/internal/store/nodes"
)

// The kinds of memos about processes of nodes: where one runs, and that it is to end.
const (
	processPlace = "process-place"
	processStop  = "process-stop"
)

// processPlaces knows on which node a process runs.
type processPlaces struct{ a *App }

var _ watch.Places = processPlaces{}

// Place implements watch.Places.
func (p processPlaces) Place(ctx context.Context, id string) error {
	return p.a.DB.Remember(ctx, processPlace, id, []byte(p.a.member.nameOf()))
}

// PlaceOf implements watch.Places. A node that died is listed for an hour; one that is not is gone for longer.
func (p processPlaces) PlaceOf(ctx context.Context, id string) (name string, lost bool, err error) {
	place, err := p.a.DB.Recall(ctx, processPlace, id)
	if err != nil || len(place) == 0 {
		return "", false, err
	}
	list, err := nodes.List(ctx, p.a.DB)
	known := slices.ContainsFunc(list, func(n nodes.Info) bool { return n.Name == string(place) })
	return string(place), err == nil && !known, err
}

// AskStop implements watch.Places.
func (p processPlaces) AskStop(ctx context.Context, id string) error {
	return p.a.DB.Remember(ctx, processStop, id, []byte("stop"))
}

// StopsAsked implements watch.Places.
func (p processPlaces) StopsAsked(ctx context.Context) ([]string, error) {
	memos, err := p.a.DB.Memos(ctx, processStop)
	var out []string
	for _, m := range memos {
		out = append(out, m.Key)
	}
	return out, err
}

// StopDone implements watch.Places.
func (p processPlaces) StopDone(ctx context.Context, id string) error {
	return p.a.DB.Forget(ctx, processStop, id)
}
