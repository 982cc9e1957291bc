package hosttools

import (
	"cmp"
	"path/filepath"
	"strings"

	"chorus/internal/sandbox"
)

// inHome are folders in a home that contain toolchains and nothing personal.
var inHome = []string{
	".pyenv", ".rustup", ".nvm", ".rbenv", ".sdkman", ".asdf", ".volta", ".dotnet", ".ghcup", ".opam", ".juliaup", "miniconda3", "anaconda3",
	".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/pipx", ".local/share/fnm", ".bun/bin", ".deno/bin",
}

// byVariable are variables that name a toolchain's folder.
var byVariable = []string{
	"GOROOT", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "JAVA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "DOTNET_ROOT", "ANDROID_HOME", "GEM_HOME", "BUN_INSTALL",
}

// homeVariables are variables without which a program looks in the sandbox's home.
var homeVariables = map[string]string{"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm"}

// beside are folders that programs look for next to their bin.
var beside = []string{"lib", "lib64", "libexec", "share"}

// programs shows the folders of the PATH, and the folders next to a bin outside the home.
func (f *finder) programs() {
	for _, dir := range filepath.SplitList(f.env["PATH"]) {
		if !filepath.IsAbs(dir) || !f.show(dir) {
			continue
		}
		prefix := filepath.Dir(filepath.Clean(dir))
		switch {
		case filepath.Base(dir) != "bin" || f.Home != "" && sandbox.Within(dir, f.Home):
		case exists(filepath.Join(prefix, "src", "runtime")): // Go's
			f.show(prefix)
		case sandbox.Within(prefix, "/opt") && prefix != "/opt", filepath.Base(prefix) == ".linuxbrew":
			f.show(prefix)
		default:
			for _, name := range beside {
				f.show(filepath.Join(prefix, name))
			}
		}
	}
	if !f.Root { // root could read what services keep next to their programs
		f.show("/opt")
	}
}

// toolchains shows the known toolchains and tells programs where they are.
func (f *finder) toolchains() {
	for _, name := range byVariable {
		if dir := f.env[name]; filepath.IsAbs(dir) {
			f.show(dir)
		}
	}
	if f.Home != "" {
		for _, name := range inHome {
			f.show(filepath.Join(f.Home, name))
		}
		for name, folder := range homeVariables {
			if dir := filepath.Join(f.Home, folder); f.env[name] == "" && exists(dir) {
				f.set(name, dir)
			}
		}
	}
	f.golang()
	f.cargo()
}

func (f *finder) set(name, value string) { f.view.Env = append(f.view.Env, name+"="+value) }

// golang shows the module cache. Without a network it is used directly. With one,
// the sandbox has its own cache and takes from this one first.
func (f *finder) golang() {
	gopath, _, _ := strings.Cut(f.env["GOPATH"], string(filepath.ListSeparator))
	if gopath == "" && f.Home != "" {
		gopath = filepath.Join(f.Home, "go")
	}
	modules := f.env["GOMODCACHE"]
	if gopath != "" {
		f.show(filepath.Join(gopath, "bin"))
		modules = cmp.Or(modules, filepath.Join(gopath, "pkg", "mod"))
	}
	switch {
	case !filepath.IsAbs(modules) || !exists(modules) || !f.show(modules):
	case !f.Network:
		f.set("GOMODCACHE", modules)
	default:
		others := cmp.Or(f.env["GOPROXY"], "https://proxy.golang.org,direct")
		f.set("GOMODCACHE", "")
		f.set("GOPROXY", "file://"+filepath.Join(modules, "cache", "download")+","+others)
	}
}

// cargo shows what cargo has fetched, but not the user's registry credentials.
func (f *finder) cargo() {
	dir := f.env["CARGO_HOME"]
	if dir == "" && f.Home != "" {
		dir = filepath.Join(f.Home, ".cargo")
	}
	if !filepath.IsAbs(dir) || !exists(dir) {
		return
	}
	fetched := false
	for _, name := range []string{"bin", "registry", "git"} {
		fetched = f.show(filepath.Join(dir, name)) && name == "registry" || fetched
	}
	switch {
	case !fetched || f.Network:
		f.set("CARGO_HOME", "")
	default:
		f.set("CARGO_HOME", dir)
		f.set("CARGO_NET_OFFLINE", "true")
	}
}
