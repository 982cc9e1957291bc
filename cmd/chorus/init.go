package main

import (
	"bufio"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/firstconfig"
	"chorus/internal/config"
	"chorus/internal/settings"
	"chorus/internal/transport/cli"
)

func (c *program) initCommand() *cobra.Command {
	var a firstconfig.Answers
	folder, force, show := "", false, false
	cmd := &cobra.Command{
		Use: "init", Short: "Create a configuration by answering three questions", Args: exactly(0),
		Long: `Asks which model answers, where people talk to it and what it may do without asking, then
writes a commented configuration into the home. Every answer has a flag, so it also works
without a terminal; anything not answered keeps its default. An existing configuration is
never replaced without confirmation (or --force), and is kept next to the new one.`,
		Example: `  chorus init
  chorus init --model anthropic/claude-sonnet-4-5 --where local --permissions standard
  chorus init --print                print the configuration, write nothing`,
	}
	f := cmd.Flags()
	f.StringVarP(&a.Model, "model", "m", "", "provider/model (chorus models lists them)")
	f.StringVar(&a.Where, "where", "", "local, discord or proxy")
	f.StringVar(&a.May, "permissions", "", "standard, guarded, locked or open")
	f.StringVar(&folder, "config", "", "configuration folder (default $CHORUS_CONFIG, $CONFIG_PATH or config in the home folder)")
	f.BoolVar(&force, "force", false, "replace an existing configuration; it is kept as shared.yaml.old")
	f.BoolVar(&show, "print", false, "print it instead of writing it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := settings.ConfigOptions(c.getenv, c.home, folder)
		if err != nil {
			return err
		}
		path := filepath.Join(o.Dir, "shared.yaml")
		in := bufio.NewReader(c.console.In)
		if !show {
			if err := firstconfig.MayReplace(c.console, in, path, force); err != nil {
				return err
			}
		}
		var models firstconfig.Models
		err = c.execute(cmd.Context(), func(to cli.Connection) (err error) {
			models, err = firstconfig.FindModels(cmd.Context(), to)
			return err
		})
		if err != nil {
			return err
		}
		if err := a.Ask(c.console, in, models); err != nil {
			return err
		}
		text := a.YAML()
		if show {
			_, err := fmt.Fprint(c.out(), text)
			return err
		}
		if err := firstconfig.Write(path, text); err != nil {
			return err
		}
		fmt.Fprintf(c.out(), "Wrote %s\n", path)
		if _, problems := config.Load(o, config.Ask{}); problems.Err() != nil {
			return fmt.Errorf("the configuration has other errors: %w; see all of them with `chorus config check`", problems.Err())
		}
		fmt.Fprint(c.out(), a.Next())
		return nil
	}
	return cmd
}
