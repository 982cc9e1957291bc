package bedrock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

const (
	// chainTime is how long all the looking may take.
	chainTime = 15 * time.Second
	// machineTime is how long the machine's metadata service may take: where there is
	// none nobody answers.
	machineTime = 3 * time.Second
	// early is how long before their end keys are replaced.
	early = 2 * time.Minute
)

// chain finds keys in the order of the vendor's own libraries, whose whole chain
// costs every start of the program more than this does (docs/decisions).
type chain struct {
	opts Options
	http *http.Client
	turn chan struct{} // held by the one that looks

	mu    sync.Mutex
	have  aws.Credentials
	files profiles // nil: not read yet
}

func newChain(opts Options, client *http.Client) *chain {
	return &chain{opts: opts, http: client, turn: make(chan struct{}, 1)}
}

// keys gives the fixed keys, or the ones found before while they are good, or looks.
func (c *chain) keys(ctx context.Context) (aws.Credentials, error) {
	if c.opts.AccessKey != "" || c.opts.SecretKey != "" {
		if c.opts.AccessKey == "" || c.opts.SecretKey == "" {
			return aws.Credentials{}, errors.New("an access key and a secret key belong together, and one is missing")
		}
		return aws.Credentials{AccessKeyID: c.opts.AccessKey, SecretAccessKey: c.opts.SecretKey, SessionToken: c.opts.SessionToken}, nil
	}
	if keys, ok := c.kept(); ok {
		return keys, nil
	}
	ctx, cancel := context.WithTimeout(ctx, chainTime)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return aws.Credentials{}, ctx.Err()
	}
	if keys, ok := c.kept(); ok { // somebody else has just found them
		return keys, nil
	}
	keys, err := c.look(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have = keys
	return keys, nil
}

func (c *chain) kept() (aws.Credentials, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	good := c.have.HasKeys() && (!c.have.CanExpire || time.Until(c.have.Expires) > early)
	return c.have, good
}

// forget makes the next call look again, in the files too.
func (c *chain) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have, c.files = aws.Credentials{}, nil
}

// region is the one given, the environment's, or the profile's.
func (c *chain) region() string {
	if r := first(c.opts.Region, c.opts.Getenv("AWS_REGION"), c.opts.Getenv("AWS_DEFAULT_REGION")); r != "" {
		return r
	}
	return c.profiles()[c.profile()]["region"]
}

func (c *chain) profile() string {
	return first(c.opts.Profile, c.opts.Getenv("AWS_PROFILE"), "default")
}

func (c *chain) profiles() profiles {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = readProfiles(c.opts.Getenv)
	}
	return c.files
}

// look goes through the places: environment, profile, container, machine.
func (c *chain) look(ctx context.Context) (aws.Credentials, error) {
	if c.opts.Profile == "" {
		if keys := c.environment(); keys.HasKeys() {
			return keys, nil
		}
		if file := c.opts.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"); file != "" {
			return c.webIdentity(ctx, file, c.opts.Getenv("AWS_ROLE_ARN"), c.opts.Getenv("AWS_ROLE_SESSION_NAME"))
		}
	}
	name := c.profile()
	if _, there := c.profiles()[name]; there {
		keys, err := c.fromProfile(ctx, name, nil)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("profile %s: %w", name, err)
		}
		if keys.HasKeys() {
			return keys, nil
		}
	} else if name != "default" {
		return aws.Credentials{}, fmt.Errorf("there is no profile %q in the AWS configuration", name)
	}
	if keys, err := c.container(ctx); err != nil || keys.HasKeys() {
		return keys, err
	}
	return c.machine(ctx)
}

// environment gives the keys that stand in variables, if they do.
func (c *chain) environment() aws.Credentials {
	env := c.opts.Getenv
	keys := aws.Credentials{
		AccessKeyID:     first(env("AWS_ACCESS_KEY_ID"), env("AWS_ACCESS_KEY")),
		SecretAccessKey: first(env("AWS_SECRET_ACCESS_KEY"), env("AWS_SECRET_KEY")),
		SessionToken:    first(env("AWS_SESSION_TOKEN")),
	}
	return keys
}

// container asks the service that ECS and EKS name in the environment.
func (c *chain) container(ctx context.Context) (aws.Credentials, error) {
	env := c.opts.Getenv
	address := env("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = "http://169.254.170.2" + path
	}
	if address == "" {
		return aws.Credentials{}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && !local(u.Hostname()) {
		return aws.Credentials{}, fmt.Errorf("the container's credentials are only asked for over https or on this machine, not at %s", u.Redacted())
	}
	token := env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("read the container's token: %w", err)
		}
		token = strings.TrimSpace(string(data))
	}
	p := endpointcreds.New(address, func(o *endpointcreds.Options) {
		o.HTTPClient, o.AuthorizationToken, o.Retryer = direct(), token, aws.NopRetryer{}
	})
	return retrieve(ctx, p, "the container's credentials")
}

// direct is a client that no proxy hears: these services stand on the machine, and
// what they say is secret.
func direct() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// local reports whether a host is this machine or one of the two that containers see.
func local(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23")
}

// machine asks the metadata service of an EC2 machine.
func (c *chain) machine(ctx context.Context) (aws.Credentials, error) {
	env := c.opts.Getenv
	if strings.EqualFold(env("AWS_EC2_METADATA_DISABLED"), "true") {
		return aws.Credentials{}, errors.New("neither the environment nor a profile nor a container has any")
	}
	ctx, cancel := context.WithTimeout(ctx, machineTime)
	defer cancel()
	client := imds.New(imds.Options{
		HTTPClient: direct(), Endpoint: env("AWS_EC2_METADATA_SERVICE_ENDPOINT"), Retryer: aws.NopRetryer{}, ClientEnableState: imds.ClientEnabled,
	})
	keys, err := retrieve(ctx, ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = client }), "the machine's role")
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("neither the environment nor a profile nor a container has any, and %w", err)
	}
	return keys, nil
}

// process runs the command that a profile names.
func (c *chain) process(ctx context.Context, command string) (aws.Credentials, error) {
	return retrieve(ctx, processcreds.NewProvider(command), "credential_process")
}

func retrieve(ctx context.Context, p aws.CredentialsProvider, what string) (aws.Credentials, error) {
	keys, err := p.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("%s: %w", what, err)
	}
	return keys, nil
}
