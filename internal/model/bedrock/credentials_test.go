package bedrock

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"chorus/internal/awsauth"
	"chorus/internal/model"
	"chorus/internal/sim/llmsim"
)

// The library reads the environment of the process, so the tests of this file do not run in parallel.

// isolate sets the environment of the process to nothing but vars, as far as AWS is concerned: no variable, no file and no
// metadata service of the machine is left. It returns the home folder.
func isolate(t *testing.T, vars map[string]string) string {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home := vars["HOME"]
	if home == "" {
		home = t.TempDir()
	}
	all := map[string]string{
		"HOME": home, "AWS_CONFIG_FILE": filepath.Join(home, ".aws/config"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, ".aws/credentials"),
		"AWS_EC2_METADATA_DISABLED": "true",
	}
	maps.Copy(all, vars)
	for name, value := range all {
		t.Setenv(name, value)
	}
	return home
}

// services plays all that credentials are asked of.
func services(t *testing.T) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	mux := http.NewServeMux()
	soon := time.Now().Add(time.Hour).UTC()
	mux.HandleFunc("POST /sts", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		signed := strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDSOURCE/")
		token := r.FormValue("WebIdentityToken") == "identity-token"
		if r.FormValue("Action") == "AssumeRole" && !signed || r.FormValue("Action") == "AssumeRoleWithWebIdentity" && !token || r.FormValue("RoleArn") == "arn:denied" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not this role</Message></Error></ErrorResponse>")
			return
		}
		_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>AKIDROLE-%[2]s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>",
			r.FormValue("Action"), r.FormValue("ExternalId"), soon.Format(time.RFC3339))
	})
	mux.HandleFunc("GET /sso/federation/credentials", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Amz-Sso_bearer_token") != "sso-token" || r.FormValue("role_name") != "dev" || r.FormValue("account_id") != "1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"AKIDSSO","secretAccessKey":"s","sessionToken":"t","expiration":%d}}`, soon.UnixMilli())
	})
	mux.HandleFunc("POST /oidc/token", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var in struct{ ClientID, ClientSecret, RefreshToken, GrantType string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.RefreshToken != "refresh-token" || in.ClientSecret != "client-secret" || in.GrantType != "refresh_token" {
			t.Errorf("%+v, %v", in, err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"accessToken":"sso-token","expiresIn":3600,"refreshToken":"refresh-token"}`)
	})
	mux.HandleFunc("GET /container", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "container-token" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"code":"AccessDenied","message":"wrong token"}`)
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

// writeFile writes a file below dir and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
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

const configFile = `
# a comment
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
[profile expired]
sso_session = old
sso_account_id = 1
sso_role_name = dev
[sso-session old]
sso_region = us-east-1
sso_start_url = https://example.invalid/start
[profile gone]
sso_region = us-east-1
sso_start_url = https://example.invalid/other
sso_account_id = 1
sso_role_name = dev
[profile login]
login_session = arn:aws:iam::1:user/ada
[profile logged-out]
login_session = arn:aws:iam::1:user/nobody
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

