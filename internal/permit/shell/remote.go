package shell

import (
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// nameRemote gives a command that changes things on other machines the name
// tool:remote:<text>, so that one rule can match all of them.
func nameRemote(p *Part, prog string, words []word) {
	if prog == "git" {
		return
	}
	yes, maybe := changesRemote(prog, words[1:])
	if yes {
		p.addExtra().stricter = append(p.addExtra().stricter, action.Join("remote", prog+strings.TrimPrefix(p.Text, words[0].text)))
	} else if maybe {
		p.addExtra().maybe = append(p.addExtra().maybe, action.Join("remote", ""))
	}
}

// readingVerbs are the subcommands by which a forge or cloud program only reads; all others
// count as changes.
var readingVerbs = map[string][]string{
	"gh": {"list", "view", "status", "diff", "checks", "checkout", "clone", "download", "browse", "watch", "search", "get", "verify",
		"co", "repos", "issues", "prs", "code", "commits", "ls", "token", "completion", "help", "version", "setup-git", "field-list", "item-list", "list-files"},
	"glab": {"list", "view", "status", "diff", "checkout", "clone", "get", "ls", "show", "trace", "lint", "help", "version", "issues", "completion"},
	"hub":  {"clone", "browse", "status", "list", "show", "pr", "help", "version", "ci-status", "checkout", "fetch"},
	"doctl": {"list", "get", "ls", "show", "help", "version", "list-by-droplet", "logs", "completion", "kubeconfig",
		"get-ca", "list-droplets", "options", "ratelimit"},
	"gcloud": {"list", "describe", "get", "info", "version", "help", "read", "get-iam-policy", "print-access-token", "get-value", "tail", "topic"},
	"gsutil": {"ls", "cat", "du", "stat", "hash", "version", "help", "lifecycle"},
	"az":     {"list", "show", "version", "help", "get", "list-locations", "account", "find"},
	"kubectl": {"get", "describe", "logs", "top", "explain", "version", "cluster-info", "api-resources", "api-versions", "diff", "events",
		"view", "current-context", "get-contexts", "get-clusters", "can-i", "wait", "help", "completion", "kustomize", "history", "status"},
	"oc":        {"get", "describe", "logs", "status", "version", "whoami", "explain", "help", "project", "projects"},
	"helm":      {"list", "ls", "get", "show", "search", "status", "template", "lint", "version", "history", "repo", "dependency", "env", "help", "pull", "package", "create", "verify"},
	"terraform": {"plan", "validate", "fmt", "init", "show", "output", "list", "version", "providers", "graph", "get", "console", "help", "test"},
	"tofu":      {"plan", "validate", "fmt", "init", "show", "output", "list", "version", "providers", "graph", "get", "console", "help", "test"},
	"pulumi":    {"preview", "stack", "version", "whoami", "logs", "about", "help", "ls", "get"},
	"flyctl":    {"status", "logs", "list", "info", "version", "show", "help", "doctor"}, "fly": {"status", "logs", "list", "info", "version", "show", "help", "doctor"},
	"heroku":   {"logs", "info", "list", "status", "help", "version", "get", "ps", "apps", "releases"},
	"vercel":   {"ls", "list", "inspect", "logs", "whoami", "help", "dev", "build", "pull"},
	"netlify":  {"status", "build", "dev", "help", "list", "logs:function", "sites:list"},
	"wrangler": {"dev", "tail", "whoami", "list", "help", "info", "types"},
	"firebase": {"emulators:start", "emulators:exec", "serve", "help", "login:list", "projects:list", "apps:list"},
}

// publishers are programs of which a few subcommands publish something.
var publishers = map[string][]string{
	"npm":  {"publish", "unpublish", "deprecate", "dist-tag", "owner", "access", "token", "team", "org", "hook", "star", "unstar"},
	"pnpm": {"publish"}, "yarn": {"publish"}, "bun": {"publish"}, "lerna": {"publish"}, "changeset": {"publish"}, "jsr": {"publish"}, "deno": {"publish"},
	"cargo": {"publish", "yank", "owner", "release"}, "twine": {"upload", "register"}, "poetry": {"publish"}, "uv": {"publish"}, "flit": {"publish"},
	"hatch": {"publish"}, "rye": {"publish"}, "pdm": {"publish"}, "gem": {"push", "yank", "owner"}, "docker": {"push"}, "podman": {"push"},
	"nerdctl": {"push"}, "buildah": {"push"}, "skopeo": {"copy", "delete", "sync"}, "crane": {"push", "copy", "cp", "delete", "tag", "append", "mutate"},
	"oras": {"push", "copy", "attach"}, "cosign": {"sign", "attest", "attach"}, "mvn": {"deploy", "release:perform"}, "mvnw": {"deploy", "release:perform"},
	"nuget": {"push", "delete"}, "dotnet": {"push"}, "goreleaser": {"release", "publish"}, "vsce": {"publish", "unpublish"}, "ovsx": {"publish"},
	"pod": {"push", "delete"}, "mix": {"hex.publish"}, "semantic-release": {""}, "np": {""}, "release-it": {""}, "conda": {"upload"},
	"anaconda": {"upload"}, "luarocks": {"upload"}, "dart": {"publish"}, "flutter": {"publish"}, "stack": {"upload"}, "cabal": {"upload"},
	"ansible-playbook": {""}, "ansible": {""}, "fastlane": {"release", "deliver", "pilot", "supply"}, "eas": {"submit", "update"},
	"gradle": {"publish", "uploadArchives"}, "gradlew": {"publish", "uploadArchives"}, "sam": {"deploy", "delete"}, "cdk": {"deploy", "destroy"},
	"serverless": {"deploy", "remove"}, "sls": {"deploy", "remove"}, "aws-vault": {"exec"}, "s3cmd": {"put", "del", "rm", "sync", "mv", "cp", "mb", "rb"},
	"rclone": {"copy", "sync", "move", "delete", "purge", "rcat", "copyto", "moveto", "mkdir", "rmdir"}, "mc": {"cp", "rm", "mb", "rb", "mv", "mirror"},
	"ftp": {""}, "lftp": {""}, "tftp": {""}, "mail": {""}, "mailx": {""}, "sendmail": {""}, "mutt": {""}, "swaks": {""}, "msmtp": {""},
}

// unknownMark stands for a word whose value is not known.
const unknownMark = "\x00"

// changesRemote reports whether a command changes things on other machines, and whether it
// may, depending on its unknown words.
func changesRemote(prog string, args []word) (yes, maybe bool) {
	var room [12]string // enough for most commands
	known := room[:0]
	for _, x := range args {
		if x.known || x.glob {
			known = append(known, x.value)
		} else {
			maybe = true
			known = append(known, unknownMark)
		}
	}
	switch prog {
	case "curl":
		yes = curlSends(known)
		return yes, maybe
	case "wget":
		return hasOption(known, "--post-data", "--post-file", "--method", "--body-data", "--body-file"), maybe
	case "http", "https", "xh", "xhs", "httpie":
		return httpieSends(known), maybe
	case "aws":
		return awsChanges(known), maybe
	case "scp", "rsync", "sftp":
		return len(known) > 0 && (strings.Contains(known[len(known)-1], ":") || strings.HasPrefix(known[len(known)-1], "rsync://")), maybe
	case "gh", "glab":
		if slices.Contains(known, "api") {
			return apiSends(known), maybe
		}
	case "python", "python3":
		for i, a := range known {
			if a == "-m" && i+1 < len(known) {
				return changesRemote(known[i+1], args[i+2:])
			}
		}
		return false, false
	}
	if verbs, ok := readingVerbs[prog]; ok {
		return notReading(verbs, known), maybe
	}
	if verbs, ok := publishers[prog]; ok {
		return publishes(prog, verbs, known), maybe
	}
	return false, false
}

// notReading is true unless one of the first words is a subcommand that only reads, or the
// program is only asked for help.
func notReading(verbs, args []string) bool {
	plain := 0
	for _, a := range args {
		if a == "--help" || a == "-h" || a == "--version" || a == "--dry-run" || a == "--dry-run=client" {
			return false
		}
		if strings.HasPrefix(a, "-") {
			continue
		}
		if slices.Contains(verbs, a) || a == unknownMark {
			return false
		}
		// Names follow the subcommands; a pull request called "list" is none.
		if plain++; plain == 3 {
			break
		}
	}
	return plain > 0
}

func publishes(prog string, verbs, args []string) bool {
	if slices.Contains(verbs, "") {
		return !slices.Contains(args, "--help") && !slices.Contains(args, "--version") && !slices.Contains(args, "--check")
	}
	if slices.Contains(args, "--dry-run") || slices.Contains(args, "--help") || prog == "goreleaser" && slices.Contains(args, "--snapshot") {
		return false
	}
	if (prog == "docker" || prog == "podman") && (slices.Contains(args, "--push") || hasOption(args, "--output") && slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "type=registry") })) {
		return true
	}
	plain := 0
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			plain++
		}
		// Later words are for another program: docker run x git push.
		if plain > 3 || plain > 2 && (prog == "docker" || prog == "podman") {
			return false
		}
		if prog == "gradle" || prog == "gradlew" {
			if strings.HasPrefix(a, "publish") && !strings.HasPrefix(a, "publishToMavenLocal") || a == "uploadArchives" {
				return true
			}
			continue
		}
		if slices.Contains(verbs, a) {
			// "npm run publish" is a script of the project; "npm token list" reads.
			if i > 0 && args[i-1] == "run" {
				continue
			}
			if i+1 < len(args) && (args[i+1] == "ls" || args[i+1] == "list") {
				return false
			}
			return true
		}
	}
	return false
}

