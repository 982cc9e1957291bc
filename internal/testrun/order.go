package main

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// ordered returns the packages to test, with those in the file of -first at the front. go test starts packages in the
// given order: one that takes minutes and starts last would run alone at the end.
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
		return r.packages, nil // go test reports it again, as a failure of the package
	}
	return order(strings.Fields(string(out)), strings.Fields(string(text))), nil
}

// order moves the packages in first to the front, in its order. The others keep theirs.
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
