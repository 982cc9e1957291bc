package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"chorus/internal/app/apptest"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/owner"
	"chorus/internal/polltest"
	"chorus/internal/store/storetest"
)

// admin may do everything.
func admin(a *App) operation.Caller {
	return operation.Caller{Principal: a.Me(), Scopes: []operation.Scope{operation.Admin}}
}

// A home with a database of its own is one node, and says so.
func TestOneNodeIsAlone(t *testing.T) {
	t.Parallel()
	a := openAmong(t, storetest.FreshHome(t), "berlin", false)
	list, err := operations.ListNodes.Call(t.Context(), a.Service.Operations(), admin(a), operation.None{})
	if err != nil || len(list.Items) != 1 || list.Items[0].State != "alone" || list.Items[0].Name != "berlin" {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = operations.DrainNode.Call(t.Context(), a.Service.Operations(), admin(a), operations.NodeDrain{Name: "berlin"})
	var told *operation.Error
	if !errors.As(err, &told) || told.Kind != operation.Conflict || !strings.Contains(err.Error(), "databaseUrl") {
		t.Errorf("a single node can be drained: %v", err)
	}
}

// Nodes see each other, what each has, and what was changed about them.
func TestNodesAreListedDrainedAndLabelled(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	a, b := openAmong(t, home, "berlin", true), openAmong(t, home, "oslo", true)
	ctx := t.Context()
	x, err := a.owner.Take(ctx, owner.Thread("cli:local:main:default"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.owner.Take(ctx, owner.Bot("discord", "bob")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.owner.Take(ctx, owner.Hooks); err != nil {
		t.Fatal(err)
	}
	do := b.Service.Operations()
	list, err := operations.ListNodes.Call(ctx, do, admin(b), operation.None{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := list.Items[0]; got.Name != "berlin" || got.Threads != 1 || !slices.Equal(got.Owns, []string{"bot discord-bob"}) || got.State != "alive" {
		t.Errorf("%+v", got)
	}
	if _, err := operations.LabelNode.Call(ctx, do, admin(b), operations.NodeLabels{Name: "berlin", Remove: []string{"berlin"}}); err == nil {
		t.Error("a node has lost its name")
	}
	if labelled, err := operations.LabelNode.Call(ctx, do, admin(b), operations.NodeLabels{Name: "berlin", Add: []string{"disk1"}}); err != nil || !slices.Equal(labelled.Labels, []string{"berlin", "disk1"}) {
		t.Errorf("%+v, %v", labelled, err)
	}
	if _, err := operations.DrainNode.Call(ctx, do, admin(b), operations.NodeDrain{Name: "berlin"}); err != nil {
		t.Error(err)
	}
	_, err = operations.DrainNode.Call(ctx, do, admin(b), operations.NodeDrain{Name: "rome"})
	var told *operation.Error
	if !errors.As(err, &told) || told.Kind != operation.NotFound {
		t.Errorf("a node that is not there was drained: %v", err)
	}
	polltest.Until(t, "it knows that it is drained", func() bool {
		held, err := a.owner.Take(context.Background(), owner.Work)
		if err == nil {
			held.Release()
		}
		return errors.Is(err, owner.ErrDraining)
	})
	over, err := operations.GetOverview.Call(ctx, do, admin(b), operation.None{})
	if err != nil || len(over.Nodes) != 2 || over.Nodes[0].State != "draining" || !slices.Contains(over.Nodes[0].Labels, "disk1") {
		t.Errorf("%+v, %v", over.Nodes, err)
	}
	x.Release()
	if _, err := b.owner.Take(ctx, owner.Thread("cli:local:main:default")); err != nil {
		t.Errorf("what a drained node gave back cannot be taken: %v", err)
	}
}

func openAmong(t *testing.T, home, name string, shared bool) *App {
	t.Helper()
	a, err := Open(t.Context(), Options{Home: home, Nodes: shared, Env: apptest.Env("CHORUS_NODE", name, "USER", "tester")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}
