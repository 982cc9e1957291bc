package permit

import "sync"

// RuleName describes a built-in rule in words, or returns "" for any
// other rule. People see it instead of the expression.
func RuleName(expression string) string { return ruleNames()[expression] }

// ruleNames names the rules of all presets. A test checks that it is complete.
var ruleNames = sync.OnceValue(func() map[string]string {
	return map[string]string{
		`.*`:                                     "anything",
		readers + inWorkspace:                    "reading files in the workspace",
		readers + `@[^/]+` + belowRoot:           "reading files of named folders",
		writers + ownFiles:                       "changing files in the workspace",
		writers + `@(?:docs|memory)` + belowRoot: "writing the agent's docs and memory",
		localGit:                                 "git inside the repository",
		`tool:self_edit:docs ` + anyName + belowRoot: "editing the agent's own docs",
		infoTools:                       "tools that only read",
		`tool:(?:` + workReads + `):.*`: "reading projects and tasks",
		writers + `@(?:skills|events)` + belowRoot: "writing skills and events",
		writers + inWorkspace:                      "changing files that git runs or reads",
		`tool:bash:.*`:                             "shell commands",
		processTools:                               "commands that are left running, and other programs",
		`tool:git:.*`:                              "git that reaches outside of the repository",
		selfEdit:                                   "changing the agent's own prompt, model or permissions",
		`tool:(?:web_search|web_fetch):.*`:         "the web",
		`tool:(?:send_to_agent|spawn_agent):.*`:    "other agents",
		`tool:mcp__.*`:                             "tools of MCP servers",
		hookTools:                                  "hooks",
		`tool:(?:` + workWrites + `):.*`:           "changing projects and tasks",
		adminTools:                                 "administering Chorus",
		pushes:                                     "pushing to other repositories",
		`tool:remote:.*`:                           "commands that change other machines",
		plainReaders + inWorkspace:                 "reading files in the workspace",
		plainReaders + `@(?:outputs|attachments)` + belowRoot: "reading outputs and attachments",
	}
})
