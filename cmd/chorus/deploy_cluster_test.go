package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// Several nodes are shipped as files too: a compose file, a proxy's, and manifests for Kubernetes. Nobody here has a docker daemon or a
// cluster, so the files are held to the program and to each other, and to nginx where it is installed.

func TestClusterComposeFitsTheProgram(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Image          string
			StopGrace      string `yaml:"stop_grace_period"`
			Ports, Volumes []string
			Environment    map[string]string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "deploy/cluster/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	proxy := deployed(t, "deploy/cluster/nginx.conf")
	nodes := 0
	for name, s := range file.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, "./") {
				deployed(t, filepath.Join("deploy/cluster", from))
			} else if _, ok := file.Volumes[from]; !ok {
				t.Errorf("%s: the volume %s is not declared", name, from)
			}
		}
		if s.Image != "chorus" {
			continue
		}
		nodes++
		if len(s.Ports) > 0 {
			t.Errorf("%s can be reached past the proxy: %v", name, s.Ports)
		}
		if !strings.Contains(proxy, "server "+name+":8420 ") {
			t.Errorf("the proxy does not know %s", name)
		}
		if !slices.Contains(s.Volumes, name+":/data") || !slices.Contains(s.Volumes, "work:/work") {
			t.Errorf("%s: volumes %v: each node has a home of its own, and all have one folder to work in", name, s.Volumes)
		}
		if !strings.HasPrefix(s.Environment["CHORUS_DATABASE_URL"], "postgres://") {
			t.Errorf("%s has no database", name)
		}
		for variableName := range s.Environment {
			variable(t, "deploy/cluster/compose.yaml", variableName)
		}
		if grace, err := time.ParseDuration(s.StopGrace); err != nil || grace < 30*time.Second {
			t.Errorf("%s: stop_grace_period %q is too short to hand over: %v", name, s.StopGrace, err)
		}
	}
	if nodes != 3 {
		t.Errorf("%d nodes, want 3", nodes)
	}
	if ports := file.Services["proxy"].Ports; !slices.Equal(ports, []string{"127.0.0.1:8420:8420"}) {
		t.Errorf("ports %v: without TLS nobody else may reach it", ports)
	}
}

func TestNginxAcceptsTheProxy(t *testing.T) {
	t.Parallel()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("no nginx here; the configuration was not tried")
		}
	}
	dir := t.TempDir()
	text := deployed(t, "deploy/cluster/nginx.conf")
	for _, node := range []string{"node1", "node2", "node3"} {
		text = strings.ReplaceAll(text, "server "+node, "server 127.0.0.1") // nginx wants to know them
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte("pid "+filepath.Join(dir, "pid")+";\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), nginx, "-t", "-c", file).CombinedOutput(); err != nil {
		t.Errorf("nginx: %v\n%s", err, out)
	}
}

func TestManifestsFitTheProgram(t *testing.T) {
	t.Parallel()
	type probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	}
	type manifest struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			ServiceName string `yaml:"serviceName"`
			Replicas    int
			Template    struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Args  []string
						Ports []struct {
							Name string
							Port int `yaml:"containerPort"`
						}
						Env       []struct{ Name, Value string }
						Liveness  probe `yaml:"livenessProbe"`
						Readiness probe `yaml:"readinessProbe"`
						Mounts    []struct {
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					}
				}
			}
		}
	}
	services, set := []string{}, manifest{}
	for _, text := range strings.Split(deployed(t, "deploy/kubernetes/chorus.yaml"), "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case "Service":
			services = append(services, m.Metadata.Name)
		case "StatefulSet":
			set = m
		}
	}
	pod := set.Spec.Template.Spec
	if len(pod.Containers) != 1 || set.Spec.Replicas != 3 {
		t.Fatalf("%d containers in %d pods", len(pod.Containers), set.Spec.Replicas)
	}
	c := pod.Containers[0]
	understood(t, "chorus.yaml", c.Args)
	if !slices.Contains(services, set.Spec.ServiceName) {
		t.Errorf("the pods have their names from %q, which is not there: %v", set.Spec.ServiceName, services)
	}
	if pod.Grace < 30 {
		t.Errorf("%d seconds are too short to hand over", pod.Grace)
	}
	if c.Liveness.HTTPGet.Path != "/healthz" || c.Readiness.HTTPGet.Path != "/readyz" {
		t.Errorf("probes ask %q and %q", c.Liveness.HTTPGet.Path, c.Readiness.HTTPGet.Path)
	}
	env := map[string]string{}
	for i, e := range c.Env {
		if !slices.ContainsFunc(c.Env[i:], func(later struct{ Name, Value string }) bool { return strings.Contains(later.Value, "$("+e.Name+")") }) {
			variable(t, "chorus.yaml", e.Name)
		}
		env[e.Name] = e.Value
	}
	if len(c.Mounts) != 1 || c.Mounts[0].MountPath != env["CHORUS_HOME"] {
		t.Errorf("the home %q is not kept: %v", env["CHORUS_HOME"], c.Mounts)
	}
	if len(c.Ports) != 1 || c.Ports[0].Port != 8420 || env["CHORUS_ADDR"] != "0.0.0.0:8420" {
		t.Errorf("it listens at %q, and its port is %v", env["CHORUS_ADDR"], c.Ports)
	}
}
