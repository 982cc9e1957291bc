//go:build linux

// Package inside is what runs inside a sandbox as its process 1. It restricts itself, then
// starts one command after another as a socket tells it to, and removes what each one leaves
// behind. It is linked into a separate program, so it imports little.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Descriptors that process 1 is started with.
const (
	SocketFD  = 3 // receives its instructions
	ProgramFD = 4 // its own program
)

// proxyPort is where commands find the proxy, in their own network namespace.
const proxyPort = 3128

// Setup is the first message: what applies as long as the sandbox is up.
type Setup struct {
	Read      []string `json:"read,omitempty"`      // paths that may be read and run
	Write     []string `json:"write,omitempty"`     // paths that may be changed too
	Use       []string `json:"use,omitempty"`       // devices and /proc: may be written to, but nothing may be created
	Sweep     []string `json:"sweep,omitempty"`     // directories in memory, emptied before every command
	Processes int64    `json:"processes,omitempty"` // the most processes at a time
	Proxy     bool     `json:"proxy,omitempty"`     // listen where commands look for a proxy
	Gate      bool     `json:"gate,omitempty"`      // report every program that is started
}

// Ready answers Setup. Its descriptors are the proxy's listener and the gate's, if they were requested.
type Ready struct {
	Error  string `json:"error,omitempty"`  // why the sandbox cannot be used
	NoGate string `json:"noGate,omitempty"` // why it cannot be used with a gate
}

// NoGate says why programs cannot be reported.
type NoGate string

// Error implements error.
func (n NoGate) Error() string { return string(n) }

// Request is one command. Its descriptors are stdin, stdout and stderr.
type Request struct {
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// Ended answers Request when the command and everything it started have ended. With an error
// the sandbox must not be used again; without one, Cleaned follows.
type Ended struct {
	Error string `json:"error,omitempty"` // why it could not be started or waited for
	Code  int    `json:"code,omitempty"`  // exit status, in the shell's convention
	Left  int    `json:"left,omitempty"`  // processes that outlived the command
}

// Cleaned reports that what the command left is gone and the next command may come.
type Cleaned struct {
	Unclean string `json:"unclean,omitempty"` // what could not be removed; the sandbox must then not be used again
}

// Limits of messages. Short ones are sent directly, longer ones in a memory file.
const (
	short   = 32 << 10
	longest = 16 << 20
	inline  = 'i'
	inFile  = 'f'
)

// Encode encodes v as a message. If a file must be sent with it as the last
// one, Encode returns it, and the caller closes it.
func Encode(v any) (text []byte, file *os.File, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, nil, err
	}
	if len(body) <= short {
		return append([]byte{inline}, body...), nil, nil
	}
	if len(body) > longest {
		return nil, nil, fmt.Errorf("it has %d bytes, and %d are the most", len(body), longest)
	}
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("make a file in memory: %w", err)
	}
	file = os.NewFile(uintptr(fd), "command")
	if _, err := file.WriteAt(body, 0); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return []byte{inFile}, file, nil
}

// Decode decodes a message and returns the descriptors that belong to it.
func Decode(text []byte, fds []int, v any) ([]int, error) {
	switch {
	case len(text) > 0 && text[0] == inline:
		return fds, json.Unmarshal(text[1:], v)
	case len(text) == 0 || text[0] != inFile || len(fds) == 0:
		return fds, errors.New("a message that nobody sends")
	}
	last := len(fds) - 1
	file := os.NewFile(uintptr(fds[last]), "command")
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fds[:last], err
	}
	if info.Size() > longest {
		return fds[:last], errors.New("a message that is too long")
	}
	body := make([]byte, info.Size())
	if _, err := file.ReadAt(body, 0); err != nil {
		return fds[:last], err
	}
	return fds[:last], json.Unmarshal(body, v)
}

// BufferSize is enough for every message.
const BufferSize = short + 1

// MaxFiles is the most descriptors that are sent with a message.
const MaxFiles = 4

// socket is process 1's end of the connection.
type socket struct {
	fd  int
	buf []byte
	oob []byte
}

func (s *socket) send(v any, fds ...int) error {
	text, file, err := Encode(v)
	if err != nil {
		return err
	}
	if file != nil {
		defer func() { _ = file.Close() }()
		fds = append(fds, int(file.Fd()))
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	for {
		if err := unix.Sendmsg(s.fd, text, oob, nil, unix.MSG_NOSIGNAL); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// errClosed means that the server has ended or closed the connection.
var errClosed = errors.New("the socket was closed")

func (s *socket) receive(v any) (fds []int, err error) {
	if s.buf == nil {
		s.buf, s.oob = make([]byte, BufferSize), make([]byte, unix.CmsgSpace(MaxFiles*4))
	}
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(s.fd, s.buf, s.oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, errClosed
	}
	if fds, err = Files(s.oob[:oobn]); err != nil {
		return fds, err
	}
	return Decode(s.buf[:n], fds, v)
}

// Files returns the descriptors in a control message.
func Files(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range messages {
		if m.Header.Type == unix.SCM_RIGHTS {
			more, err := unix.ParseUnixRights(&m)
			if err != nil {
				return fds, err
			}
			fds = append(fds, more...)
		}
	}
	return fds, nil
}
