package sandbox

import (
	"context"
	"time"
)

// Background is a command that goes on when the process that started it does not. It is handed to
// a process of its own (package keep), so it is plain data.
type Background struct {
	Shell   string        `json:"shell"` // run as Command.Shell is
	Dir     string        `json:"dir"`
	Env     []string      `json:"env,omitempty"` // added to the cleaned environment
	Call    string        `json:"call"`          // every child carries CHORUS_CALL=<Call>
	Timeout time.Duration `json:"timeout,omitempty"`
	// Isolated runs it in a sandbox of its own; the rest is about that.
	Isolated bool     `json:"isolated,omitempty"`
	Roots    []Root   `json:"roots,omitempty"`
	Folder   string   `json:"folder,omitempty"` // as Command.Folder
	Hide     []string `json:"hide,omitempty"`
	Home     string   `json:"home,omitempty"`
	OpenGit  bool     `json:"openGit,omitempty"`
	Judged   bool     `json:"judged,omitempty"` // the programs that it starts are judged
	// Hosts are what it reaches, Secrets what it may send there; Setting names the key that adds to them.
	Hosts   []string        `json:"hosts,omitempty"`
	Secrets []NetworkSecret `json:"secrets,omitempty"`
	Setting string          `json:"setting,omitempty"`
}

// NetworkSecret is a secret that the network puts in on the way, for certain hosts only.
type NetworkSecret struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Hosts []string `json:"hosts"`
}

// Backgrounder is an Executor whose commands can be left running.
type Backgrounder interface {
	// Background says how a command would be left running; nothing is started. It isolates no less than Run.
	Background(ctx context.Context, cmd Command) (Background, error)
}

// Kept is a program that is left running.
type Kept interface {
	Program
	// Terminate asks the processes that run to end, those that were started last first; what was asked before is
	// not asked again. It says how many run.
	Terminate() int
	// Notes are the sandbox's remarks, once it has ended.
	Notes() []string
}
