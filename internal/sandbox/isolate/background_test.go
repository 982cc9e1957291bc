package isolate

import (
	"strings"
	"testing"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/docker"
)

// A container cannot keep what was left running in it; whoever wants to is told what to do instead.
func TestNothingIsLeftRunningInAContainer(t *testing.T) {
	t.Parallel()
	inner, err := docker.New(docker.Options{Container: "work", Host: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	e := &SwitchedExecutor{Inner: inner}
	_, err = e.Background(t.Context(), sandbox.Command{Shell: "sleep 60"})
	if err == nil {
		t.Fatal("it was left running")
	}
	for _, part := range []string{"in the sandbox docker", "nothing can be left running", "bash", "bwrap or host"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}
