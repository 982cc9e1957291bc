package main

import (
	"os"

	"github.com/spf13/cobra"

	"chorus/internal/sandbox/keep"
)

// keepCommand is what the server starts for each process that agents leave running. People do not type it.
func (c *program) keepCommand() *cobra.Command {
	return &cobra.Command{Use: keep.Arg + " DIR", Short: "Look after a process in the background", Hidden: true, Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error { return keep.Main(args[0], os.Stdin, os.Stdout) }}
}
