package internal_test

import (
	"os"
	"regexp"
	"testing"
)

// Every variable of the Makefile has a value, unless it is one that others give: an empty one let a target that says ten minutes end
// after seconds.
func TestMakefileVariables(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"ARGS": true, "GOFLAGS": true, "GORACE": true, "HOME": true, "CURDIR": true, "MAKEFILE_LIST": true}
	for _, m := range regexp.MustCompile(`(?m)^(?:export )?([A-Z_]+) *\??[:+]?=`).FindAllSubmatch(data, -1) {
		known[string(m[1])] = true
	}
	used := regexp.MustCompile(`\$\(([A-Z_]+)\)`).FindAllSubmatch(data, -1)
	for _, m := range used {
		if name := string(m[1]); !known[name] {
			t.Errorf("$(%s) has no value", name)
			known[name] = true
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d uses of variables were found", len(used))
	}
}
