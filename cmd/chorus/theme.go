package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/config"
	"chorus/internal/operations"
	"chorus/internal/settings"
	"chorus/internal/theme"
	"chorus/internal/transport/repl"
	"chorus/internal/usage"
)

func (c *program) themeFlag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&c.theme, "theme", "", "colours: "+strings.Join(theme.Names(), ", ")+" (default: as configured, else auto)")
	// It fails only for a flag that is not there.
	_ = root.RegisterFlagCompletionFunc("theme", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return theme.Names(), cobra.ShellCompDirectiveNoFileComp
	})
}

// checkTheme takes the theme that the command line names.
func (c *program) checkTheme() error {
	if c.theme == "" {
		return nil
	}
	if !slices.Contains(theme.Names(), c.theme) {
		return &usage.Error{Err: fmt.Errorf("--theme %s: no such theme; choose one of %s", c.theme, strings.Join(theme.Names(), ", "))}
	}
	if c.themed = true; !c.console.Plain {
		c.console = c.console.WithTheme(c.theme)
	}
	return nil
}

// inTheme puts the console into the theme of the configuration, unless the command line or the environment has said otherwise.
func (c *program) inTheme(configured string) {
	if !c.themed && !c.console.Plain && !repl.NoColor(c.getenv) {
		c.console = c.console.WithTheme(configured)
	}
	c.themed = true
}

// look is how things look on standard output. A configuration that cannot be read is for others to complain about.
func (c *program) look() theme.Theme {
	if !c.themed && c.console.OutTTY {
		name := theme.Auto
		if o, err := settings.ConfigOptions(c.getenv, c.home, ""); err == nil {
			if shared, _ := config.Load(o, config.Ask{}); shared != nil {
				name = shared.Theme
			}
		}
		c.inTheme(name)
	}
	return c.console.OutLook()
}

// keepTheme has the configuration of the home name a theme from now on.
func keepTheme(a *app.App) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := operations.SetSetting.Call(ctx, a.Service.GuestOperations(), a.Service.LocalCaller(), operations.SettingValue{Key: "theme", Value: name})
		return err
	}
}
