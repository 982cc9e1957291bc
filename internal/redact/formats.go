package redact

// format says how one kind of token is written: a fixed beginning, then characters of a set, then
// possibly further parts. Where a vendor specifies an exact length, the table mostly has a lower
// bound, so that a token that grows by a few characters is still recognised.
type format struct {
	kind  string   // what is written instead: [redacted:kind]
	heads []string // the beginnings, each at least two bytes
	part           // what follows the beginning
	then  []part   // further parts, in order

	digit bool // at least one digit, because words continue like this too
	mixed bool // it must look random, because names begin like this too
	// alone means that no base64 character may precede or follow it. It is for beginnings so
	// short that they occur inside encoded data and ordinary words.
	alone bool
}

// part is a run of bytes of one set.
type part struct {
	set   string
	least int
	most  int // 0: any number
}

const (
	digits      = "0123456789"
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	lowerDigits = "abcdefghijklmnopqrstuvwxyz" + digits
	hexDigits   = "abcdefABCDEF" + digits
	alnum       = upperDigits + "abcdefghijklmnopqrstuvwxyz"
	alnumDash   = alnum + "-_"
	alnumDot    = alnumDash + "."
	base64Set   = alnum + "+/="
	tokenSet    = alnumDot + "~+/="
)

// formats are tried in this order. Of two with the same beginning, the more specific
// comes first. The facts come from vendors and from public rule lists of secret
// scanners. Every beginning needs an example in formats_test.go.
var formats = []format{
	// Models and what belongs to them.
	{kind: "anthropic-key", heads: []string{"sk-ant-"}, part: part{set: alnumDash, least: 12}},
	{kind: "openai-key", heads: []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, part: part{set: alnumDash, least: 16}},
	{kind: "openrouter-key", heads: []string{"sk-or-"}, part: part{set: alnumDash, least: 16}, digit: true},
	{kind: "api-key", heads: []string{"sk-"}, part: part{set: alnumDash, least: 20}, digit: true},
	{kind: "api-key", heads: []string{"gsk_", "xai-", "csk-", "pcsk_"}, part: part{set: alnum + "_", least: 40}},
	{kind: "api-key", heads: []string{"tgp_v1_"}, part: part{set: alnumDash, least: 40}},
	{kind: "api-key", heads: []string{"wandb_v1_"}, part: part{set: alnum + "_", least: 60}},
	{kind: "elevenlabs-key", heads: []string{"sk_"}, part: part{set: hexDigits, least: 48, most: 48}},
	{kind: "perplexity-key", heads: []string{"pplx-"}, part: part{set: alnum, least: 40}},
	{kind: "huggingface-token", heads: []string{"hf_", "api_org_"}, part: part{set: alnum, least: 30}},
	{kind: "replicate-token", heads: []string{"r8_"}, part: part{set: alnumDash, least: 30}, digit: true},
	{kind: "nvidia-key", heads: []string{"nvapi-"}, part: part{set: alnumDash, least: 60}},
	{kind: "langsmith-key", heads: []string{"lsv2_pt_", "lsv2_sk_"}, part: part{set: alnum + "_", least: 32}},
	{kind: "tavily-key", heads: []string{"tvly-"}, part: part{set: alnumDash, least: 20}, digit: true},
	{kind: "e2b-key", heads: []string{"e2b_"}, part: part{set: hexDigits, least: 40}},
	{kind: "firecrawl-key", heads: []string{"fc-"}, part: part{set: hexDigits, least: 32, most: 32}, alone: true},

	// Clouds.
	{kind: "aws-key", heads: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, part: part{set: upperDigits, least: 16, most: 16}},
	{kind: "aws-key", heads: []string{"A3T"}, part: part{set: upperDigits, least: 17, most: 17}},
	{kind: "bedrock-key", heads: []string{"ABSK"}, part: part{set: base64Set, least: 100}},
	{kind: "bedrock-key", heads: []string{"bedrock-api-key-"}, part: part{set: base64Set, least: 20}},
	{kind: "google-key", heads: []string{"AIza"}, part: part{set: alnumDash, least: 35}},
	{kind: "google-token", heads: []string{"ya29."}, part: part{set: alnumDash, least: 20}},
	{kind: "google-token", heads: []string{"1//0"}, part: part{set: alnumDash, least: 35}},
	{kind: "google-key", heads: []string{"GOCSPX-"}, part: part{set: alnumDash, least: 20}},
	{kind: "alibaba-key", heads: []string{"LTAI"}, part: part{set: alnum, least: 12, most: 24}, digit: true},
	{kind: "tencent-key", heads: []string{"AKID"}, part: part{set: alnum, least: 32, most: 32}},
	{kind: "yandex-token", heads: []string{"t1."}, part: part{set: alnumDash + "=", least: 1}, then: []part{{".", 1, 1}, {alnumDash + "=", 86, 0}}},
	{kind: "yandex-key", heads: []string{"AQVN"}, part: part{set: alnumDash, least: 35, most: 38}, digit: true},
	{kind: "yandex-key", heads: []string{"YC"}, part: part{set: alnumDash, least: 38, most: 38}, mixed: true, alone: true},
	{kind: "digitalocean-token", heads: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, part: part{set: alnum, least: 40}},
	{kind: "heroku-key", heads: []string{"HRKU-"}, part: part{set: alnumDash, least: 36}, digit: true},
	{kind: "cloudflare-key", heads: []string{"v1.0-"}, part: part{set: hexDigits, least: 24, most: 24}, then: []part{{"-", 1, 1}, {hexDigits, 100, 0}}},
	{kind: "fly-token", heads: []string{"fo1_"}, part: part{set: alnumDash, least: 40}},
	{kind: "fly-token", heads: []string{"fm1a_", "fm1r_", "fm2_"}, part: part{set: base64Set, least: 100}},
	{kind: "planetscale-token", heads: []string{"pscale_tkn_", "pscale_oauth_", "pscale_pw_"}, part: part{set: alnumDot + "=", least: 32}},
	{kind: "scalingo-token", heads: []string{"tk-us-"}, part: part{set: alnumDash, least: 40}},
	{kind: "databricks-token", heads: []string{"dapi"}, part: part{set: hexDigits, least: 32, most: 32}},
	{kind: "clickhouse-key", heads: []string{"4b1d"}, part: part{set: alnum, least: 38, most: 38}, mixed: true, alone: true},
	{kind: "supabase-key", heads: []string{"sbp_", "sb_secret_"}, part: part{set: alnumDash, least: 20}, digit: true},
	{kind: "tailscale-key", heads: []string{"tskey-auth-", "tskey-api-", "tskey-client-"}, part: part{set: alnumDash, least: 16}, digit: true},
	{kind: "netlify-token", heads: []string{"nfp_"}, part: part{set: alnum + "_", least: 36}},
	{kind: "okta-token", heads: []string{"00"}, part: part{set: alnumDash + "=", least: 40, most: 40}, mixed: true, alone: true},
	{kind: "openshift-token", heads: []string{"sha256~"}, part: part{set: alnumDash, least: 43}},

	// Secrets, keys and infrastructure.
	{kind: "vault-token", heads: []string{"hvs.", "hvb.", "hvr."}, part: part{set: alnumDash, least: 24}, digit: true},
	{kind: "vault-token", heads: []string{"s."}, part: part{set: alnum, least: 24, most: 24}, mixed: true, alone: true},
	{kind: "terraform-token", heads: []string{"atlasv1."}, part: part{set: alnumDash + "=", least: 60}},
	{kind: "pulumi-token", heads: []string{"pul-"}, part: part{set: hexDigits, least: 40}},
	{kind: "doppler-token", heads: []string{"dp.pt.", "dp.ct.", "dp.st.", "dp.sa.", "dp.scim.", "dp.audit."}, part: part{set: alnumDot, least: 40}},
	{kind: "jwt", heads: []string{"ZXlK"}, part: part{set: base64Set, least: 80}, alone: true}, // encoded once more
	{kind: "1password-token", heads: []string{"ops_eyJ"}, part: part{set: base64Set, least: 200}},
	{kind: "1password-key", heads: []string{"A3-"}, part: part{set: upperDigits + "-", least: 34, most: 37}, digit: true, alone: true},
	{kind: "age-key", heads: []string{"AGE-SECRET-KEY-1"}, part: part{set: upperDigits, least: 50}},
	{kind: "dynatrace-token", heads: []string{"dt0c01.", "dt0s01."}, part: part{set: alnum, least: 24, most: 24}, then: []part{{".", 1, 1}, {alnum, 64, 0}}},
	{kind: "grafana-token", heads: []string{"glc_", "eyJrIjoi"}, part: part{set: base64Set, least: 32}},
	{kind: "grafana-token", heads: []string{"glsa_"}, part: part{set: alnum + "_", least: 32}},
	{kind: "sentry-token", heads: []string{"sntrys_"}, part: part{set: base64Set + "_", least: 40}},
	{kind: "sentry-token", heads: []string{"sntryu_"}, part: part{set: hexDigits, least: 40}},
	{kind: "newrelic-key", heads: []string{"NRAK-", "NRJS-", "NRII-"}, part: part{set: alnum + "-", least: 19}, digit: true},
	{kind: "octopus-key", heads: []string{"API-"}, part: part{set: upperDigits, least: 25, most: 26}, digit: true, alone: true},
	{kind: "harness-key", heads: []string{"pat.", "sat."}, part: part{set: alnumDash, least: 22, most: 22}, then: []part{{".", 1, 1}, {alnum, 24, 24}, {".", 1, 1}, {alnum, 20, 20}}},
	{kind: "authress-key", heads: []string{"sc_", "ext_", "scauth_", "authress_"}, part: part{set: alnum, least: 5, most: 30},
		then: []part{{".", 1, 1}, {alnum, 4, 6}, {".", 1, 1}, {"ac", 3, 3}, {"-_", 1, 1}, {alnum + "-", 10, 32}, {".", 1, 1}, {base64Set + "-_", 30, 0}}},
	{kind: "definednetworking-key", heads: []string{"dnkey-"}, part: part{set: alnumDash + "=", least: 60}},
	{kind: "infracost-key", heads: []string{"ico-"}, part: part{set: alnum, least: 32, most: 32}, digit: true},
	{kind: "posthog-key", heads: []string{"phx_"}, part: part{set: alnum + "_", least: 40}},
	{kind: "prefect-token", heads: []string{"pnu_", "pnb_"}, part: part{set: alnum, least: 36}},

	// Code and packages.
	{kind: "github-token", heads: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, part: part{set: alnum, least: 20}},
	{kind: "github-token", heads: []string{"github_pat_"}, part: part{set: alnumDash, least: 20}},
	{kind: "gitlab-token", heads: []string{"glpat-", "glrt-"}, part: part{set: alnumDash, least: 27}, then: []part{{".", 1, 1}, {lowerDigits, 9, 9}}},
	{kind: "gitlab-token", heads: []string{"glpat-", "glrt-", "glrtr-", "gldt-", "glft-", "glsoat-", "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glffct-", "glwt-"},
		part: part{set: alnumDash, least: 16}},
	{kind: "gitlab-token", heads: []string{"GR1348941"}, part: part{set: alnumDash, least: 20}},
	{kind: "gitlab-session", heads: []string{"gitlab_session="}, part: part{set: alnum, least: 32}},
	{kind: "atlassian-token", heads: []string{"ATATT3", "ATCTT3"}, part: part{set: alnumDash + "=", least: 100}},
	{kind: "atlassian-token", heads: []string{"ATBB"}, part: part{set: alnum, least: 28, most: 36}, mixed: true, alone: true},
	{kind: "sourcegraph-token", heads: []string{"sgp_", "slk_"}, part: part{set: alnum + "_", least: 40}},
	{kind: "npm-token", heads: []string{"npm_"}, part: part{set: alnum, least: 36}},
	{kind: "pypi-token", heads: []string{"pypi-"}, part: part{set: alnumDash, least: 50}},
	{kind: "rubygems-key", heads: []string{"rubygems_"}, part: part{set: hexDigits, least: 40}},
	{kind: "nuget-key", heads: []string{"oy2"}, part: part{set: lowerDigits, least: 43, most: 43}, digit: true, alone: true},
	{kind: "clojars-token", heads: []string{"CLOJARS_"}, part: part{set: alnum, least: 50}},
	{kind: "docker-token", heads: []string{"dckr_pat_"}, part: part{set: alnumDash, least: 20}},
	{kind: "jfrog-key", heads: []string{"AKCp"}, part: part{set: alnum, least: 60}},
	{kind: "jfrog-token", heads: []string{"cmVmd"}, part: part{set: alnum, least: 59, most: 59}, alone: true},
	{kind: "sonar-token", heads: []string{"squ_", "sqp_", "sqa_"}, part: part{set: alnumDash + "=", least: 40}, digit: true},
	{kind: "circleci-token", heads: []string{"CCIPAT_"}, part: part{set: alnum + "_", least: 40}},
	{kind: "buildkite-token", heads: []string{"bkua_"}, part: part{set: hexDigits, least: 40}},
	{kind: "postman-key", heads: []string{"PMAK-"}, part: part{set: hexDigits + "-", least: 50}},
	{kind: "readme-key", heads: []string{"rdme_"}, part: part{set: alnum, least: 60}},

	// Messages and pages.
	{kind: "slack-token", heads: []string{"xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxo-"}, part: part{set: alnumDash, least: 10}},
	{kind: "slack-token", heads: []string{"xapp-"}, part: part{set: alnumDash, least: 10}, digit: true},
	{kind: "webhook", heads: []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"}, part: part{set: alnum + "+/", least: 20}},
	{kind: "webhook", heads: []string{"webhook.office.com/webhookb2/"}, part: part{set: alnum + "-@/", least: 60}},
	{kind: "webhook", heads: []string{"hooks.zapier.com/hooks/catch/"}, part: part{set: alnum + "/", least: 10}},
	{kind: "webhook", heads: []string{"api/webhooks/"}, part: part{set: alnumDash + "/", least: 60}},
	{kind: "sendgrid-key", heads: []string{"SG."}, part: part{set: alnumDot + "=", least: 60}},
	{kind: "brevo-key", heads: []string{"xkeysib-", "xsmtpsib-"}, part: part{set: alnum + "-", least: 60}},
	{kind: "mailgun-key", heads: []string{"key-", "pubkey-"}, part: part{set: hexDigits, least: 32, most: 32}},
	{kind: "resend-key", heads: []string{"re_"}, part: part{set: alnum, least: 8, most: 8}, then: []part{{"_", 1, 1}, {alnum, 20, 0}}, digit: true},
	{kind: "twilio-key", heads: []string{"SK"}, part: part{set: hexDigits, least: 32, most: 32}, alone: true},
	{kind: "facebook-token", heads: []string{"EAA"}, part: part{set: alnum, least: 100}, digit: true, alone: true},
	{kind: "twitter-token", heads: []string{"AAAAAAAAAAAAAAAAAAAAAA"}, part: part{set: alnum + "%", least: 80, most: 120}, digit: true, alone: true},
	{kind: "notion-token", heads: []string{"ntn_"}, part: part{set: alnum, least: 40}},
	{kind: "notion-token", heads: []string{"secret_"}, part: part{set: alnum, least: 43, most: 43}, mixed: true},
	{kind: "linear-key", heads: []string{"lin_api_", "lin_oauth_"}, part: part{set: alnum, least: 32}},
	{kind: "airtable-token", heads: []string{"pat"}, part: part{set: alnum, least: 14, most: 14}, then: []part{{".", 1, 1}, {hexDigits, 64, 64}}},
	{kind: "typeform-token", heads: []string{"tfp_"}, part: part{set: alnumDot + "=", least: 40}},
	{kind: "figma-token", heads: []string{"figd_"}, part: part{set: alnumDash, least: 36}},
	{kind: "contentful-token", heads: []string{"CFPAT-"}, part: part{set: alnumDash, least: 40}},
	{kind: "dropbox-token", heads: []string{"sl."}, part: part{set: alnumDash + "=", least: 100}},
	{kind: "frameio-token", heads: []string{"fio-u-"}, part: part{set: alnumDash + "=", least: 50}},
	{kind: "beamer-token", heads: []string{"b_"}, part: part{set: alnumDash + "=", least: 44, most: 44}, mixed: true, alone: true},
	{kind: "adafruit-key", heads: []string{"aio_"}, part: part{set: alnum, least: 28, most: 28}},
	{kind: "adobe-secret", heads: []string{"p8e-"}, part: part{set: alnum, least: 32, most: 32}},
	{kind: "mapbox-token", heads: []string{"pk.", "sk.", "tk."}, part: part{set: alnumDash, least: 50}, then: []part{{".", 1, 1}, {alnumDash, 20, 0}}, digit: true},
	{kind: "intra42-secret", heads: []string{"s-s4t2ud-", "s-s4t2af-"}, part: part{set: hexDigits, least: 60}},
	{kind: "settlemint-token", heads: []string{"sm_aat_", "sm_pat_", "sm_sat_"}, part: part{set: alnum, least: 16}},

	// Money and goods.
	{kind: "stripe-key", heads: []string{"sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"}, part: part{set: alnum, least: 10}, digit: true},
	{kind: "stripe-key", heads: []string{"whsec_"}, part: part{set: base64Set, least: 24}},
	{kind: "square-token", heads: []string{"sq0atp-", "sq0csp-"}, part: part{set: alnumDash, least: 22}},
	{kind: "square-token", heads: []string{"EAAA"}, part: part{set: alnumDash, least: 22, most: 60}, mixed: true, alone: true},
	{kind: "shopify-token", heads: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, part: part{set: alnum, least: 32}},
	{kind: "plaid-token", heads: []string{"access-sandbox-", "access-development-", "access-production-"}, part: part{set: hexDigits + "-", least: 36, most: 36}},
	{kind: "razorpay-key", heads: []string{"rzp_live_", "rzp_test_"}, part: part{set: alnum, least: 14}},
	{kind: "flutterwave-key", heads: []string{"FLWSECK-", "FLWSECK_TEST-", "FLWPUBK-", "FLWPUBK_TEST-"}, part: part{set: alnum + "-", least: 12}, digit: true},
	{kind: "easypost-key", heads: []string{"EZAK", "EZTK"}, part: part{set: alnum, least: 54, most: 54}},
	{kind: "shippo-token", heads: []string{"shippo_live_", "shippo_test_"}, part: part{set: hexDigits, least: 40}},
	{kind: "duffel-token", heads: []string{"duffel_live_", "duffel_test_"}, part: part{set: alnumDash + "=", least: 40}},
	{kind: "lob-key", heads: []string{"live_", "test_"}, part: part{set: hexDigits, least: 35, most: 35}, alone: true},
	{kind: "lob-key", heads: []string{"live_pub_", "test_pub_"}, part: part{set: hexDigits, least: 31, most: 31}, alone: true},
	{kind: "gocardless-token", heads: []string{"live_"}, part: part{set: alnumDash + "=", least: 40, most: 40}, mixed: true, alone: true},

	// Ours.
	{kind: "chorus-token", heads: []string{"chorus_"}, part: part{set: alnum, least: 40}},
}
