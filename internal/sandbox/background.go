package sandbox

import (
	"context"
	"time"
)

// Background is a command that keeps running after the process that started it has ended. It
// is handed to a separate process (package keep), so it is plain data.
type Background struct {
	Shell   string        `json:"shell"` // run like Command.Shell
	Dir     string        `json:"dir"`
	Env     []string      `json:"env,omitempty"` // added to the cleaned environment
	Call    string        `json:"call"`          // every child carries CHORUS_CALL=<Call>
	Timeout time.Duration `json:"timeout,omitempty"`
	// Isolated runs the command in its own sandbox. The remaining fields are about that.
	Isolated bool     `json:"isolated,omitempty"`
	Roots    []Root   `json:"roots,omitempty"`
	Folder   string   `json:"folder,omitempty"` // like Command.Folder
	Hide     []string `json:"hide,omitempty"`
	Home     string   `json:"home,omitempty"`
	OpenGit  bool     `json:"openGit,omitempty"`
	Judged   bool     `json:"judged,omitempty"` // the programs that it starts are judged
	// Hosts may be reached and Secrets may be sent to them. Setting
	// names the configuration key that adds hosts.
	Hosts   []string        `json:"hosts,omitempty"`
	Secrets []NetworkSecret `json:"secrets,omitempty"`
	Setting string          `json:"setting,omitempty"`
}

// NetworkSecret is a secret that the network inserts into requests, for certain hosts only.
type NetworkSecret struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Hosts []string `json:"hosts"`
}

// Backgrounder is an Executor whose commands can be left running.
type Backgrounder interface {
	// Background returns how a command would be left running. It
	// starts nothing, and isolates no less than Run.
	Background(ctx context.Context, cmd Command) (Background, error)
}

// Kept is a program that is left running.
type Kept interface {
	Program
	// Terminate asks the running processes to end, last started first, and
	// returns how many run. It does not ask a process twice.
	Terminate() int
	// Notes returns the sandbox's remarks once it has ended.
	Notes() []string
}
