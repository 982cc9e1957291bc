package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Schedules implements operations on schedules.
type Schedules interface {
	AddSchedule(context.Context, operation.Caller, NewSchedule) (Schedule, error)
	PreviewSchedule(context.Context, operation.Caller, ScheduleTimes) (SchedulePreview, error)
	ListSchedules(context.Context, operation.Caller, operation.None) (operation.List[Schedule], error)
	GetSchedule(context.Context, operation.Caller, ScheduleRef) (Schedule, error)
	PauseSchedule(context.Context, operation.Caller, ScheduleRef) (Schedule, error)
	ResumeSchedule(context.Context, operation.Caller, ScheduleRef) (Schedule, error)
	RemoveSchedule(context.Context, operation.Caller, ScheduleRef) (operation.None, error)
}

// ScheduleTimes says when something is due.
type ScheduleTimes struct {
	When string `json:"when" minLen:"1" maxLen:"200" slashDoc:"such as 'every weekday at 9', 'in 20 minutes', '0 9 * * 1-5' or '2026-12-24 18:00'" doc:"when: plain words, cron fields or an instant, such as 'every weekday at 9', '0 9 * * 1-5', '2026-12-24 18:00' or 'now'"`
	Zone string `json:"zone,omitempty" maxLen:"64" cli:"zone,z" doc:"time zone, such as Europe/Berlin; left out: the server's"`
}

// NewSchedule describes a new schedule.
type NewSchedule struct {
	When      string `json:"when" minLen:"1" maxLen:"200" slashDoc:"such as 'every weekday at 9', 'in 20 minutes', '0 9 * * 1-5' or '2026-12-24 18:00'" doc:"when: plain words, cron fields or an instant, such as 'every weekday at 9', '0 9 * * 1-5', '2026-12-24 18:00' or 'now'"`
	Text      string `json:"text" minLen:"1" maxLen:"100000" doc:"the message to the agent"`
	Zone      string `json:"zone,omitempty" maxLen:"64" cli:"zone,z" doc:"time zone, such as Europe/Berlin; left out: the server's"`
	Session   string `json:"session,omitempty" maxLen:"1024" noun:"session" context:"session" doc:"the session to post it in; left out: a new one, or in a chat the current one"`
	Agent     string `json:"agent,omitempty" maxLen:"64" noun:"agent" slash:"-" doc:"who answers in the new session, or in the channel"`
	Adapter   string `json:"adapterId,omitempty" maxLen:"64" cli:"adapter" slash:"-" doc:"the chat platform of the channel, such as discord"`
	Channel   string `json:"channelId,omitempty" maxLen:"256" cli:"channel" slash:"-" doc:"instead of a session: the id of a channel; each time, the text is posted there and the agent answers in a thread on it"`
	Workspace string `json:"workspacePath,omitempty" maxLen:"4096" cli:"dir" slash:"-" doc:"the folder the new session works in; left out: its own"`
	CatchUp   string `json:"catchUp,omitempty" enum:"skip,once,all" slashDoc:"what happens to times that passed while the server was off; left out: once" doc:"what happens to times that passed while the server was off: skip, once (the newest, the default) or all"`
	Jitter    string `json:"jitter,omitempty" maxLen:"32" doc:"start up to this much later, such as 5m, so that not all start at once"`
	Key       string `json:"-" key:"true"`
}

// SchedulePreview shows how a time in words is understood.
type SchedulePreview struct {
	Spec string      `json:"spec"`
	Zone string      `json:"zone"`
	Next []time.Time `json:"next"` // five at most
}

// Schedule sends a message to an agent at set times.
type Schedule struct {
	ID        string        `json:"id"`
	When      string        `json:"when"` // as typed
	Spec      string        `json:"spec"` // as understood
	Zone      string        `json:"zone"`
	Text      string        `json:"text"`
	Owner     string        `json:"owner"` // whose rights and money it uses
	OwnerName string        `json:"ownerName"`
	Agent     string        `json:"agent"`
	SessionID string        `json:"sessionId"`           // "": it has a channel
	Kind      string        `json:"kind,omitempty"`      // timer or self_activation: an agent set it for itself
	Adapter   string        `json:"adapterId,omitempty"` // of the channel
	Channel   string        `json:"channelId,omitempty"`
	CatchUp   string        `json:"catchUp"`
	Jitter    string        `json:"jitter,omitempty"`
	Status    string        `json:"status"` // active, paused, over, or deleted with its session
	Due       time.Time     `json:"due,omitzero"`
	Next      []time.Time   `json:"next,omitempty"` // five at most
	Runs      []ScheduleRun `json:"runs,omitempty"` // newest first
	File      string        `json:"file,omitempty"` // its event file
	CreatedAt time.Time     `json:"createdAt"`
}

// ScheduleRun is the result of a due time.
type ScheduleRun struct {
	Due       time.Time `json:"due"`
	State     string    `json:"state"`               // said, refused or skipped
	Outcome   string    `json:"outcome,omitempty"`   // how the run ended: done, silent (it had nothing to say), failed, budget, denied …
	SessionID string    `json:"sessionId,omitempty"` // the thread that was opened for it
	Seq       int64     `json:"seq,omitempty"`       // of the prompt in the session
	Why       string    `json:"why,omitempty"`
	At        time.Time `json:"at"`
}

