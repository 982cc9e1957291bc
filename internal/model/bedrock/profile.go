package bedrock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// profiles are the sections of the shared files: by profile, and as
// "sso-session x" those that profiles refer to.
type profiles map[string]map[string]string

// readProfiles reads both shared files; a missing one says nothing. What stands in
// the credentials file is stronger.
func readProfiles(getenv func(string) string) profiles {
	home := getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir() // without a home there are no files in it
	}
	all := profiles{}
	for i, path := range []string{
		first(getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
		first(getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")),
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		all.parse(string(data), i == 0)
	}
	return all
}

// parse reads one file. In the config file profiles are called "profile x".
func (all profiles) parse(text string, config bool) {
	var section map[string]string
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if bare == "" || bare[0] == '#' || bare[0] == ';' {
			continue
		}
		if bare[0] == '[' {
			name, _, _ := strings.Cut(bare[1:], "]")
			section = all.section(strings.Join(strings.Fields(name), " "), config)
			continue
		}
		key, value, ok := strings.Cut(bare, "=")
		if !ok || section == nil || line[0] == ' ' || line[0] == '\t' { // an indented line belongs to a service's settings
			continue
		}
		for _, comment := range []string{" #", " ;", "\t#", "\t;"} {
			value, _, _ = strings.Cut(value, comment)
		}
		section[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
}

// section finds or makes what a heading names; nil: it is none of ours.
func (all profiles) section(heading string, config bool) map[string]string {
	if config {
		name, is := strings.CutPrefix(heading, "profile ")
		if !is && heading != "default" && !strings.HasPrefix(heading, "sso-session ") {
			return nil
		}
		heading = name
	}
	if all[heading] == nil {
		all[heading] = map[string]string{}
	}
	return all[heading]
}

// fromProfile gives a profile's keys, and those of the role it asks for. None at all
// when it names no source. seen are the profiles on the way here.
func (c *chain) fromProfile(ctx context.Context, name string, seen []string) (aws.Credentials, error) {
	p, ok := c.profiles()[name]
	switch {
	case !ok:
		return aws.Credentials{}, fmt.Errorf("there is no profile %q", name)
	case slices.Contains(seen, name):
		return aws.Credentials{}, fmt.Errorf("the profiles refer to each other: %s", strings.Join(append(seen, name), ", "))
	}
	if file := p["web_identity_token_file"]; file != "" {
		return c.webIdentity(ctx, file, p["role_arn"], p["role_session_name"])
	}
	keys, err := c.source(ctx, name, p, append(seen, name))
	if err != nil || p["role_arn"] == "" {
		return keys, err
	}
	if !keys.HasKeys() {
		return aws.Credentials{}, fmt.Errorf("role_arn needs a source_profile or a credential_source")
	}
	return c.assumeRole(ctx, keys, p)
}

// source gives the keys that a profile starts from.
func (c *chain) source(ctx context.Context, name string, p map[string]string, seen []string) (aws.Credentials, error) {
	role := p["role_arn"] != ""
	switch from := p["source_profile"]; {
	case role && from != "" && from != name:
		return c.fromProfile(ctx, from, seen)
	case role && p["credential_source"] != "":
		return c.credentialSource(ctx, p["credential_source"])
	case p["aws_access_key_id"] != "" && p["aws_secret_access_key"] != "":
		return aws.Credentials{AccessKeyID: p["aws_access_key_id"], SecretAccessKey: p["aws_secret_access_key"], SessionToken: p["aws_session_token"]}, nil
	case p["sso_account_id"] != "":
		return c.sso(ctx, name, p)
	case p["credential_process"] != "":
		return c.process(ctx, p["credential_process"])
	}
	return aws.Credentials{}, nil
}

func (c *chain) credentialSource(ctx context.Context, source string) (aws.Credentials, error) {
	switch source {
	case "Environment":
		return c.environment(), nil
	case "EcsContainer":
		return c.container(ctx)
	case "Ec2InstanceMetadata":
		return c.machine(ctx)
	default:
		return aws.Credentials{}, fmt.Errorf("no credential_source %q; there are Environment, EcsContainer and Ec2InstanceMetadata", source)
	}
}
