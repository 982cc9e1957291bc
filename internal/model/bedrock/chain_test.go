package bedrock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/model"
	"chorus/internal/sim/llmsim"
)

// services plays everything that keys are asked of.
func services(t *testing.T) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	mux := http.NewServeMux()
	soon := time.Now().Add(time.Hour).UTC()
	mux.HandleFunc("POST /sts/", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		signed := strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDSOURCE/")
		token := r.FormValue("WebIdentityToken") == "identity-token"
		if r.FormValue("Action") == "AssumeRole" && !signed || r.FormValue("Action") == "AssumeRoleWithWebIdentity" && !token || r.FormValue("RoleArn") == "arn:denied" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not this role</Message></Error></ErrorResponse>")
			return
		}
		_, _ = fmt.Fprintf(w, "<R><Credentials><AccessKeyId>AKIDROLE-%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></R>",
			r.FormValue("ExternalId"), soon.Format(time.RFC3339))
	})
	mux.HandleFunc("GET /sso/federation/credentials", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Amz-Sso_bearer_token") != "sso-token" || r.FormValue("role_name") != "dev" || r.FormValue("account_id") != "1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"AKIDSSO","secretAccessKey":"s","sessionToken":"t","expiration":%d}}`, soon.UnixMilli())
	})
	mux.HandleFunc("GET /container", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "container-token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"AccessKeyId":"AKIDCONTAINER","SecretAccessKey":"s","Token":"t","Expiration":%q}`, soon.Format(time.RFC3339))
	})
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
		_, _ = fmt.Fprint(w, "metadata-token")
	})
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/{role...}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("role") == "" {
			_, _ = fmt.Fprint(w, "machine-role")
			return
		}
		asked.Add(1)
		_, _ = fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"AKIDMACHINE","SecretAccessKey":"s","Token":"t","Expiration":%q}`, soon.Format(time.RFC3339))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// lay writes a file below dir and gives its path.
func lay(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const config = `
# everybody's
[default]
region = eu-central-1   ; inline
[profile fixed]
region=us-west-1
s3 =
  region = nested-and-not-ours
