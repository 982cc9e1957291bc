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
	// It fails only for an unknown flag.
	_ = root.RegisterFlagCompletionFunc("theme", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return theme.Names(), cobra.ShellCompDirectiveNoFileComp
	})
}

// checkTheme applies the theme named on the command line.
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

// inTheme applies the configured theme, unless the command line or the environment overrides it.
func (c *program) inTheme(configured string) {
	if !c.themed && !c.console.Plain && !repl.NoColor(c.getenv) {
		c.console = c.console.WithTheme(configured)
	}
	c.themed = true
}

// look is the theme for standard output. Other code reports an unreadable configuration.
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

// keepTheme stores a theme in the home's configuration.
func keepTheme(a *app.App) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := operations.SetSetting.Call(ctx, a.Service.GuestOperations(), a.Service.LocalCaller(), operations.SettingValue{Key: "theme", Value: name})
		return err
	}
}
