package work_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"chorus/internal/work"
)

// Whatever the code writes as the type of an event is one that hooks can name.
func TestEveryEventThatIsWrittenHasAName(t *testing.T) {
	t.Parallel()
	written := regexp.MustCompile(`"((?:task|project|repo|note|git|orchestrator)\.[a-z_]+)"`)
	types, found := work.EventTypes(), 0
	for _, dir := range []string{"../workservice", "../workrun", "../store/tasks"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range written.FindAllStringSubmatch(string(text), -1) {
				if found++; !slices.Contains(types, m[1]) {
					t.Errorf("%s writes %s, which no hook can be triggered by", name, m[1])
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d types were found in the code", found)
	}
}
