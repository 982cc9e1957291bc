package api

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/npmtest"
)

// TestRedocly: a linter that others wrote has nothing to say about the document.
func TestRedocly(t *testing.T) {
	t.Parallel()
	dir := npmtest.Install(t, "@redocly/cli@2.73.0")
	document, err := filepath.Abs("../../../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npmtest.Bin(dir, "redocly"), "lint", "--max-problems=20", document)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
