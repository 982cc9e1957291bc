package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Before main does anything, every linked package initialises itself. That is paid by
// each command a person types, so it has a limit; libraries with big tables are found
// out here before they are felt.
const initLimit = 10.0 // milliseconds

// initRuns is how often we look. The least of each package counts: the work is always the same, and
// whatever else the machine does can only add to it.
const initRuns = 15

// initCost is what one package's initialisation took, in milliseconds.
type initCost struct {
	pkg string
	ms  float64
}

func TestPackageInitialisationIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program; not with -short")
	}
	bin := filepath.Join(t.TempDir(), "chorus")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-trimpath", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is built for people
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	least := map[string]float64{}
	for range initRuns {
		run := exec.CommandContext(t.Context(), bin, "version")
		run.Env = append(os.Environ(), "GODEBUG=inittrace=1", "CHORUS_HOME="+t.TempDir())
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("chorus version: %v\n%s", err, out)
		}
		each := readInitTrace(string(out))
		if len(each) < 10 {
			t.Fatalf("only %d packages in the trace:\n%s", len(each), out)
		}
		for _, c := range each {
			if before, ok := least[c.pkg]; !ok || c.ms < before {
				least[c.pkg] = c.ms
			}
		}
	}
	best, costs := 0.0, []initCost(nil)
	for pkg, ms := range least {
		best += ms
		costs = append(costs, initCost{pkg, ms})
	}
	t.Logf("package initialisation: %.2f ms", best)
	if best <= initLimit {
		return
	}
	slices.SortFunc(costs, func(a, b initCost) int { return cmp.Compare(b.ms, a.ms) })
	var dear strings.Builder
	for _, c := range costs[:min(8, len(costs))] {
		fmt.Fprintf(&dear, "\n  %6.2f ms  %s", c.ms, c.pkg)
	}
	t.Errorf("package initialisation takes %.2f ms, more than %v; the dearest:%s", best, initLimit, dear.String())
}

// readInitTrace reads lines like "init net/http @1.2 ms, 0.031 ms clock, 99 bytes, 3 allocs".
func readInitTrace(text string) []initCost {
	var costs []initCost
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 7 || words[0] != "init" || words[6] != "clock," {
			continue
		}
		if ms, err := strconv.ParseFloat(words[4], 64); err == nil {
			costs = append(costs, initCost{words[1], ms})
		}
	}
	return costs
}

func TestReadInitTrace(t *testing.T) {
	t.Parallel()
	got := readInitTrace("chorus dev\ninit a/b @0.5 ms, 0.25 ms clock, 16 bytes, 1 allocs\ninit c @1 ms, 2 ms clock, 0 bytes, 0 allocs\n")
	if want := []initCost{{"a/b", 0.25}, {"c", 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