func hasOption(args []string, options ...string) bool {
	for _, a := range args {
		for _, o := range options {
			if a == o || strings.HasPrefix(a, o+"=") {
				return true
			}
		}
	}
	return false
}

func readingMethod(m string) bool {
	switch strings.ToUpper(strings.Trim(m, `"'=`)) {
	case "GET", "HEAD", "OPTIONS":
		return true
	}
	return false
}

// curlSends finds the options by which curl sends instead of fetching.
func curlSends(args []string) bool {
	sends, get := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(a, "=")
			if !has {
				value = next
			}
			switch {
			case name == "--request" && !readingMethod(value):
				return true
			case strings.HasPrefix(name, "--data") || name == "--json" || name == "--form" || name == "--form-string":
				sends = true
			case name == "--upload-file" || name == "--mail-rcpt" || name == "--quote":
				return true
			case name == "--get":
				get = true
			}
			continue
		}
		if len(a) < 2 || a[0] != '-' {
			continue
		}
		for j := 1; j < len(a); j++ {
			switch a[j] {
			case 'X':
				m := a[j+1:]
				if m == "" {
					m = next
				}
				if !readingMethod(m) {
					return true
				}
			case 'd', 'F':
				sends = true
			case 'T', 'Q':
				return true
			case 'G':
				get = true
			}
			if strings.IndexByte("XdFTQAbceEhHKmoPrtuUwxyYzC", a[j]) >= 0 {
				break // the rest is its value
			}
		}
	}
	return sends && !get
}

