package commands

import (
	"chorus/internal/platform"
)

// The entries in a message's menu.
const (
	forkName = "Fork from here"
	whyName  = "Why this answer?"
)

// list is all commands, in the order in which platforms
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
	thread := completed("thread", "The conversation: its id, or a beginning of it")
	all := []platform.Command{
		anywhere(look(one("help", "What I can do here and how to reach me", completed("topic", "More about some of the commands")))),
		anywhere(talk(platform.Command{Name: "ask", Description: "Ask me something, also in channels where I do not answer by myself", Speaks: true, Options: []platform.Option{
			{Name: "prompt", Description: "What you want to know or have done", Required: true, MaxLength: maxPrompt}, {Name: "file", Description: "Something to look at", Kind: platform.Upload}}})),
		{Name: "agent", Description: "Make agents with channels of their own, change and end them", GuildOnly: true, Needs: platform.ManageChannels, Sub: []platform.Command{
			one("init", "Make an agent with a channel of its own", required(text("name", "2 to 32 of a-z, 0-9 and hyphens; also the channel's")),
				completed("model", "provider/model; without it, the server's"), completed("permissions", "What it may do; without it, the server's"), text("prompt", "Who it is")),
			one("destroy", "End an agent and its channel; you are asked again", required(completed("name", "Which agent")), flag("keep_files", "Keep its folder, in .trash")),
			one("list", "Which agents there are"),
			one("config", "Show or change what holds for an agent", required(completed("key", "Which setting")),
				completed("value", "What it shall be; default takes the agent's own away; without it, what it is"), completed("name", "Which agent; without it, the one that answers here")),
		}},
		{Name: "settings", Description: "What holds for the agents of this server", GuildOnly: true, Needs: platform.ManageGuild, Sub: []platform.Command{
			one("model", "The model of agents that have none of their own", required(completed("model", "provider/model; default: the global one"))),
			one("permissions", "What agents may do that have no profile of their own, and new ones", required(completed("profile", "Its name; default: the global one"))),
			one("show", "What is set, and where it comes from"),
			one("validate-keys", "Ask the vendors whether they accept our keys"),
		}},
		look(one("access", "Who may do what here, and why", platform.Option{Name: "person", Description: "Somebody else; for those who may manage the server", Kind: platform.Person})),
		talk(one("stop", "Stop what runs in this channel", flag("all", "Also refuse what waits"))),
		talk(one("steer", "Say something to the run that is on", required(text("message", "What to say")))),
		anywhere(look(one("cost", "What you spent; for those who may manage the server, what all did here", text("since", "24h, 7d, today, month, all or a date; without it 24h")))),
		look(one("status", "Who answers here and how, what runs, pending approvals, what you spent today")),
		look(one("tasks", "What runs and what waits in this channel, with a button to stop each")),
		look(one("queue", "Who waits here for an answer, and at which place")),
		{Name: "thread", Description: "The conversations of this channel", Sub: []platform.Command{
			one("list", "Which there are, the newest first"),
			one("kill", "Stop one, with everything that waits for it", required(thread)),
			one("history", "What one did, step by step, and how long each took", thread),
			one("fork", "Go on with a copy of one, as a conversation of its own", required(thread)),
		}},
		talk(platform.Command{Name: forkName, Menu: true}),
		{Name: "context", Description: "What the agent here is shown", Sub: []platform.Command{
			one("clear", "Begin anew: what was said so far is not shown to the agent any more", completed("thread", "Only this conversation"), flag("stop", "Stop what runs first, and clear it too")),
			one("save", "Keep what was said, with a summary; nothing is cleared", text("description", "What you will look for it by")),
			one("history", "What was kept here"),
			one("restore", "Put what was kept in place of what is there now", required(completed("session_id", "The id, or its beginning"))),
		}},
		look(one("why", "How an answer came about: who asked, what was allowed and read, what it cost", text("message", "A link to the answer, or its id; without it the last one here"))),
		look(platform.Command{Name: whyName, Menu: true}),
	}
	for i := range all {
		exemplify(&all[i], all[i].Name)
	}
	return all
}

// maxPrompt is how long a question may be: with the link to its file it must fit into a message.
const maxPrompt = 1500

// examples are the options of commands as somebody would type them, by path.
var examples = map[string]string{
	"help": "topic:context", "ask": "prompt:What changed since yesterday?",
	"agent/init": "name:scribe prompt:You write things down.", "agent/destroy": "name:scribe keep_files:True", "agent/config": "key:temperature value:0.3",
	"settings/model": "model:anthropic/claude-sonnet-4-5", "settings/permissions": "profile:guarded",
	"access": "person:@bob", "stop": "all:True", "steer": "message:Leave the tests alone", "cost": "since:7d",
	"thread/kill": "thread:1402", "thread/history": "thread:1402", "thread/fork": "thread:1402",
	"context/clear": "stop:True", "context/save": "description:before the change", "context/restore": "session_id:01K9",
	"why": "message:1402",
}

// exemplify gives a command and those below it their examples.
func exemplify(c *platform.Command, path string) {
	for i := range c.Sub {
		exemplify(&c.Sub[i], path+"/"+c.Sub[i].Name)
	}
	if len(c.Sub) == 0 && !c.Menu {
		c.Example = examples[path]
	}
}

// handlers carry out the commands, by path.
func handlers() map[string]handler {
	return map[string]handler{
		"help": (*Set).help, "ask": forWriters((*Set).ask),
		"agent/init": (*Set).initAgent, "agent/destroy": (*Set).destroyAgent, "agent/list": (*Set).agents, "agent/config": (*Set).configAgent,
		"settings/model": setsGuild("model", "model"), "settings/permissions": setsGuild("permissions", "profile"),
		"settings/show": (*Set).showSettings, "settings/validate-keys": (*Set).checkKeys,
		"access": (*Set).access, "stop": (*Set).stopHere, "steer": forWriters((*Set).steerHere), "cost": (*Set).costs,
		"status": (*Set).status, "tasks": (*Set).tasks, "queue": (*Set).queued,
		"thread/list": (*Set).threads, "thread/kill": (*Set).killOne, "thread/history": (*Set).threadHistory, "thread/fork": forWriters((*Set).forkWhole),
		forkName:        forWriters((*Set).forkHere),
		"context/clear": (*Set).clearContext, "context/save": forWriters((*Set).saveContext), "context/history": (*Set).savedContexts, "context/restore": (*Set).restoreContext,
		"why": (*Set).why, whyName: (*Set).why,
	}
}

// completers propose values, by path.
func completers() map[string]completer {
	return map[string]completer{
		"help":       (*Set).proposeTopics,
		"agent/init": (*Set).proposeForAgent, "agent/destroy": (*Set).proposeForAgent, "agent/config": (*Set).proposeForAgent,
		"settings/model": (*Set).proposeForSettings, "settings/permissions": (*Set).proposeForSettings,
		"thread/kill": (*Set).proposeThreads, "thread/history": (*Set).proposeThreads, "thread/fork": (*Set).proposeThreads,
		"context/clear": (*Set).proposeThreads, "context/restore": (*Set).proposeSaved,
	}
}
