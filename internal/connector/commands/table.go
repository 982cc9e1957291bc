package commands

import (
	"chorus/internal/platform"
)

// The entries in a message's menu.
const (
	forkName = "Fork from here"
	whyName  = "Why this answer?"
)

// list returns all commands, in the order in which platforms
// show them.
func list() []platform.Command {
	text := func(name, description string) platform.Option {
		return platform.Option{Name: name, Description: description}
	}
	completed := func(name, description string) platform.Option {
		return platform.Option{Name: name, Description: description, Completes: true}
	}
	required := func(o platform.Option) platform.Option { o.Required = true; return o }
	flag := func(name, description string) platform.Option {
		return platform.Option{Name: name, Description: description, Kind: platform.Flag}
	}
	one := func(name, description string, options ...platform.Option) platform.Command {
		return platform.Command{Name: name, Description: description, Options: options}
	}
	topic := func(topic string, c platform.Command) platform.Command { c.Topic = topic; return c }
	talk := func(c platform.Command) platform.Command { return topic(platform.TopicTalk, c) }
	look := func(c platform.Command) platform.Command { return topic(platform.TopicLook, c) }
	anywhere := func(c platform.Command) platform.Command { c.Anywhere = true; return c }
	thread := completed("thread", "The conversation's id, or the start of it")
	all := []platform.Command{
		anywhere(look(one("help", "What I can do here, and how to reach me", completed("topic", "Show more about these commands")))),
		anywhere(talk(platform.Command{Name: "ask", Description: "Ask me something, even in channels where I do not normally answer", Speaks: true, Options: []platform.Option{
			{Name: "prompt", Description: "Your question or task", Required: true, MaxLength: maxPrompt}, {Name: "file", Description: "A file for me to look at", Kind: platform.Upload}}})),
		{Name: "agent", Description: "Create, change and delete agents with their own channels", GuildOnly: true, Needs: platform.ManageChannels, Sub: []platform.Command{
			one("init", "Create an agent with its own channel", required(text("name", "Name of the agent and its channel: 2 to 32 characters of a-z, 0-9 and hyphens")),
				completed("model", "Model as provider/model (default: the server's)"), completed("permissions", "Permission profile (default: the server's)"), text("prompt", "Who the agent is")),
			one("destroy", "Delete an agent and its channel, after confirmation", required(completed("name", "Which agent")), flag("keep_files", "Keep its folder in .trash")),
			one("list", "List agents"),
			one("config", "Show or change a setting of an agent", required(completed("key", "Which setting")),
				completed("value", "New value; \"default\" removes the agent's own; leave out to show the current one"), completed("name", "Agent (default: the one that answers here)")),
		}},
		{Name: "settings", Description: "Settings for the agents of this server", GuildOnly: true, Needs: platform.ManageGuild, Sub: []platform.Command{
			one("model", "Set the model of agents without their own", required(completed("model", "Model as provider/model, or \"default\" for the global one"))),
			one("permissions", "Set the permission profile of new agents and of agents without their own", required(completed("profile", "Name of the profile, or \"default\" for the global one"))),
			one("show", "Show settings and where they come from"),
			one("validate-keys", "Ask the vendors whether they accept our keys"),
		}},
		look(one("access", "Show who may do what here, and why", platform.Option{Name: "person", Description: "Somebody else (only for people who may manage the server)", Kind: platform.Person})),
		talk(one("stop", "Stop everything that runs in this channel", flag("all", "Also drop waiting prompts"))),
		anywhere(look(one("cost", "Show what you spent, or for server managers what everybody spent here", text("since", "24h, 7d, today, month, all or a date (default: 24h)")))),
		look(one("status", "Show who answers here, what runs, pending approvals and what you spent today")),
		look(one("tasks", "Show what runs and what waits in this channel, with buttons to stop it")),
		look(one("queue", "Show who waits for an answer here, and in which place")),
		{Name: "thread", Description: "Manage the conversations of this channel", Sub: []platform.Command{
			one("list", "List conversations, newest first"),
			one("history", "Show what a conversation did, step by step, with times", thread),
			one("fork", "Continue with a copy of a conversation", required(thread)),
		}},
		talk(platform.Command{Name: forkName, Menu: true}),
		{Name: "context", Description: "Manage what the agent sees of this channel's conversations", Sub: []platform.Command{
			one("clear", "Start over: the agent no longer sees earlier messages", completed("thread", "Clear only this conversation"), flag("stop", "Stop active runs first, and clear them too")),
			one("save", "Save the conversation with a summary; nothing is cleared", text("description", "A description to find it by")),
			one("history", "List what was saved here"),
			one("restore", "Replace the current context by a saved one", required(completed("session_id", "The id, or the start of it"))),
		}},
		look(one("why", "Explain an answer: who asked, what was allowed and read, what it cost", text("message", "A link to the answer, or its id (default: the last one here)"))),
		look(platform.Command{Name: whyName, Menu: true}),
	}
	for i := range all {
		exemplify(&all[i], all[i].Name)
	}
	return all
}

