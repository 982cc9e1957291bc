package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// arrange groups the commands under headings, with those for newcomers first.
func arrange(root *cobra.Command) {
	for i, part := range []struct{ title, names string }{
		{"Start here", "chat run serve init sample docs doctor"},
		{"Conversations", "thread approvals cost audit forget context"},
		{"Agents", "agent models permit tool call skill memory mcp"},
		{"Automation", "schedule hook process"},
		{"Projects and tasks", "project repo task work worker git note"},
		{"Server and home", "token config backup restore migrate import node"},
		{"Other", "acp sim completion man version help"},
	} {
		group := &cobra.Group{ID: strconv.Itoa(i), Title: part.title + ":"}
		root.AddGroup(group)
		for _, cmd := range root.Commands() {
			if slices.Contains(strings.Fields(part.names), cmd.Name()) {
				cmd.GroupID = group.ID
			}
		}
		if strings.HasSuffix(part.names, " help") {
			root.SetHelpCommandGroupID(group.ID)
		}
	}
}
