package internal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module     = "chorus"
	layersFile = "docs/layers.txt"
	program    = "cmd/chorus"
)

// rule is one line of docs/layers.txt.
type rule struct {
	line      int
	pkg       string
	all       bool // everything above the line
	may       []string
	libraries []string
}

// layers is docs/layers.txt, read.
type layers []rule

// pkgInfo is one package as the code has it: all its non-test files, those for other
// systems too. Imports of ours are without the module's name.
type pkgInfo struct {
	pkg      string
	name     string
	imports  []string
	inits    []string // file:line of each func init
	patterns []string // where regular expressions are compiled while packages are initialised
}

// readLayers reads the file and refuses lines that name a package below themselves.
func readLayers(text string) (layers, error) {
	var all layers
	above := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		pkg, rest, ok := strings.Cut(line, "<-")
		if !ok {
			return nil, fmt.Errorf("%s line %d: want \"package <- imports | libraries\"", layersFile, i+1)
		}
		ours, libraries, _ := strings.Cut(rest, "|")
		f := rule{line: i + 1, pkg: strings.TrimSpace(pkg), libraries: strings.Fields(libraries)}
		for _, may := range strings.Fields(ours) {
			switch {
			case may == "*":
				f.all = true
			case above[may] == 0:
				return nil, fmt.Errorf("%s line %d: %s may not name %s, which does not stand above it", layersFile, f.line, f.pkg, may)
			default:
				f.may = append(f.may, may)
			}
		}
		if n := above[f.pkg]; n != 0 {
			return nil, fmt.Errorf("%s line %d: %s stands at line %d already", layersFile, f.line, f.pkg, n)
		}
		above[f.pkg] = f.line
		all = append(all, f)
	}
	return all, nil
}

// offences are sentences about packages that break a rule.
func (all layers) offences(packages []pkgInfo) []string {
	var out []string
	lines := map[string]rule{}
	for _, f := range all {
		lines[f.pkg] = f
	}
	there := map[string]bool{}
	for _, p := range packages {
		there[p.pkg] = true
		f, ok := lines[p.pkg]
		if !ok {
			out = append(out, fmt.Sprintf("%s has no line in %s: add one that says what it may import", p.pkg, layersFile))
			continue
		}
		for _, imp := range p.imports {
			if !f.allows(imp, lines) {
				out = append(out, fmt.Sprintf("%s imports %s: not allowed by %s line %d", p.pkg, imp, layersFile, f.line))
			}
		}
	}
	for _, f := range all {
		if !there[f.pkg] {
			out = append(out, fmt.Sprintf("%s line %d names %s, which does not exist: remove the line", layersFile, f.line, f.pkg))
		}
	}
	return out
}

func (f rule) allows(imp string, lines map[string]rule) bool {
	switch {
	case isLibrary(imp):
		return slices.ContainsFunc(f.libraries, func(lib string) bool { return under(imp, lib) })
	case f.all:
		target, ok := lines[imp]
		return ok && target.line < f.line
	default:
		return slices.Contains(f.may, imp)
	}
}

// isLibrary tells a library from the standard library's and our own packages, which
// have no dot in their first part.
func isLibrary(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return strings.Contains(first, ".")
}

// under tells whether imp is the package or module at root or inside of it.
func under(imp, root string) bool { return imp == root || strings.HasPrefix(imp, root+"/") }

// wired are the packages that only app and cmd may know. A package inside of one of
// these trees is at home there: storetest tries the store, providers share wire.
var wired = []string{"internal/config", "internal/store", "internal/transport", "internal/model/*", "internal/tool/*"}

// assembling are the packages that put plugs together; each plug is named in one or two of them.
var assembling = []string{"internal/app", "internal/node", "internal/logging", "internal/provider", "internal/settings", "internal/sandbox/isolate", "internal/gate", "internal/runsetup",
	"internal/doctor/checks", "internal/transport/repl/local", "internal/connector/host"}

// wiringOffences hold whatever docs/layers.txt allows: what is plugged together is known in one place.
func wiringOffences(packages []pkgInfo) []string {
	var out []string
	for _, p := range packages {
		if slices.Contains(assembling, p.pkg) || under(p.pkg, "internal/service") || under(p.pkg, "cmd") || under(p.pkg, "bench") { // measuring needs the real parts
			continue
		}
		for _, imp := range p.imports {
			for _, pattern := range wired {
				tree := strings.TrimSuffix(pattern, "/*")
				hit := under(imp, tree)
				if tree != pattern {
					hit = hit && imp != tree
				}
				if imp == "internal/model/wire" || imp == "internal/model/catalog" { // no part to choose: what all of them share, and the table of them
					hit = false
				}
				if hit && !under(p.pkg, tree) {
					out = append(out, fmt.Sprintf("%s imports %s: only the packages that assemble the program may; declare a small interface and be handed it", p.pkg, imp))
				}
			}
		}
	}
	return out
}

// root is the repository's folder, seen from here.
const root = ".."

// goList runs go list in the repository.
func goList(args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-tags", "grpcnotrace"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// surveyed is every package of the module that has code besides tests.
var surveyed = sync.OnceValues(func() ([]pkgInfo, error) {
	out, err := goList("-json=ImportPath,Name,Dir,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var packages []pkgInfo
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath, Name, Dir             string
			GoFiles, CgoFiles, IgnoredGoFiles []string
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		files := slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles)
		files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		if len(files) == 0 {
			continue
		}
		found, err := open(pkgInfo{pkg: strings.TrimPrefix(p.ImportPath, module+"/"), name: p.Name}, p.Dir, files)
		if err != nil {
			return nil, err
		}
		packages = append(packages, found)
	}
	return packages, nil
})

