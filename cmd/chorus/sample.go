package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/banner"
	"chorus/internal/sample"
)

func (c *program) sampleCommand() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "sample [DIR]", Short: "Create a small sample project to try Chorus on", Args: between(0, 1),
		Long: `Creates a small project with a bug, and a test that finds it, in a new folder: chorus-sample
unless you name another. Every model can fix it, even the built-in offline one.`,
		Example: `  chorus sample
  cd chorus-sample && chorus chat "fix the failing test"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "chorus-sample"
			if len(args) == 1 {
				dir = args[0]
			}
			if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
				return fmt.Errorf("%s exists and is not empty; choose another folder", dir)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := sample.Write(cmd.Context(), dir); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]string{"dir": filepath.Clean(dir)})
			}
			fmt.Fprintf(c.out(), "The sample project is in %s. Try:\n\n  cd %s\n  %s run \"fix the failing test\"\n", dir, filepath.Clean(dir), banner.CommandName(os.Args[0], exec.LookPath))
			return nil
		},
	})
}