[profile role]
role_arn = arn:role
source_profile = source
external_id = ext
[profile denied]
role_arn = arn:denied
source_profile = source
[profile circle]
role_arn = arn:role
source_profile = circle2
[profile circle2]
role_arn = arn:role
source_profile = circle
[profile sourceless]
role_arn = arn:role
[profile mfa]
role_arn = arn:role
source_profile = source
mfa_serial = arn:mfa
[profile sso]
sso_session = corp
sso_account_id = 1
sso_role_name = dev
[sso-session corp]
sso_region = us-east-1
sso_start_url = https://example.invalid/start
[profile gone]
sso_start_url = https://example.invalid/other
sso_account_id = 1
sso_role_name = dev
[profile process]
credential_process = echo '{"Version":1,"AccessKeyId":"AKIDPROCESS","SecretAccessKey":"s"}'
[profile broken]
credential_process = echo nothing
[profile identity]
role_arn = arn:role
web_identity_token_file = %s
[profile fromenv]
role_arn = arn:role
credential_source = Environment
[profile fromcontainer]
role_arn = arn:role
credential_source = EcsContainer
[profile odd]
role_arn = arn:role
credential_source = Moon
[other-section]
aws_access_key_id = never
`

const shared = `[default]
aws_access_key_id = AKIDDEFAULT
aws_secret_access_key = s
[fixed]
aws_access_key_id=AKIDFIXED
aws_secret_access_key=s
aws_session_token = t
[source]
aws_access_key_id = AKIDSOURCE
aws_secret_access_key = s
`

func TestChain(t *testing.T) {
	t.Parallel()
	address, _ := services(t)
	home := t.TempDir()
	token := lay(t, home, "token", "identity-token\n")
	lay(t, home, ".aws/config", fmt.Sprintf(config, token))
	lay(t, home, ".aws/credentials", shared)
	sum := sha1.Sum([]byte("corp"))
	lay(t, home, ".aws/sso/cache/"+hex.EncodeToString(sum[:])+".json",
		fmt.Sprintf(`{"accessToken":"sso-token","expiresAt":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	base := map[string]string{
		"HOME": home, "AWS_ENDPOINT_URL_STS": address + "/sts", "AWS_ENDPOINT_URL_SSO": address + "/sso", "AWS_EC2_METADATA_SERVICE_ENDPOINT": address,
	}
	bare := map[string]string{"HOME": t.TempDir()}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "s"}
	container := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": address + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"}
	cases := []struct {
		name   string
		opts   Options
		env    []map[string]string
		want   string // the access key, or after "!" a part of the error
		region string
	}{
		{"fixed pair before all", Options{AccessKey: "AKIDOPTION", SecretKey: "s", Region: "x"}, []map[string]string{keys}, "AKIDOPTION", "x"},
		{"environment before the default profile", Options{}, []map[string]string{keys}, "AKIDENV", "eu-central-1"},
		{"a profile that was asked for before the environment", Options{Profile: "fixed"}, []map[string]string{keys}, "AKIDFIXED", "us-west-1"},
		{"default profile", Options{}, nil, "AKIDDEFAULT", "eu-central-1"},
		{"the environment's profile and region", Options{}, []map[string]string{{"AWS_PROFILE": "fixed", "AWS_REGION": "r"}}, "AKIDFIXED", "r"},
		{"no such profile", Options{Profile: "nobody"}, nil, "!nobody", ""},
		{"role", Options{Profile: "role"}, nil, "AKIDROLE-ext", ""},
		{"refused role", Options{Profile: "denied"}, nil, "!not this role", ""},
		{"circle", Options{Profile: "circle"}, nil, "!refer to each other", ""},
		{"role from nothing", Options{Profile: "sourceless"}, nil, "!source_profile", ""},
		{"mfa", Options{Profile: "mfa"}, nil, "!MFA", ""},
		{"sso", Options{Profile: "sso"}, nil, "AKIDSSO", ""},
		{"sso without a sign-in", Options{Profile: "gone"}, nil, "!aws sso login --profile gone", ""},
		{"process", Options{Profile: "process"}, nil, "AKIDPROCESS", ""},
		{"broken process", Options{Profile: "broken"}, nil, "!credential_process", ""},
		{"identity of a profile", Options{Profile: "identity"}, nil, "AKIDROLE-", ""},
		{"identity of the environment", Options{}, []map[string]string{{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:role"}}, "AKIDROLE-", ""},
		{"identity without a role", Options{}, []map[string]string{{"AWS_WEB_IDENTITY_TOKEN_FILE": token}}, "!AWS_ROLE_ARN", ""},
		{"role from the environment", Options{Profile: "fromenv"}, []map[string]string{{"AWS_ACCESS_KEY_ID": "AKIDSOURCE", "AWS_SECRET_ACCESS_KEY": "s"}}, "AKIDROLE-", ""},
		{"role from the container", Options{Profile: "fromcontainer"}, []map[string]string{container}, "!not this role", ""},
		{"odd source", Options{Profile: "odd"}, nil, "!Moon", ""},
		{"container", Options{}, []map[string]string{bare, container}, "AKIDCONTAINER", ""},
		{"container's wrong token", Options{}, []map[string]string{bare, container, {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "x"}}, "!the container's credentials", ""},
		{"container far away", Options{}, []map[string]string{bare, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.invalid/keys"}}, "!https", ""},
		{"machine", Options{}, []map[string]string{bare, {"AWS_EC2_METADATA_DISABLED": "false"}}, "AKIDMACHINE", ""},
		{"nothing anywhere", Options{}, []map[string]string{bare}, "!neither the environment", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			vars := maps.Clone(base)
			for _, more := range c.env {
				maps.Copy(vars, more)
			}
			c.opts.Getenv = environment(vars)
			p := New(c.opts)
			defer p.Close()
			got, err := p.chain.keys(t.Context())
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, %v; want %q", got.AccessKeyID, err, want)
				}
				return
			}
			if err != nil || got.AccessKeyID != c.want {
				t.Errorf("got %q, %v; want %q", got.AccessKeyID, err, c.want)
			}
			if c.region != "" && p.chain.region() != c.region {
				t.Errorf("region %q, want %q", p.chain.region(), c.region)
			}
		})
	}
}

func TestKeysAreLookedForOnceAndAtTheFirstCall(t *testing.T) {
	t.Parallel()
	address, asked := services(t)
	vars := map[string]string{"HOME": t.TempDir(), "AWS_CONTAINER_CREDENTIALS_FULL_URI": address + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"}
	p := New(Options{Getenv: environment(vars)})
	defer p.Close()
	if n := asked.Load(); n != 0 {
		t.Fatalf("asked %d times before the first call", n)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if keys, err := p.chain.keys(t.Context()); err != nil || keys.AccessKeyID != "AKIDCONTAINER" {
				t.Errorf("got %q, %v", keys.AccessKeyID, err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	p.chain.mu.Lock()
	p.chain.have.Expires = time.Now().Add(early / 2)
	p.chain.mu.Unlock()
	if _, err := p.chain.keys(t.Context()); err != nil || asked.Load() != 2 {
		t.Errorf("keys near their end: %v, asked %d times", err, asked.Load())
	}
	p.chain.forget()
	if _, err := p.chain.keys(t.Context()); err != nil || asked.Load() != 3 {
		t.Errorf("forgotten keys: %v, asked %d times", err, asked.Load())
	}
}

func TestWhoWaitsForKeysCanLeave(t *testing.T) {
	t.Parallel()
	p := New(Options{Getenv: nowhere(t)})
	p.chain.turn <- struct{}{} // somebody looks, and goes on looking
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.chain.keys(ctx); err == nil {
		t.Error("it did not leave")
	}
}

func TestKeysAreReadAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	_, address := llmsim.Launch(t, llmsim.Options{Keys: []string{"right-secret"}})
	home := t.TempDir()
	write := func(secret string) {
		lay(t, home, ".aws/credentials", "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = "+secret+"\n")
	}
	write("wrong-secret")
	p := New(Options{Region: "us-east-1", BaseURL: address, Getenv: environment(map[string]string{"HOME": home})})
	defer p.Close()
	prep := hello(t, p, claude)
	if _, failed := ask(t, p, prep); failed == nil || failed.Kind != model.Auth || failed.Status != 403 || strings.Contains(failed.Error(), "wrong-secret") {
		t.Fatalf("error %v", failed)
	}
	write("right-secret")
	if done, failed := ask(t, p, prep); failed != nil || done == nil {
		t.Errorf("error %v", failed)
	}
}

func TestTokenOfTheEnvironment(t *testing.T) {
	t.Parallel()
	sim, address := llmsim.Launch(t, llmsim.Options{Keys: []string{"test-key"}})
	p := New(Options{Getenv: environment(map[string]string{
		"HOME": t.TempDir(), "AWS_BEARER_TOKEN_BEDROCK": "test-key", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": address + "/", "AWS_REGION": "us-east-1",
	})})
	defer p.Close()
	if _, failed := ask(t, p, hello(t, p, nova)); failed != nil {
		t.Fatal(failed)
	}
	if got := sim.Requests()[0].Header.Get("Authorization"); got != "Bearer test-key" {
		t.Errorf("sent %q", got)
	}
	if names, err := p.Models(t.Context()); err != nil || len(names) < 10 {
		t.Errorf("models %v, %v", names, err)
	}
}

func FuzzProfiles(f *testing.F) {
	f.Add(config, true)
	f.Add(shared, false)
	f.Add("[profile", true)
	f.Add("[]\n=\n = \n[ profile  x ]\na=b=c # d\r\n", true)
	f.Fuzz(func(t *testing.T, text string, isConfig bool) {
		all := profiles{}
		all.parse(text, isConfig)
		for name, section := range all {
			for key, value := range section {
				if strings.TrimSpace(key) != key || strings.TrimSpace(value) != value || strings.ContainsAny(value, "\n") {
					t.Errorf("%q: %q = %q", name, key, value)
				}
			}
		}
	})
}
