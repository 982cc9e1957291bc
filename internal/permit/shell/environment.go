package shell

import (
	"path"
	"slices"
	"strings"
)

// runVariables decide which programs, libraries or start files are used.
var runVariables = strings.Fields(`PATH BASH_ENV ENV IFS SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH SHELL HOME FPATH ZDOTDIR BASH_LOADABLES_PATH
EXECIGNORE GLOBIGNORE XDG_CONFIG_HOME INPUTRC FCEDIT EDITOR VISUAL PAGER MANPAGER MANOPT BROWSER LESSOPEN LESSCLOSE LESSKEYIN LESSKEY
RSYNC_RSH RSYNC_CONNECT_PROG TAR_OPTIONS CVS_RSH GCONV_PATH
PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONUSERBASE PYTHONEXECUTABLE PYTHONWARNINGS PYTEST_PLUGINS PYTEST_ADDOPTS
PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE LUA_INIT LUA_PATH LUA_CPATH PHPRC PHP_INI_SCAN_DIR R_PROFILE
R_PROFILE_USER R_ENVIRON R_ENVIRON_USER ERL_FLAGS ELIXIR_ERL_OPTIONS DOTNET_STARTUP_HOOKS CLASSPATH JAVA_HOME JAVA_TOOL_OPTIONS _JAVA_OPTIONS
JDK_JAVA_OPTIONS JAVA_OPTS MAVEN_OPTS GRADLE_OPTS GROOVY_HOME MAKEFLAGS MAKEFILES GNUMAKEFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTC RUSTDOC RUSTFLAGS
RUSTUP_HOME RUSTUP_TOOLCHAIN GOROOT GOTOOLDIR GOENV GOBIN GCC_EXEC_PREFIX COMPILER_PATH KUBECONFIG DOCKER_HOST DOCKER_CONFIG DOCKER_CONTEXT CONTAINER_HOST
RIPGREP_CONFIG_PATH FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS CURL_HOME WGETRC OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES TERMINFO
CLOUDSDK_PYTHON CLOUDSDK_PYTHON_ARGS ANSIBLE_CONFIG VIMINIT EXINIT MYVIMRC SQLITE_HISTORY PSQLRC POSIXLY_CORRECT`)

// runPrefixes are families of such variables.
var runPrefixes = []string{
	"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "CARGO_", "npm_config_", "NPM_CONFIG_", "CORECLR_", "COR_", "LUA_INIT_", "PIP_", "UV_", "PERL_", "JULIA_", "SUDO_",
}

// harmlessVariables are members of the families that start nothing.
var harmlessVariables = strings.Fields(`GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE GIT_TERMINAL_PROMPT
GIT_OPTIONAL_LOCKS GIT_MERGE_AUTOEDIT CARGO_TERM_COLOR CARGO_INCREMENTAL CARGO_TARGET_DIR CARGO_NET_OFFLINE CARGO_BUILD_JOBS CARGO_TERM_VERBOSE
npm_config_loglevel npm_config_yes NPM_CONFIG_LOGLEVEL PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_CACHE_DIR PIP_QUIET UV_NO_PROGRESS UV_OFFLINE`)

// compilers are the programs that CC and similar variables usually name.
var compilers = strings.Fields(`cc gcc g++ c++ clang clang++ ld ld.lld lld mold gold ar ranlib tcc musl-gcc go rustc`)

// changesPrograms says why setting a variable makes it unknown what runs, or "".
func changesPrograms(name, value string, known bool) string {
	why := name + " changes what runs"
	switch name {
	case "GOFLAGS", "NODE_OPTIONS":
		// Sizes and switches are common here; programs and modules are not.
		for _, s := range []string{"exec", "require", "import", "loader", "-r", "modfile", "overlay"} {
			known = known && !strings.Contains(value, s)
		}
		if !known {
			return why
		}
		return ""
	case "PYTHONPATH", "NODE_PATH":
		if known && ownFolders(value) {
			return ""
		}
		return why
	case "CC", "CXX", "CPP", "LD", "AR", "AS", "FC", "HOSTCC", "CC_FOR_TARGET":
		if known && (value == "" || slices.Contains(compilers, strings.TrimRight(value, "-0123456789."))) {
			return ""
		}
		return why
	}
	if strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_EDITOR") {
		if known && (value == "cat" || value == "true" || value == ":" || value == "") {
			return ""
		}
		return why
	}
	if slices.Contains(harmlessVariables, name) {
		return ""
	}
	if slices.Contains(runVariables, name) || strings.HasSuffix(name, "_ASKPASS") || strings.HasSuffix(name, "_RSH") ||
		slices.ContainsFunc(runPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return why
	}
	return ""
}

// ownFolders reports whether all folders of a list are below the working directory, which
// an interpreter searches anyway.
func ownFolders(list string) bool {
	for _, dir := range strings.Split(list, ":") {
		c := path.Clean(dir)
		if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") || strings.HasPrefix(c, "~") {
			return false
		}
	}
	return true
}

// setsVariable says why a builtin that sets variables changes what runs after it, or "".
func setsVariable(prog string, args []word) string {
	switch prog {
	case "read", "mapfile", "readarray", "printf", "getopts", "unset", "let", "export", "declare", "typeset", "local", "readonly", "wait":
	default:
		return ""
	}
	for i, x := range args {
		if prog == "printf" && (i == 0 || args[i-1].value != "-v") && !strings.HasPrefix(x.value, "-v") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(x.value, "-v"), "=")
		if why := changesPrograms(name, value, false); why != "" && isName(name) {
			return why
		}
	}
	return ""
}
