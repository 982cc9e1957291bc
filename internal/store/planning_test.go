package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStatementsStayPlanned: SQLite looks into the value of a bare "LIMIT ?" when it plans, and therefore plans the statement
// anew each time another one is bound, which costs more than most of our reads. It does not look into a sum.
func TestStatementsStayPlanned(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	bare, seen := regexp.MustCompile(`LIMIT \?(\+0)?`), 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, m := range bare.FindAllStringSubmatch(line, -1) {
				if seen++; m[1] == "" {
					t.Errorf("%s:%d: write LIMIT ?+0", name, i+1)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no statement has a limit; does this test look in the right place?")
	}
}
