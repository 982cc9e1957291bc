package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/config"
	"chorus/internal/settings"
	"chorus/internal/text"
)

const configLong = `Settings come in layers, the weakest first: built-in values, settings.json and shared.yaml,
guilds/<id>.yaml, what /settings stored for the guild, bots/<name>.yaml,
bots/<name>-<guild>.yaml, agent.json, pinned .config messages of the channels above,
those of the channel, CHORUS_* variables, flags. The files are in config/ of the home
folder, or where --config, CHORUS_CONFIG or CONFIG_PATH says.`

func (c *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check and show the configuration", Long: configLong, RunE: onlySubcommands,
		Example: `  chorus config check
  chorus config show --bot claude --guild 1234
  chorus config schema > chorus.schema.json`,
	}
	folder := ""
	cmd.PersistentFlags().StringVar(&folder, "config", "", "configuration folder (default $CHORUS_CONFIG, $CONFIG_PATH or config in the home folder)")
	cmd.AddCommand(c.configCheck(&folder), c.configShow(&folder), c.configSchema(), c.trustCommand())
	return cmd
}

// problemJSON is a configuration problem in JSON.
type problemJSON struct {
	Severity string `json:"severity"` // error or warning
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Key      string `json:"key,omitempty"`
	Message  string `json:"message"`
}

func (c *program) configCheck(folder *string) *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "check", Short: "Check the configuration and report every mistake", Args: exactly(0),
		Long: `Reads every file and merges them for every bot and guild. Reports all mistakes at once,
each with file, line and column. Exits with 1 if there is an error; warnings are only
shown.`,
		Example: `  chorus config check
  chorus config check --config ./config --json`,
		RunE: func(*cobra.Command, []string) error {
			o, err := settings.ConfigOptions(c.getenv, c.home, *folder)
			if err != nil {
				return err
			}
			files, problems, err := settings.CheckConfig(o, c.getenv, c.home)
			if err != nil {
				return err
			}
			bad := problems.Err() != nil
			if bad {
				c.exit = 1
			}
			if c.json {
				list := []problemJSON{}
				for _, p := range problems {
					list = append(list, problemJSON{severity(p), p.Place.File, p.Place.Line, p.Place.Column, p.Key, p.Text})
				}
				return c.printJSON(map[string]any{"ok": !bad, "problems": list})
			}
			for _, p := range problems {
				fmt.Fprintf(c.out(), "%s: %s\n", severity(p), c.nearHere(p.Error()))
			}
			fmt.Fprintf(c.out(), "%s: %s, %s, %s\n", c.nearHere(o.Dir), text.Count(len(files.Bots()), "bot"),
				text.Count(len(problems.Errors()), "error"), text.Count(len(problems.Warnings()), "warning"))
			return nil
		},
	})
}

func severity(p config.Problem) string {
	if p.Warning {
		return "warning"
	}
	return "error"
}

// nearHere shortens a path below the current directory.
func (c *program) nearHere(text string) string {
	dir, err := os.Getwd()
	if err != nil || dir == string(filepath.Separator) {
		return text
	}
	return strings.TrimPrefix(text, dir+string(filepath.Separator))
}

