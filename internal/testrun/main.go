// Testrun runs the tests of the packages it is given and tells flaky tests from broken ones. It is what `make test` calls.
//
// gotestsum runs the tests, shows the progress and prints what was skipped and what failed. Of the tests that failed,
// testrun runs each once more: a test that passes then is reported as FLAKY and fails nothing, one that fails again is a
// failure. What a second run cannot excuse fails at once: a package that does not build or stops before its last test
// (a panic, a timeout, os.Exit), a failure outside of any test (TestMain), a data race, and more failures than -max-reruns.
//
// gotestsum has a --rerun-fails of its own. It is not used because it exits 0 in two cases that are failures: when TestMain
// fails, and when the failed subtest does not exist in the second run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	flags := flag.NewFlagSet("testrun", flag.ExitOnError)
	r := runner{stdout: os.Stdout, stderr: os.Stderr}
	flags.StringVar(&r.out, "out", "build", "directory for `test.jsonl` and flaky.txt")
	flags.IntVar(&r.maxReruns, "max-reruns", 10, "run nothing again if more tests than this failed: then it is not chance")
	flags.StringVar(&r.first, "first", "", "`file` that names the packages to begin with, one on a line")
	gotestsum := flags.String("gotestsum", "go tool gotestsum", "the `command` that runs tests")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: testrun [flags] package... [-- go test flags]")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // ExitOnError
	r.gotestsum = strings.Fields(*gotestsum)
	r.packages = flags.Args()
	if i := slices.Index(r.packages, "--"); i >= 0 {
		r.packages, r.testFlags = r.packages[:i], r.packages[i+1:]
	}
	if len(r.packages) == 0 {
		flags.Usage()
		os.Exit(2)
	}
	ok, err := r.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// runner is one call of testrun.
type runner struct {
	out       string
	maxReruns int
	first     string
	gotestsum []string
	packages  []string
	testFlags []string
	stdout    io.Writer
	stderr    io.Writer
}

// run reports whether every test passed, at the latest in the second run. An error means that it could not find out.
func (r runner) run() (bool, error) {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return false, err
	}
	began := time.Now()
	packages, err := r.ordered()
	if err != nil {
		return false, err
	}
	first, passed, err := r.test("test.jsonl", strings.Join(packages, " "), "pkgname", nil)
	if err != nil {
		return false, err
	}
	var v verdict
	if !passed {
		if v, err = r.again(first); err != nil {
			return false, err
		}
	}
	if err := os.WriteFile(filepath.Join(r.out, "flaky.txt"), lines(v.flaky), 0o644); err != nil {
		return false, err
	}
	first.print(r.stdout, time.Since(began))
	v.print(r.stdout, filepath.Join(r.out, "flaky.txt"))
	return v.ok(), nil
}

// test runs gotestsum once and reads the events it recorded in the file.
func (r runner) test(file, packages, format string, more []string) (results, bool, error) {
	events := filepath.Join(r.out, file)
	args := slices.Concat(r.gotestsum[1:],
		[]string{"--format", format, "--format-hide-empty-pkg", "--jsonfile", events, "--packages", packages, "--"},
		r.testFlags, more)
	cmd := exec.Command(r.gotestsum[0], args...)
	cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return results{}, false, fmt.Errorf("start %s: %w", strings.Join(r.gotestsum, " "), err)
	}
	f, openErr := os.Open(events)
	if openErr != nil {
		return results{}, false, openErr
	}
	defer f.Close()
	res, readErr := readResults(f)
	if readErr != nil {
		return results{}, false, fmt.Errorf("read %s: %w", events, readErr)
	}
	return res, err == nil, nil
}

// again runs each failed test a second time, one package after the other.
func (r runner) again(first results) (verdict, error) {
	v := verdict{failed: first.failed(), reasons: first.final()}
	switch n := len(v.failed); {
	case len(v.reasons) > 0:
		return v, nil
	case n == 0:
		v.reasons = []string{"go test failed and named no test"}
		return v, nil
	case n > r.maxReruns:
		v.reasons = []string{fmt.Sprintf("%d tests failed, more than %d: none was run again", n, r.maxReruns)}
		return v, nil
	}
	v.failed = nil // each now gets its second run
	for i, pkg := range first.names() {
		tests := first.packages[pkg].leaves()
		if len(tests) == 0 {
			continue
		}
		fmt.Fprintf(r.stdout, "\nAgain: %s %s\n", pkg, strings.Join(tests, " "))
		second, passed, err := r.test(fmt.Sprintf("again%d.jsonl", i), pkg, "testname", []string{"-run", pattern(tests)})
		if err != nil {
			return verdict{}, err
		}
		v.judge(pkg, tests, second, passed)
	}
	return v, nil
}