// ScheduleRef names a schedule.
type ScheduleRef struct {
	ID string `json:"id" minLen:"1" maxLen:"64" noun:"schedule" doc:"the schedule's id"`
}

// The operations on schedules.
var (
	AddSchedule = operation.New(operation.Info{Name: "schedule.add", Help: "Send a message to an agent at set times", Scope: operation.Chat, Effect: operation.Creates,
		Doc: "It runs with your rights and your money, as they are when it is due. A time that the clocks skip runs right after, a time\n" +
			"that occurs twice runs once. `chorus schedule next` shows how words are understood; `chorus serve` runs schedules.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict, operation.Unavailable},
		HTTP:   []operation.HTTP{{Route: "POST /api/schedules", ID: "addSchedule", Body: "NewSchedule", Status: 201}},
		CLI: []operation.CLI{{Words: "schedule add", Args: "WHEN TEXT",
			Example: "  chorus schedule add 'every weekday at 9' 'What changed in this repository since yesterday?' --dir .\n" +
				"  chorus schedule add 'in 20 minutes' 'Remind me of the oven' --session 01J9\n" +
				"  chorus schedule add 'every monday at 9' 'What did we finish last week?' --adapter discord --channel 1234567890\n" +
				"  chorus schedule add '0 9 1 * *' 'Write the monthly report' --zone Europe/Berlin --catch-up skip"}},
		Slash: []operation.Slash{{Words: "schedule add", Options: "when text zone session catchUp", First: "schedule.next", Help: "Send a message to the agent here at set times; the next dates are shown first",
			Example: "when:every weekday at 9 text:What is new? zone:Europe/Berlin"}},
		Tool: "schedule_add", Page: "/schedules",
		Done: "schedule {id}: {spec} ({zone}), next {due}"}, Schedules.AddSchedule)

	PreviewSchedule = operation.New(operation.Info{Name: "schedule.next", Help: "Show how a time in words is understood, with the next five dates", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/schedules/next", ID: "previewSchedule"}},
		CLI:  []operation.CLI{{Words: "schedule next", Args: "WHEN", Example: "  chorus schedule next 'every weekday at 9' --zone America/New_York"}},
		Slash: []operation.Slash{{Words: "schedule next", Help: "Show how a time in words is understood, with the next five dates", Example: "when:every weekday at 9",
			Show: "`{spec}` ({zone}), next:\n{next:list}"}},
		Tool: "schedule_next", Page: "/schedules"}, Schedules.PreviewSchedule)

	ListSchedules = operation.New(operation.Info{Name: "schedule.list", Help: "List schedules, the newest first", Scope: operation.Read,
		HTTP:  []operation.HTTP{{Route: "GET /api/schedules", ID: "listSchedules"}},
		CLI:   []operation.CLI{{Words: "schedule list"}},
		Slash: []operation.Slash{{Words: "schedule list", Show: "- **{when:60}** {status}, next {due:minute}: {text:100} (`{id}`)"}},
		Tool:  "schedule_list", Page: "/schedules", Label: "{when:30}, {status}: {text:40}",
		Columns: "ID=id | WHEN=when:40 | DUE=due:minute | STATUS=status | AGENT=agent | OWNER=ownerName:30 | TEXT=text:60",
		Empty:   "there are no schedules; add one: chorus schedule add 'every weekday at 9' 'What is new?'"}, Schedules.ListSchedules)

	GetSchedule = operation.New(operation.Info{Name: "schedule.get", Help: "Show a schedule with its next dates and last runs", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/schedules/{id}", ID: "getSchedule"}},
		CLI:    []operation.CLI{{Words: "schedule show", Args: "ID"}},
		Slash: []operation.Slash{{Words: "schedule show", Example: "id:01K9",
			Show: "**{when}** {status} (`{spec}`, {zone})\n{text:300}\nin session `{sessionId}`\n{next:list}\n{runs:list}"}},
		Tool: "schedule_get", Page: "/schedules"}, Schedules.GetSchedule)

	PauseSchedule = operation.New(operation.Info{Name: "schedule.pause", Help: "Pause a schedule until it is resumed", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/schedules/{id}/pause", ID: "pauseSchedule"}},
		CLI:    []operation.CLI{{Words: "schedule pause", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "schedule pause", Example: "id:01K9"}},
		Tool:   "schedule_pause", Done: "schedule {id} is paused"}, Schedules.PauseSchedule)

	ResumeSchedule = operation.New(operation.Info{Name: "schedule.resume", Help: "Resume a paused schedule from now on", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/schedules/{id}/resume", ID: "resumeSchedule"}},
		CLI:    []operation.CLI{{Words: "schedule resume", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "schedule resume", Example: "id:01K9"}},
		Tool:   "schedule_resume", Done: "schedule {id} is resumed, next {due}"}, Schedules.ResumeSchedule)

	RemoveSchedule = operation.New(operation.Info{Name: "schedule.remove", Help: "Remove a schedule; its messages are kept", Scope: operation.Chat, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/schedules/{id}", ID: "removeSchedule"}},
		CLI:    []operation.CLI{{Words: "schedule remove", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "schedule remove", Example: "id:01K9"}},
		Tool:   "schedule_remove", Done: "schedule {id} removed"}, Schedules.RemoveSchedule)
)

func schedules() []operation.Any {
	return []operation.Any{AddSchedule, PreviewSchedule, ListSchedules, GetSchedule, PauseSchedule, ResumeSchedule, RemoveSchedule}
}
