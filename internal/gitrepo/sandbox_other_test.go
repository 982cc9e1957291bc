//go:build !linux

package gitrepo

func sandboxInit() {}
