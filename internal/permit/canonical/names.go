package canonical

// isReserved reports whether bash reads a word as part of its grammar where a command name is expected.
func isReserved(name string) bool {
	switch name {
	case "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select", "time", "coproc",
		"{", "}", "!", "[[", "]]":
		return true
	}
	return false
}

// builtin reports whether a name is a builtin of bash. why says why the
// builtin is not allowed in a canonical text, or is "".
func builtin(name string) (is bool, why, plain string) {
	switch name {
	case "cd", "echo", "printf", "test", "[", "true", "false", ":", "exit", "pwd", "unset", "set", "shift", "return", "break", "continue", "wait",
		"read", "type", "command", "umask", "ulimit", "times", "kill", "jobs", "getopts", "pushd", "popd", "dirs", "mapfile", "readarray", "shopt", "trap":
		return true, "", ""
	case "eval":
		return true, "eval runs a text that is put together when it runs", "write the command itself"
	case "source", ".":
		return true, name + " reads a file that can change what every later command means", "run the file with bash, or call the program by its path"
	case "exec":
		return true, "exec replaces the shell", "leave it out"
	case "let":
		return true, "let evaluates its words", "use $(( ))"
	case "alias", "unalias", "enable", "hash", "complete", "compgen", "compopt", "bind", "builtin":
		return true, name + " changes what names mean", ""
	case "declare", "typeset", "export", "readonly", "local", "nameref":
		return true, name + " is put together from parts", "write it without quotes"
	case "fc", "history", "caller", "disown", "suspend", "fg", "bg", "logout", "help":
		return true, name + " is for a person at a terminal", ""
	}
	return false, "", ""
}

func isShell(name string) bool {
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "mksh", "rbash", "ash", "busybox", "fish", "csh", "tcsh":
		return true
	}
	return false
}

// isPOSIX reports whether a shell reads the sh language.
func isPOSIX(name string) bool {
	switch name {
	case "bash", "sh", "dash", "ash", "rbash", "busybox":
		return true
	}
	return false
}

// readsNames reports whether a program only prints or looks up its
// arguments, so that a shell's name among them starts nothing.
func readsNames(name string) bool {
	switch name {
	case "echo", "printf", "which", "type", "ls", "cat", "head", "tail", "wc", "grep", "rg", "file", "stat", "cd", "test", "[", "basename", "dirname", "readlink", "realpath", "pgrep":
		return true
	}
	return false
}
