package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	b, problems := Load(Options{Dir: folder(t, map[string]string{"shared.yaml": `
access:
  role:admin: open
  discord/role:dev: standard
  discord:123: mine
  anyone: locked
editors: [local, "role:admin"]
channels:
  "1/*": locked
  ops: {permissions: mine}
profiles: {mine: {allow: ["tool:read:.*"]}}
`, "bots/x.yaml": "access:\n  role:admin: standard\n"}), Env: env(nil)}, Ask{Bot: "x"})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if want := []Grant{{"role:admin", "standard"}, {"discord/role:dev", "standard"}, {"discord:123", "mine"}, {"anyone", "locked"}}; !reflect.DeepEqual(b.Access, want) {
		t.Errorf("%v", b.Access)
	}
	if want := []Channel{{Name: "1/*", Permissions: "locked"}, {Name: "ops", Permissions: "mine"}}; !reflect.DeepEqual(b.Channels, want) || len(b.Editors) != 2 {
		t.Errorf("%v %v", b.Channels, b.Editors)
	}
	for _, c := range []struct{ text, want string }{
		{"access: {admin: open}", `shared.yaml:1:17: access: "admin" is nobody`},
		{"access: {\"role:\": open}", `access: "role:" is nobody`},
		{"access: {local: \"\"}", `access of local: there is no profile ""`},
		{"editors: [admin]", `editors: "admin" is nobody`},
		{"channels: {ops: \"\"}", `permissions of channel ops: there is no profile ""`},
		{"channels: {ops: guarde}", `did you mean "guarded"?`},
		{"channels: {ops: {permission: locked}}", `permissions`},
	} {
		_, problems := Load(Options{Dir: folder(t, map[string]string{"shared.yaml": c.text + "\n"}), Env: env(nil)}, Ask{})
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestChannelNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		of   []string
		want bool
	}{
		{"ops", []string{"1/2", "ops"}, true},
		{"1/*", []string{"1/2"}, true},
		{"*/2", []string{"1/2"}, true},
		{"1/*", []string{"11/2"}, false},
		{"o.s", []string{"ops"}, false},
		{"*", []string{"x\ny"}, true},
		{"", []string{"x"}, false},
		{"ops", nil, false},
	} {
		if got := (Channel{Name: c.name}).Means(c.of...); got != c.want {
			t.Errorf("%q for %v: %v", c.name, c.of, got)
		}
	}
}