// maxPrompt is the maximum length of a question: with the link to its file it must fit into a message.
const maxPrompt = 1500

// examples are typical options of commands, by path.
var examples = map[string]string{
	"help": "topic:context", "ask": "prompt:What changed since yesterday?",
	"agent/init": "name:scribe prompt:You write things down.", "agent/destroy": "name:scribe keep_files:True", "agent/config": "key:temperature value:0.3",
	"settings/model": "model:anthropic/claude-sonnet-4-5", "settings/permissions": "profile:guarded",
	"access": "person:@bob", "stop": "all:True", "cost": "since:7d",
	"thread/history": "thread:1402", "thread/fork": "thread:1402",
	"context/clear": "stop:True", "context/save": "description:before the change", "context/restore": "session_id:01K9",
	"why": "message:1402",
}

// exemplify adds examples to a command and its subcommands.
func exemplify(c *platform.Command, path string) {
	for i := range c.Sub {
		exemplify(&c.Sub[i], path+"/"+c.Sub[i].Name)
	}
	if len(c.Sub) == 0 && !c.Menu {
		c.Example = examples[path]
	}
}

// handlers run the commands, by path.
func handlers() map[string]handler {
	return map[string]handler{
		"help": (*Set).help, "ask": forWriters((*Set).ask),
		"agent/init": (*Set).initAgent, "agent/destroy": (*Set).destroyAgent, "agent/list": (*Set).agents, "agent/config": (*Set).configAgent,
		"settings/model": setsGuild("model", "model"), "settings/permissions": setsGuild("permissions", "profile"),
		"settings/show": (*Set).showSettings, "settings/validate-keys": (*Set).checkKeys,
		"access": (*Set).access, "stop": (*Set).stopHere, "cost": (*Set).costs,
		"status": (*Set).status, "tasks": (*Set).tasks, "queue": (*Set).queued,
		"thread/list": (*Set).threads, "thread/history": (*Set).threadHistory, "thread/fork": forWriters((*Set).forkWhole),
		forkName:        forWriters((*Set).forkHere),
		"context/clear": (*Set).clearContext, "context/save": forWriters((*Set).saveContext), "context/history": (*Set).savedContexts, "context/restore": (*Set).restoreContext,
		"why": (*Set).why, whyName: (*Set).why,
	}
}

// completers suggest values, by path.
func completers() map[string]completer {
	return map[string]completer{
		"help":       (*Set).proposeTopics,
		"agent/init": (*Set).proposeForAgent, "agent/destroy": (*Set).proposeForAgent, "agent/config": (*Set).proposeForAgent,
		"settings/model": (*Set).proposeForSettings, "settings/permissions": (*Set).proposeForSettings,
		"thread/history": (*Set).proposeThreads, "thread/fork": (*Set).proposeThreads,
		"context/clear": (*Set).proposeThreads, "context/restore": (*Set).proposeSaved,
	}
}
