package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// network is a switch with a network namespace behind each of its ports, as machines are: what is pulled out of it sends and hears nothing, and no side is told.
type network struct {
	t      testing.TB
	bridge string
	subnet string // "10.x.y."
	ports  []*port
}

// port is a place at the switch.
type port struct {
	network   *network
	namespace string
	plug      string // the end that is in the switch
}

const namespaces = "/run/netns"

// newNetwork makes a switch; an error says why this machine cannot have one.
func newNetwork(t testing.TB) (*network, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can make network namespaces")
	}
	clearNetworks()
	pid := os.Getpid()
	w := &network{t: t, bridge: fmt.Sprintf("chaos%d", pid), subnet: fmt.Sprintf("10.%d.%d.", 64+pid%128, pid/128%256)}
	t.Cleanup(w.remove)
	for _, line := range []string{
		"link add " + w.bridge + " type bridge",
		"addr add " + w.addr() + "/24 dev " + w.bridge,
		"link set " + w.bridge + " up",
	} {
		if err := ip(line); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// addr is the address of this machine at the switch.
func (w *network) addr() string { return w.subnet + "1" }

// plugIn makes a machine and plugs it in.
func (w *network) plugIn() (*port, error) {
	i := len(w.ports) + 1
	p := &port{network: w, namespace: fmt.Sprintf("%s-%d", w.bridge, i), plug: fmt.Sprintf("%sp%d", w.bridge, i)}
	w.ports = append(w.ports, p)
	for _, line := range []string{
		"netns add " + p.namespace,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", p.plug, p.namespace),
		fmt.Sprintf("link set %s master %s up", p.plug, w.bridge),
		fmt.Sprintf("-n %s addr add %s%d/24 dev eth0", p.namespace, w.subnet, i+1),
		fmt.Sprintf("-n %s link set eth0 up", p.namespace),
		fmt.Sprintf("-n %s link set lo up", p.namespace),
	} {
		if err := ip(line); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// remove removes everything; links end with their namespace.
func (w *network) remove() {
	for _, p := range w.ports {
		_ = ip("link del " + p.plug)
		_ = ip("netns del " + p.namespace)
	}
	_ = ip("link del " + w.bridge)
}

// clearNetworks removes what test programs left that were killed.
func clearNetworks() {
	found, _ := filepath.Glob("/sys/class/net/chaos*")
	left, _ := filepath.Glob(namespaces + "/chaos*-*")
	for _, path := range append(found, left...) {
		name := filepath.Base(path)
		of, _, _ := strings.Cut(strings.TrimPrefix(name, "chaos"), "-")
		of, _, _ = strings.Cut(of, "p")
		pid, err := strconv.Atoi(of)
		if err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		if filepath.Dir(path) == namespaces {
			_ = ip("netns del " + name)
		} else {
			_ = ip("link del " + name)
		}
	}
}

// within is how a program is started on the machine.
func (p *port) within() []string { return []string{"ip", "netns", "exec", p.namespace} }

// cut pulls the plug, heal puts it back.
func (p *port) cut() error { return ip("link set " + p.plug + " nomaster") }

func (p *port) heal() error { return ip("link set " + p.plug + " master " + p.network.bridge) }

// dial connects to something on the machine as one who sits at it: the plug does not matter.
func (p *port) dial(ctx context.Context, kind, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine, and with it its namespace
		var to int
		if to, err = unix.Open(filepath.Join(namespaces, p.namespace), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		err = unix.Setns(to, unix.CLONE_NEWNET)
		_ = unix.Close(to)
		if err == nil {
			conn, err = (&net.Dialer{}).DialContext(ctx, kind, address)
		}
	}()
	<-done
	return conn, err
}

func ip(line string) error {
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}
