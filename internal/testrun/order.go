package main

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// ordered are the packages to test, those that the file of -first names before all others. go test begins packages in the order in
// which it is given them: one that takes minutes and begins last would run alone at the end.
func (r runner) ordered() ([]string, error) {
	if r.first == "" {
		return r.packages, nil
	}
	text, err := os.ReadFile(r.first)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", append([]string{"list"}, r.packages...)...)
	cmd.Stderr = r.stderr
	out, err := cmd.Output()
	if err != nil {
		return r.packages, nil // go test says the same again, and as a failure of the package
	}
	return order(strings.Fields(string(out)), strings.Fields(string(text))), nil
}

// order puts the packages that are in first before the others, in its order; the others keep theirs.
func order(packages, first []string) []string {
	place := func(pkg string) int {
		if i := slices.Index(first, pkg); i >= 0 {
			return i
		}
		return len(first)
	}
	out := slices.Clone(packages)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return out
}
