package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds.
var version = "dev"

func (c *program) versionCommand() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "version", Short: "Print the version, commit and Go version", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			commit := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						commit = s.Value[:min(12, len(s.Value))]
					}
				}
			}
			if c.json {
				return c.printJSON(map[string]string{"version": version, "commit": commit, "go": runtime.Version()})
			}
			fmt.Fprintf(c.out(), "chorus %s, commit %s, %s\n", version, commit, runtime.Version())
			return nil
		},
	})
}