func survey(t *testing.T) []pkgInfo {
	t.Helper()
	packages, err := surveyed()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatal("no packages were found")
	}
	return packages
}

// open reads what a package's files import and whether they hide an init.
func open(p pkgInfo, dir string, files []string) (pkgInfo, error) {
	fset := token.NewFileSet()
	for _, name := range files {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return pkgInfo{}, err
		}
		for _, spec := range file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return pkgInfo{}, err
			}
			ours, isOurs := strings.CutPrefix(imp, module+"/")
			if isOurs || isLibrary(imp) {
				p.imports = append(p.imports, ours)
			}
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				p.inits = append(p.inits, fmt.Sprintf("%s/%s:%d", p.pkg, name, fset.Position(fn.Pos()).Line))
			}
			for _, at := range compiledAtStart(decl) {
				p.patterns = append(p.patterns, fmt.Sprintf("%s/%s:%d", p.pkg, name, fset.Position(at).Line))
			}
		}
	}
	slices.Sort(p.imports)
	p.imports = slices.Compact(p.imports)
	return p, nil
}

// compiledAtStart is where a declaration compiles regular expressions while packages are initialised.
func compiledAtStart(decl ast.Decl) (out []token.Pos) {
	gen, ok := decl.(*ast.GenDecl)
	if !ok || gen.Tok != token.VAR {
		return nil
	}
	ast.Inspect(gen, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" {
			out = append(out, sel.Pos())
		}
		_, later := n.(*ast.FuncLit)
		return !later
	})
	return out
}

func openLayers(t *testing.T) layers {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, layersFile))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readLayers(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func report(t *testing.T, offences []string) {
	t.Helper()
	for _, o := range offences {
		t.Error(o)
	}
}

func TestImportsGoDownOnly(t *testing.T) {
	report(t, openLayers(t).offences(survey(t)))
}

func TestOnlyTheWiringKnowsTheParts(t *testing.T) {
	report(t, wiringOffences(survey(t)))
}

func TestNoHiddenStart(t *testing.T) {
	for _, p := range survey(t) {
		for _, at := range p.inits {
			t.Errorf("%s: func init: do it where the part is wired", at)
		}
		for _, at := range p.patterns {
			t.Errorf("%s: a regular expression that every start compiles: say pattern.Lazy", at)
		}
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	for _, p := range survey(t) {
		for _, empty := range []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"} {
			if p.name == empty || path.Base(p.pkg) == empty {
				t.Errorf("package %s: a name for the reader of the call, please, not %q", p.pkg, empty)
			}
		}
	}
}

// TestNoTestPackageIsLinked keeps what only tests need out of the program.
func TestNoTestPackageIsLinked(t *testing.T) {
	out, err := goList("-deps", "./"+program)
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/internal/engine") {
		t.Fatalf("%s does not link the engine: there is no program to look at", program)
	}
	for _, dep := range deps {
		if strings.HasPrefix(dep, module+"/") && strings.HasSuffix(dep, "test") {
			t.Errorf("%s links %s, which is for tests", program, dep)
		}
	}
}

// TestTheCheckItself makes sure that an offender would be named.
func TestTheCheckItself(t *testing.T) {
	t.Parallel()
	const text = `
internal/chat   <-
internal/low    <- internal/chat | example.org/lib
internal/gone   <-
internal/high   <- *
internal/later  <-
`
	all, err := readLayers(text)
	if err != nil {
		t.Fatal(err)
	}
	got := all.offences([]pkgInfo{
		{pkg: "internal/chat", imports: []string{"internal/low", "example.org/lib"}},
		{pkg: "internal/low", imports: []string{"internal/chat", "example.org/lib/v2/part", "example.org/library"}},
		{pkg: "internal/high", imports: []string{"internal/chat", "internal/low", "internal/later"}},
		{pkg: "internal/later"},
		{pkg: "internal/new", imports: []string{"internal/chat"}},
	})
	want := []string{
		"internal/chat imports internal/low: not allowed by docs/layers.txt line 2",
		"internal/chat imports example.org/lib: not allowed by docs/layers.txt line 2",
		"internal/low imports example.org/library: not allowed by docs/layers.txt line 3",
		"internal/high imports internal/later: not allowed by docs/layers.txt line 5",
		"internal/new has no line in docs/layers.txt: add one that says what it may import",
		"docs/layers.txt line 4 names internal/gone, which does not exist: remove the line",
	}
	if !slices.Equal(got, want) {
		t.Errorf("offences:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []string{"internal/a <- internal/b\ninternal/b <-", "internal/a <-\ninternal/a <-", "internal/a"} {
		if _, err := readLayers(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestTheWiringCheckItself(t *testing.T) {
	t.Parallel()
	got := wiringOffences([]pkgInfo{
		{pkg: "internal/app", imports: []string{"internal/config", "internal/store"}},
		{pkg: "cmd/chorus", imports: []string{"internal/transport/repl"}},
		{pkg: "internal/store/storetest", imports: []string{"internal/store"}},
		{pkg: "internal/model/demo", imports: []string{"internal/model", "internal/model/wire"}},
		{pkg: "internal/engine", imports: []string{"internal/model", "internal/tool", "internal/model/demo", "internal/storey"}},
		{pkg: "internal/transport/repl", imports: []string{"internal/store", "internal/tool/files"}},
	})
	var offenders []string
	for _, o := range got {
		who, _, _ := strings.Cut(o, ":")
		offenders = append(offenders, who)
	}
	want := []string{
		"internal/engine imports internal/model/demo",
		"internal/transport/repl imports internal/store",
		"internal/transport/repl imports internal/tool/files",
	}
	if !slices.Equal(offenders, want) {
		t.Errorf("got %q, want %q", offenders, want)
	}
}
