// Package toolsearch keeps the list of tools that a model reads short. It promises that:
//   - a tool that could never be allowed is not offered;
//   - beyond a limit only the kept tools are listed, and the others are one search away;
//   - rarely needed tools are unlisted only if that makes the prompt shorter;
//   - a call through use_tool is judged, shown and recorded as a call of the tool itself.
package toolsearch

import (
	"slices"

	"chorus/internal/tool"
)

// Limit is how many tools a model is shown with their schemas. Beyond it, choosing
// gets worse and every request pays for text that is rarely used.
const Limit = 40

// Searches reports whether a tool is one of those that search for others.
func Searches(name string) bool { return name == "find_tools" || name == "use_tool" }

// Of returns the set that is offered: all tools if there are at most limit, and otherwise
// those that keep accepts, with find_tools and use_tool for the rest.
func Of(set *tool.Set, limit int, keep func(tool.Spec) bool) (*tool.Set, error) {
	specs := set.Specs()
	if len(specs) <= limit {
		return set, nil
	}
	away := slices.DeleteFunc(specs, keep)
	if len(away) == 0 {
		return set, nil
	}
	return set.ListOnly(keep, newFind(away), use{})
}

// Shorter returns the set that takes less of a prompt: for only a few tools,
// the two search tools cost more than listing them.
func Shorter(whole, searched *tool.Set) *tool.Set {
	if size(searched) < size(whole) {
		return searched
	}
	return whole
}

func size(set *tool.Set) (n int) {
	for _, s := range set.Specs() {
		n += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	return n
}

// Keep returns a condition for Set.Filter that accepts tools of which some call could be other than denied.
// could decides that by a tool's name in action strings: permit's Profile.Possible.
func Keep(tools []tool.Tool, could func(name string) bool) func(tool.Spec) bool {
	names := map[string]bool{}
	for _, t := range tools {
		if possible(t, could) {
			names[t.Spec().Name] = true
		}
	}
	return func(s tool.Spec) bool { return names[s.Name] }
}

func possible(t tool.Tool, could func(string) bool) bool {
	if _, ok := t.(tool.Forwarder); ok {
		return true // judged as what it forwards
	}
	if j, ok := t.(tool.Judged); ok {
		if names := j.JudgedAs(); len(names) > 0 {
			return slices.ContainsFunc(names, could)
		}
	}
	return could(t.Spec().Name)
}
