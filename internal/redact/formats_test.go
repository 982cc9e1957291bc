package redact

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// random makes n characters of the set that are the same every time. Tokens are made of
// them when a test runs, so that nothing in this repository looks like one to a scanner.
func random(n int, set string) string {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = set[rng.IntN(len(set))]
	}
	if strings.Contains(set, "7") {
		out[n/2] = '7'
	}
	return string(out)
}

// The alphabets that vendors use.
func hexOf(n int) string   { return random(n, "0123456789abcdef") }
func upper(n int) string   { return random(n, upperDigits) }
func lower(n int) string   { return random(n, lowerDigits) }
func letters(n int) string { return random(n, alnum) }
func word(n int) string    { return random(n, alnumDash) }
func data(n int) string    { return random(n, alnum+"+/") }

// uuid has the form of one.
func uuid() string {
	return strings.Join([]string{hexOf(8), hexOf(4), hexOf(4), hexOf(4), hexOf(12)}, "-")
}

// example is a token as its vendor writes it.
type example struct{ kind, head, rest string }

// examples have the lengths that are documented, not those that the table asks for.
func examples() []example {
	key := func(kind, rest string, heads ...string) []example {
		var all []example
		for _, head := range heads {
			all = append(all, example{kind, head, rest})
		}
		return all
	}
	return slices.Concat(
		key("anthropic-key", "api03-"+word(93)+"AA", "sk-ant-"),
		key("openai-key", word(74)+"T3BlbkFJ"+word(74), "sk-proj-", "sk-svcacct-", "sk-admin-"),
		key("openrouter-key", "v1-"+hexOf(64), "sk-or-"),
		key("api-key", hexOf(32), "sk-"),
		key("api-key", letters(52), "gsk_"), key("api-key", letters(80), "xai-"), key("api-key", lower(48), "csk-"),
		key("api-key", letters(5)+"_"+letters(63), "pcsk_"),
		key("api-key", word(43), "tgp_v1_"), key("api-key", letters(27)+"_"+letters(49), "wandb_v1_"),
		key("elevenlabs-key", hexOf(48), "sk_"), key("perplexity-key", letters(48), "pplx-"),
		key("huggingface-token", letters(34), "hf_", "api_org_"), key("replicate-token", letters(37), "r8_"),
		key("nvidia-key", word(64), "nvapi-"), key("langsmith-key", hexOf(32)+"_"+hexOf(10), "lsv2_pt_", "lsv2_sk_"),
		key("tavily-key", "dev-"+letters(32), "tvly-"), key("e2b-key", hexOf(40), "e2b_"), key("firecrawl-key", hexOf(32), "fc-"),

		key("aws-key", upper(16), "AKIA", "ASIA", "ABIA", "ACCA"), key("aws-key", upper(17), "A3T"),
		key("bedrock-key", data(128)+"=", "ABSK"), key("bedrock-key", data(200), "bedrock-api-key-"),
		key("google-key", word(35), "AIza"), key("google-token", word(120), "ya29."), key("google-token", word(64), "1//0"), key("google-key", word(28), "GOCSPX-"),
		key("alibaba-key", letters(20), "LTAI"), key("tencent-key", letters(32), "AKID"),
		key("yandex-token", word(40)+"."+word(86), "t1."), key("yandex-key", word(36), "AQVN"), key("yandex-key", letters(38), "YC"),
		key("digitalocean-token", hexOf(64), "dop_v1_", "doo_v1_", "dor_v1_"), key("heroku-key", "AA"+word(58), "HRKU-"),
		key("cloudflare-key", hexOf(24)+"-"+hexOf(146), "v1.0-"),
		key("fly-token", word(43), "fo1_"), key("fly-token", data(160), "fm1a_", "fm1r_", "fm2_"),
		key("planetscale-token", word(43), "pscale_tkn_", "pscale_oauth_", "pscale_pw_"), key("scalingo-token", word(48), "tk-us-"),
		key("databricks-token", hexOf(32), "dapi"), key("clickhouse-key", letters(38), "4b1d"),
		key("supabase-key", hexOf(40), "sbp_"), key("supabase-key", word(31), "sb_secret_"),
		key("tailscale-key", "k"+letters(11)+"-"+letters(32), "tskey-auth-", "tskey-api-", "tskey-client-"),
		key("netlify-token", letters(36), "nfp_"), key("okta-token", letters(40), "00"), key("openshift-token", word(43), "sha256~"),

		key("vault-token", word(95), "hvs."), key("vault-token", word(150), "hvb."), key("vault-token", word(95), "hvr."), key("vault-token", letters(24), "s."),
		key("terraform-token", word(67), "atlasv1."), key("pulumi-token", hexOf(40), "pul-"),
		key("doppler-token", letters(43), "dp.pt.", "dp.ct.", "dp.scim.", "dp.audit.", "dp.sa."), key("doppler-token", "prd."+letters(43), "dp.st."),
		key("jwt", data(160), "ZXlK"), key("1password-token", data(300), "ops_eyJ"),
		key("1password-key", strings.Join([]string{upper(6), upper(6), upper(5), upper(5), upper(5), upper(5)}, "-"), "A3-"),
		key("age-key", upper(58), "AGE-SECRET-KEY-1"), key("dynatrace-token", upper(24)+"."+upper(64), "dt0c01.", "dt0s01."),
		key("grafana-token", data(100), "glc_"), key("grafana-token", letters(80), "eyJrIjoi"), key("grafana-token", letters(32)+"_"+hexOf(8), "glsa_"),
		key("sentry-token", data(120)+"_"+data(43), "sntrys_"), key("sentry-token", hexOf(64), "sntryu_"),
		key("newrelic-key", upper(27), "NRAK-"), key("newrelic-key", hexOf(19), "NRJS-"), key("newrelic-key", letters(32), "NRII-"),
		key("octopus-key", upper(26), "API-"), key("harness-key", word(22)+"."+letters(24)+"."+letters(20), "pat.", "sat."),
		key("authress-key", letters(20)+"."+letters(5)+".acc_"+lower(20)+"."+word(60), "sc_", "ext_", "scauth_", "authress_"),
		key("definednetworking-key", word(26)+"-"+word(52), "dnkey-"), key("infracost-key", letters(32), "ico-"),
		key("posthog-key", letters(43), "phx_"), key("prefect-token", letters(36), "pnu_", "pnb_"),

		key("github-token", letters(36), "ghp_", "gho_", "ghu_", "ghs_", "ghr_"), key("github-token", letters(22)+"_"+letters(59), "github_pat_"),
		key("gitlab-token", word(40)+".01"+lower(7), "glpat-", "glrt-"),
		key("gitlab-token", word(20), "glpat-", "glrt-", "glrtr-", "gldt-", "glft-", "glsoat-", "glimt-", "glffct-", "glwt-", "GR1348941"),
		key("gitlab-token", hexOf(40), "glptt-"), key("gitlab-token", "64_"+word(20), "glcbt-"), key("gitlab-token", word(50), "glagent-"), key("gitlab-token", word(64), "gloas-"),
		key("gitlab-session", lower(32), "gitlab_session="),
		key("atlassian-token", word(186), "ATATT3", "ATCTT3"), key("atlassian-token", letters(32), "ATBB"),
		key("sourcegraph-token", hexOf(16)+"_"+hexOf(40), "sgp_"), key("sourcegraph-token", hexOf(64), "slk_"),
		key("npm-token", letters(36), "npm_"), key("pypi-token", word(150), "pypi-"), key("rubygems-key", hexOf(48), "rubygems_"), key("nuget-key", lower(43), "oy2"),
		key("clojars-token", hexOf(60), "CLOJARS_"), key("docker-token", word(27), "dckr_pat_"),
		key("jfrog-key", letters(69), "AKCp"), key("jfrog-token", letters(59), "cmVmd"),
		key("sonar-token", hexOf(40), "squ_", "sqp_", "sqa_"), key("circleci-token", letters(22)+"_"+hexOf(40), "CCIPAT_"), key("buildkite-token", hexOf(40), "bkua_"),
		key("postman-key", hexOf(24)+"-"+hexOf(34), "PMAK-"), key("readme-key", lower(70), "rdme_"),

		key("slack-token", random(12, digits)+"-"+letters(24), "xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxo-"),
		key("slack-token", "1-A"+upper(10)+"-"+random(13, digits)+"-"+hexOf(64), "xapp-"),
		key("webhook", "T"+upper(8)+"/B"+upper(8)+"/"+letters(24), "hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
		key("webhook", uuid()+"@"+uuid()+"/IncomingWebhook/"+hexOf(32)+"/"+uuid(), "webhook.office.com/webhookb2/"),
		key("webhook", random(7, digits)+"/"+lower(7), "hooks.zapier.com/hooks/catch/"), key("webhook", random(18, digits)+"/"+word(68), "api/webhooks/"),
		key("sendgrid-key", word(22)+"."+word(43), "SG."), key("brevo-key", hexOf(64)+"-"+letters(16), "xkeysib-", "xsmtpsib-"),
		key("mailgun-key", hexOf(32), "key-", "pubkey-"), key("resend-key", letters(8)+"_"+letters(24), "re_"), key("twilio-key", hexOf(32), "SK"),
		key("facebook-token", "M"+letters(180), "EAA"), key("twitter-token", letters(90), "AAAAAAAAAAAAAAAAAAAAAA"),
		key("notion-token", random(11, digits)+letters(35), "ntn_"), key("notion-token", letters(43), "secret_"), key("linear-key", letters(40), "lin_api_", "lin_oauth_"),
		key("airtable-token", letters(14)+"."+hexOf(64), "pat"), key("typeform-token", word(59), "tfp_"), key("figma-token", word(43), "figd_"),
		key("contentful-token", word(43), "CFPAT-"), key("dropbox-token", word(135), "sl."), key("frameio-token", word(64), "fio-u-"), key("beamer-token", letters(44), "b_"),
		key("adafruit-key", letters(28), "aio_"), key("adobe-secret", letters(32), "p8e-"), key("mapbox-token", letters(60)+"."+letters(22), "pk.", "sk.", "tk."),
		key("intra42-secret", hexOf(64), "s-s4t2ud-", "s-s4t2af-"), key("settlemint-token", letters(16), "sm_aat_", "sm_pat_", "sm_sat_"),

		key("stripe-key", letters(24), "sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"), key("stripe-key", data(32), "whsec_"),
		key("square-token", word(22), "sq0atp-", "sq0csp-"), key("square-token", letters(60), "EAAA"),
		key("shopify-token", hexOf(32), "shpat_", "shpca_", "shppa_", "shpss_"), key("plaid-token", uuid(), "access-sandbox-", "access-development-", "access-production-"),
		key("razorpay-key", letters(14), "rzp_live_", "rzp_test_"), key("flutterwave-key", hexOf(32)+"-X", "FLWSECK-", "FLWSECK_TEST-", "FLWPUBK-", "FLWPUBK_TEST-"),
		key("easypost-key", letters(54), "EZAK", "EZTK"), key("shippo-token", hexOf(40), "shippo_live_", "shippo_test_"), key("duffel-token", word(43), "duffel_live_", "duffel_test_"),
		key("lob-key", hexOf(35), "live_", "test_"), key("lob-key", hexOf(31), "live_pub_", "test_pub_"), key("gocardless-token", letters(40), "live_"),

		key("chorus-token", upper(52), "chorus_"),
	)
}

// Every format is hidden as a whole, wherever it stands.
func TestFormats(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	for _, e := range examples() {
		token := e.head + e.rest
		for _, around := range [][2]string{{"use ", " here"}, {`{"value": "`, `"}`}, {"", ""}, {"it is ", ",\nsaid she"}, {"`", "`"}} {
			text := around[0] + token + around[1]
			if got, want := r.Text(text), around[0]+mark(e.kind)+around[1]; got != want {
				t.Errorf("%s: %q became %q", e.head, text, got)
			}
		}
		if e.kind == "webhook" {
			continue
		}
		if got := r.Text(e.head + "…"); strings.Contains(got, markHead) {
			t.Errorf("%s alone became %q", e.head, got)
		}
	}
}

// Tokens without a fixed beginning, recognised by what stands inside.
func TestFormatsFromInside(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	for text, want := range map[string]string{
		"bot 123456789:A" + word(34) + " runs":           "bot [redacted:telegram-token] runs",
		"secret is aB3" + "8Q~" + letters(34) + " there": "secret is [redacted:azure-secret] there",
		"x.atlasv1." + word(67):                          "x.[redacted:terraform-token]",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"at 12:A" + word(20), "port 8080:Alpha", "8Q~short", "a ~ b", "~/.config/Q~x"} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A format without an example is not tested.
func TestEveryFormatHasAnExample(t *testing.T) {
	t.Parallel()
	has := map[string]bool{}
	for _, e := range examples() {
		has[e.kind+" "+e.head] = true
	}
	for _, f := range formats {
		if text := mark(f.kind); markAt(text, 0) != len(text) {
			t.Errorf("%s is not recognised as a mark", text)
		}
		for _, head := range f.heads {
			if len(head) < 2 {
				t.Errorf("%q is too short to be looked up", head)
			}
			if !has[f.kind+" "+head] {
				t.Errorf("%s has no example of %q", f.kind, head)
			}
		}
	}
}

// Words that begin like a token are none.
func TestWordsThatBeginLikeTokens(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	for _, text := range []string{
		"pattern matching", "path.to.something.in.a.long.package.name.that.goes.on.and.on.for.a.while", "dapibus ac facilisis in egestas eget quam", "key-value store", "API-compatible",
		"s.someMethodWithALongName12(x)", "s.handleIncomingRequest42ab", "test_helper_function_with_long_name_2", "live_reload", "b_tree_index_of_a_column_with_a_long_name_1234",
		"00000000000000000000000000000000000000000042", "re_exports_and_more", "pk.example.com", "sk.example.com/a.b", "EAAA", "t1.medium", "t1.Sub(t0).Seconds()", "v1.0-rc.1", "secret_name_of_the_cluster",
		"access-production-database-replica-set", "access-control-allow-origin", "fc-cache -fv", "pul-request", "SKILL.md", "skeleton", "e2b_test", "glc_init", "figd_", "sc_hash.init.acc_x", "ext_modules.append(x)",
		"api/webhooks/list", "AKIDO", "oy2", "cmVmd", "ZXlK", "A3-sized paper", "YCombinator", "LTAIRE", "PMAK", "hooks.slack.com/services/", "xox", "key-" + hexOf(31), "dapi" + hexOf(40), "SK" + hexOf(33),
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, title := range []string{"a new pattern", "where is dapibus", "a key-value", "the test_helper", "use sk-learn", "the live_", "on API-design"} {
		if got := r.Clipped(title); got != title {
			t.Errorf("clipped: %q became %q", title, got)
		}
	}
}

// repositoryTexts are code and prose as people read them all day.
func repositoryTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, root := range []string{"../../docs", "../../cmd", "..", "../../examples"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || !slices.Contains([]string{".go", ".md", ".html", ".css", ".js", ".yaml", ".sql"}, filepath.Ext(path)) {
				return err
			}
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(texts) < 100 {
		t.Fatalf("only %d files", len(texts))
	}
	return texts
}

// Nothing in this repository is a token, and nothing is taken for one: neither in whole
// files nor in pieces that begin and end anywhere.
func TestOrdinaryTextHasNoTokens(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{"telegram-token": true, "azure-secret": true, "discord-token": true}
	for _, f := range formats {
		kinds[f.kind] = true
	}
	found := func(text string) (all []string) {
		for _, c := range cutsOf(text) {
			if kinds[c.kind] {
				all = append(all, c.kind+": "+text[c.from:c.to])
			}
		}
		return all
	}
	texts := repositoryTexts(t)
	for path, text := range texts {
		for _, f := range found(text) {
			t.Errorf("%s: %s", path, f)
		}
	}
	paths := slices.Sorted(func(yield func(string) bool) {
		for path, text := range texts {
			if text != "" && !yield(path) {
				return
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := texts[rapid.SampledFrom(paths).Draw(t, "file")]
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		to := rapid.IntRange(from, min(len(text), from+2000)).Draw(t, "to")
		if all := found(text[from:to]); len(all) > 0 {
			t.Fatalf("%q", all)
		}
	})
}

func cutsOf(text string) []cut {
	s := scanner{text: text}
	s.run()
	return s.cuts
}
