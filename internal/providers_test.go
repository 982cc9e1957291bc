package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chorus/internal/model/catalog"
)

// mayNameProviders are the places that know a provider by its name: the table itself,
// the providers' packages, where they are made, and what imitates their servers.
var mayNameProviders = []string{"internal/model/", "internal/sim/llmsim/", "internal/provider/providers.go", "internal/operations/operationstest/"}

// What differs between providers stands in the catalog. Code that compares names would
// be one more place to think of when a provider is added, and would soon disagree.
func TestOnlyTheCatalogKnowsProvidersByName(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range catalog.Providers() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			path, err := filepath.Rel(root, file)
			if err != nil || slices.ContainsFunc(mayNameProviders, func(p string) bool { return strings.HasPrefix(filepath.ToSlash(path), p) }) {
				return err
			}
			for _, where := range literals(t, file, func(text string) bool { return slices.Contains(names, strings.TrimSuffix(text, "/")) }) {
				t.Errorf("%s names a provider: add what it needs to know to internal/model/catalog", where)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// families are parts of models' names by which requests would be told apart.
var families = []string{"gpt-oss", "gemini-", "claude-", "nova-", "llama", "deepseek.", "mistral.", "anthropic.", "amazon.", "openai.gpt", "-pro", "-lite", "-flash"}

// What a model takes was told by its name in six places, which disagreed: the request that
// was shown had nine stop sequences, the one that was sent had four.
func TestOnlyTheCatalogKnowsModelsByName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root, "internal", "model")
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || filepath.Base(filepath.Dir(file)) == "catalog" {
			return err
		}
		for _, where := range nameTests(t, file) {
			t.Errorf("%s tells models apart by their names: add a trait to internal/model/catalog", where)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nameTests lists where a file asks whether a text contains, begins with or ends with a family.
func nameTests(t *testing.T, file string) []string {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Contains", "HasPrefix", "HasSuffix", "CutPrefix", "CutSuffix"}, fun.Sel.Name) {
			return true
		}
		for _, arg := range call.Args {
			lit, ok := arg.(*ast.BasicLit)
			if !ok {
				continue
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && slices.ContainsFunc(families, func(f string) bool { return strings.Contains(text, f) }) {
				out = append(out, set.Position(lit.Pos()).String()+" "+lit.Value)
			}
		}
		return true
	})
	return out
}

// literals lists where a file has a string that counts, with what it is.
func literals(t *testing.T, file string, counts func(text string) bool) []string {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && counts(text) {
			out = append(out, set.Position(lit.Pos()).String()+" "+lit.Value)
		}
		return true
	})
	return out
}