func httpieSends(args []string) bool {
	for _, a := range args {
		switch a {
		case "POST", "PUT", "PATCH", "DELETE":
			return true
		}
		if !strings.HasPrefix(a, "-") && !strings.Contains(a, "://") && !strings.Contains(a, "==") && (strings.Contains(a, "=") || strings.Contains(a, "@")) {
			return true
		}
	}
	return false
}

// apiSends treats gh api and glab api: a field means POST unless a method is given.
func apiSends(args []string) bool {
	method, fields := "", false
	for i, a := range args {
		name, value, has := strings.Cut(a, "=")
		switch {
		case (a == "-X" || a == "--method") && i+1 < len(args):
			method = args[i+1]
		case name == "--method" && has:
			method = value
		case strings.HasPrefix(a, "-X") && len(a) > 2:
			method = a[2:]
		case a == "-f" || a == "-F" || a == "--input" || name == "--field" || name == "--raw-field" || name == "--input":
			fields = true
		case strings.HasPrefix(a, "-f") || strings.HasPrefix(a, "-F"):
			fields = true
		}
	}
	if slices.Contains(args, "graphql") {
		return slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "mutation") || strings.Contains(a, "@") })
	}
	if method != "" {
		return !readingMethod(method)
	}
	return fields
}

func awsChanges(args []string) bool {
	var plain []string
	for _, a := range args {
		if a == "--dryrun" || a == "--dry-run" {
			return false
		}
		if !strings.HasPrefix(a, "-") {
			plain = append(plain, a)
		}
	}
	if len(plain) == 0 {
		return false
	}
	for _, a := range plain[:min(4, len(plain))] {
		for _, v := range []string{"describe", "list", "get", "help", "ls", "wait", "lookup", "search", "batch-get", "query", "scan", "head", "validate", "filter-log", "tail", "presign", "configure"} {
			if a == v || strings.HasPrefix(a, v+"-") {
				return false
			}
		}
	}
	// Copying from a bucket changes nothing there.
	if len(plain) >= 4 && plain[0] == "s3" && (plain[1] == "cp" || plain[1] == "sync") {
		return strings.HasPrefix(plain[3], "s3://")
	}
	return true
}