func (c *program) configShow(folder *string) *cobra.Command {
	var bot, guild, channel string
	var pins, parents []string
	var set bool
	cmd := c.jsonFlag(&cobra.Command{
		Use: "show", Short: "Show a bot's settings, and where each value came from", Args: exactly(0),
		Long: `Merges the layers and prints every value with the file and line it came from. Secrets
are masked. With --channel it includes the channel's pinned messages as the server last
read them; --pin and --parent-pin try a message from a file instead.`,
		Example: `  chorus config show --bot claude
  chorus config show --bot claude --guild 1234 --pin pinned.txt --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := settings.ConfigOptions(c.getenv, c.home, *folder)
			if err != nil {
				return err
			}
			ask, err := settings.ConfigAsk(c.getenv, c.home, bot, guild)
			if err != nil {
				return err
			}
			if ask.Pins, err = readPins(parents, pins); err != nil {
				return err
			}
			files, problems := config.ReadFiles(o)
			if channel != "" && len(ask.Pins) == 0 && problems.Err() == nil {
				ask.Pins = c.storedPins(cmd.Context(), bot, guild, channel)
			}
			var found *config.Bot
			if problems.Err() == nil {
				if bot != "" && !files.Has(bot) && ask.Agent == nil && ask.Definition == nil {
					c.warn(fmt.Sprintf("there is no file bots/%s.yaml%s", bot, orEmpty(" (there are: ", strings.Join(files.Bots(), ", "), ")")))
				}
				var more config.Problems
				found, more = files.Bot(ask)
				problems = append(problems, more...)
			}
			for _, p := range problems.Warnings() {
				c.warn(c.nearHere(p.Error()))
			}
			if err := problems.Err(); err != nil {
				return errors.Join(errors.New("the configuration has errors"), err)
			}
			if c.json {
				return c.printJSON(found.Rows())
			}
			return c.showRows(found.Rows(), set)
		},
	})
	cmd.Flags().StringVar(&bot, "bot", "", "the bot: the name of its file")
	cmd.Flags().StringVar(&guild, "guild", "", "the guild's id")
	cmd.Flags().StringVar(&channel, "channel", "", "the channel's id")
	cmd.Flags().StringArrayVar(&pins, "pin", nil, "file with a pinned message of the channel")
	cmd.Flags().StringArrayVar(&parents, "parent-pin", nil, "file with a pinned message of a channel above")
	cmd.Flags().BoolVar(&set, "set", false, "show only what somebody set")
	return cmd
}

// hasDatabase reports whether a home has a database: an existing file, or one on a server.
func (c *program) hasDatabase(dir string) bool {
	at, err := settings.DatabaseIn(c.getenv, dir)
	if err != nil || at.OnServer() {
		return err == nil
	}
	_, err = os.Stat(at.Path)
	return err == nil
}

// storedPins returns the pins that the server last read in a channel. It returns nothing without a home, or if no server ever read
// the channel.
func (c *program) storedPins(ctx context.Context, bot, guild, channel string) []config.Pin {
	var list []config.Pin
	known := false
	if dir, err := settings.HomeDir(c.getenv, c.home); err == nil {
		if c.hasDatabase(dir) {
			err = c.with(ctx, func(a *app.App) error {
				stored, err := settings.PinsAt(ctx, a.Settings, bot, guild, channel)
				if err != nil {
					return err
				}
				list, known = stored.Pins, stored.Known
				for _, note := range stored.Notes {
					c.warn(note)
				}
				return nil
			})
			if err != nil {
				c.warn("the pins could not be read: " + err.Error())
			}
		}
	}
	if !known {
		c.warn("the pins of channel " + channel + " are not known here; try one with --pin FILE")
	}
	return list
}

func orEmpty(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func readPins(parents, pins []string) ([]config.Pin, error) {
	var out []config.Pin
	for i, path := range append(parents, pins...) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the pin: %w", err)
		}
		out = append(out, config.Pin{ID: filepath.Base(path), Text: string(text), Parent: i < len(parents)})
	}
	return out, nil
}

func (c *program) showRows(rows []config.Row, set bool) error {
	w := c.columns()
	fmt.Fprintln(w, "KEY\tVALUE\tFROM")
	for _, r := range rows {
		if !set || r.Layer != config.BuiltIn.String() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", r.Key, r.Shown(), c.nearHere(r.From()))
		}
	}
	return w.Flush()
}

func (c *program) configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the files, for editors", Args: exactly(0),
		Long: `Prints the JSON Schema (draft 2020-12) of a configuration file. Editors use it to complete
keys, describe them and underline mistakes. In VS Code:

  # yaml-language-server: $schema=./chorus.schema.json`,
		Example: "  chorus config schema > chorus.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := c.out().Write(config.Schema())
			return err
		},
	}
}