const credentialsFile = `[default]
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
	address, _ := services(t)
	home := t.TempDir()
	token := writeFile(t, home, "token", "identity-token")
	writeFile(t, home, ".aws/config", fmt.Sprintf(configFile, token))
	writeFile(t, home, ".aws/credentials", credentialsFile)
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	sso := func(session string) string {
		sum := sha1.Sum([]byte(session))
		return ".aws/sso/cache/" + hex.EncodeToString(sum[:]) + ".json"
	}
	writeFile(t, home, sso("corp"), fmt.Sprintf(`{"accessToken":"sso-token","expiresAt":%q}`, in(time.Hour)))
	writeFile(t, home, sso("old"), fmt.Sprintf(`{"accessToken":"old-token","expiresAt":%q,"refreshToken":"refresh-token","clientId":"id","clientSecret":"client-secret","registrationExpiresAt":%q}`,
		in(-time.Hour), in(time.Hour)))
	session := sha256.Sum256([]byte("arn:aws:iam::1:user/ada"))
	writeFile(t, home, ".aws/login/cache/"+hex.EncodeToString(session[:])+".json", fmt.Sprintf(
		`{"accessToken":{"accessKeyId":"AKIDLOGIN","secretAccessKey":"s","sessionToken":"t","accountId":"1","expiresAt":%q},"tokenType":"urn:aws:params:oauth:token-type:access_token_sigv4",`+
			`"refreshToken":"r","identityToken":"i","clientId":"c","dpopKey":"k"}`, in(time.Hour)))
	base := map[string]string{
		"HOME": home, "AWS_ENDPOINT_URL_STS": address + "/sts", "AWS_ENDPOINT_URL_SSO": address + "/sso", "AWS_ENDPOINT_URL_SSO_OIDC": address + "/oidc",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": address,
	}
	bare := t.TempDir()
	empty := map[string]string{"HOME": bare, "AWS_CONFIG_FILE": bare + "/none", "AWS_SHARED_CREDENTIALS_FILE": bare + "/none"}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "s"}
	container := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": address + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"}
	for _, c := range []struct {
		name   string
		opts   Options
		env    []map[string]string
		want   string // the access key, or after "!" a part of the error
		region string
	}{
		{"fixed credentials before all", Options{AccessKey: "AKIDOPTION", SecretKey: "s", Region: "x"}, []map[string]string{keys}, "AKIDOPTION", "x"},
		{"environment before the default profile", Options{}, []map[string]string{keys}, "AKIDENV", "eu-central-1"},
		{"a profile of the options before the environment", Options{Profile: "fixed"}, []map[string]string{keys}, "AKIDFIXED", "us-west-1"},
		{"default profile", Options{}, nil, "AKIDDEFAULT", "eu-central-1"},
		{"the environment's profile and region", Options{}, []map[string]string{{"AWS_PROFILE": "fixed", "AWS_REGION": "r"}}, "AKIDFIXED", "r"},
		{"no such profile", Options{Profile: "nobody"}, nil, "!nobody", ""},
		{"role", Options{Profile: "role"}, nil, "AKIDROLE-ext", ""},
		{"refused role", Options{Profile: "denied"}, nil, "!not this role", ""},
		{"circle", Options{Profile: "circle"}, nil, "!circle", ""},
		{"role from nothing", Options{Profile: "sourceless"}, nil, "!AssumeRole", ""},
		{"mfa", Options{Profile: "mfa"}, nil, "!MFA", ""},
		{"sso", Options{Profile: "sso"}, nil, "AKIDSSO", ""},
		{"sso that is renewed", Options{Profile: "expired"}, nil, "AKIDSSO", ""},
		{"sso without a sign-in", Options{Profile: "gone"}, nil, "!aws sso login --profile gone", ""},
		{"login", Options{Profile: "login"}, nil, "AKIDLOGIN", ""},
		{"login without a sign-in", Options{Profile: "logged-out"}, nil, "!aws login --profile logged-out", ""},
		{"process", Options{Profile: "process"}, nil, "AKIDPROCESS", ""},
		{"broken process", Options{Profile: "broken"}, nil, "!process", ""},
		{"identity of a profile", Options{Profile: "identity"}, nil, "AKIDROLE-", ""},
		{"identity of the environment", Options{}, []map[string]string{{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:role"}}, "AKIDROLE-", ""},
		{"identity without a role", Options{}, []map[string]string{{"AWS_WEB_IDENTITY_TOKEN_FILE": token}}, "!role ARN", ""},
		{"role from the environment", Options{Profile: "fromenv"}, []map[string]string{{"AWS_ACCESS_KEY_ID": "AKIDSOURCE", "AWS_SECRET_ACCESS_KEY": "s"}}, "AKIDROLE-", ""},
		{"role from the container", Options{Profile: "fromcontainer"}, []map[string]string{container}, "!not this role", ""},
		{"unknown source", Options{Profile: "odd"}, nil, "!credential_source", ""},
		{"container", Options{}, []map[string]string{empty, container}, "AKIDCONTAINER", ""},
		{"container's wrong token", Options{}, []map[string]string{empty, container, {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "x"}}, "!wrong token", ""},
		{"container elsewhere", Options{}, []map[string]string{empty, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/keys"}}, "!only loopback", ""},
		{"machine", Options{}, []map[string]string{empty, {"AWS_EC2_METADATA_DISABLED": "false"}}, "AKIDMACHINE", ""},
		{"machine is off", Options{}, []map[string]string{empty}, "!AWS_EC2_METADATA_DISABLED", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			vars := maps.Clone(base)
			for _, more := range c.env {
				maps.Copy(vars, more)
			}
			isolate(t, vars)
			p := New(c.opts)
			defer p.Close()
			got, err := p.chain.Credentials(t.Context())
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, %v; want %q", got.AccessKeyID, err, want)
				}
				return
			}
			if err != nil || got.AccessKeyID != c.want {
				t.Errorf("got %q, %v; want %q", got.AccessKeyID, err, c.want)
			}
			if region, err := p.chain.Region(t.Context()); c.region != "" && region != c.region {
				t.Errorf("region %q, %v; want %q", region, err, c.region)
			}
		})
	}
}

// Credentials are asked for at the first call, by one of many callers, and again shortly before they end.
func TestCredentialsAreCached(t *testing.T) {
	address, asked := services(t)
	isolate(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": address + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"})
	p := New(Options{})
	defer p.Close()
	if n := asked.Load(); n != 0 {
		t.Fatalf("asked %d times before the first call", n)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := p.chain.Credentials(t.Context()); err != nil || got.AccessKeyID != "AKIDCONTAINER" {
				t.Errorf("got %q, %v", got.AccessKeyID, err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	p.chain.Forget()
	if _, err := p.chain.Credentials(t.Context()); err != nil || asked.Load() != 2 {
		t.Errorf("forgotten credentials: %v, asked %d times", err, asked.Load())
	}
}

func TestCredentialsAreReplacedBeforeTheyEnd(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		left := []time.Duration{awsauth.ExpiryWindow / 2, time.Hour}[min(asked.Add(1), 2)-1]
		_, _ = fmt.Fprintf(w, `{"AccessKeyId":"AKID","SecretAccessKey":"s","Token":"t","Expiration":%q}`, time.Now().Add(left).UTC().Format(time.RFC3339))
	}))
	defer srv.Close()
	isolate(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": srv.URL})
	p := New(Options{})
	defer p.Close()
	for range 3 {
		if _, err := p.chain.Credentials(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// A caller that waits for credentials can leave, also while another waits for the same ones.
func TestWaitingForCredentialsCanBeCancelled(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer srv.Close()
	defer close(release)
	isolate(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": srv.URL})
	p := New(Options{})
	defer p.Close()
	first, cancelFirst := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.chain.Credentials(first)
		done <- err
	}()
	<-arrived
	second, cancelSecond := context.WithCancel(t.Context())
	cancelSecond()
	if _, err := p.chain.Credentials(second); err == nil {
		t.Error("the second caller got credentials")
	}
	cancelFirst()
	if err := <-done; err == nil {
		t.Error("the first caller got credentials")
	}
}

func TestCredentialsAreReadAgainAfterARefusal(t *testing.T) {
	_, address := llmsim.Launch(t, llmsim.Options{Keys: []string{"right-secret"}})
	home := isolate(t, nil)
	write := func(secret string) {
		writeFile(t, home, ".aws/credentials", "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = "+secret+"\n")
	}
	write("wrong-secret")
	p := New(Options{Region: "us-east-1", BaseURL: address})
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

// With a token and a region the shared files are not read: a broken one does no harm.
func TestTokenOfTheEnvironment(t *testing.T) {
	sim, address := llmsim.Launch(t, llmsim.Options{Keys: []string{"test-key"}})
	isolate(t, map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "test-key", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": address + "/", "AWS_REGION": "us-east-1", "AWS_PROFILE": "nobody"})
	p := New(Options{})
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
