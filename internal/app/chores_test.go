package app

import (
	"slices"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store/storetest"
)

// What is done for all nodes is done by one of them, and by another when that one leaves.
func TestOneNodeSweepsAndIndexes(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	a, b := openAmong(t, home, "berlin", true), openAmong(t, home, "oslo", true)
	has := func(name string) (got []string) {
		t.Helper()
		list, err := operations.ListNodes.Call(t.Context(), b.Service.Operations(), admin(b), operation.None{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Items {
			if n.Name == name {
				got = append(got, n.Owns...)
			}
		}
		return got
	}
	both := []string{"search", "sweeps"}
	a.StartBackground()
	polltest.Until(t, "berlin does both", func() bool { return slices.Equal(has("berlin"), both) })
	b.StartBackground()
	if err := a.member.Leave(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "oslo does both", func() bool { return slices.Equal(has("oslo"), both) })
	if got := has("berlin"); len(got) > 0 {
		t.Errorf("berlin still has %v", got)
	}
}
