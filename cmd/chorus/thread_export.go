package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/command"
	"chorus/internal/usage"
)

func (c *cli) threadExport() *cobra.Command {
	format, file := "", ""
	cmd := &cobra.Command{
		Use: "export ID", Short: "Write a thread as Markdown or JSON lines, without secrets", Args: exactly(1),
		Example: "  chorus thread export 01k3 --format jsonl --output talk.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			as := command.Format(format)
			switch format {
			case "md":
				as = command.Markdown
			case string(command.Markdown), string(command.JSONLines):
			default:
				return &usage.Error{Err: fmt.Errorf("unknown format %q; there are jsonl and markdown", format)}
			}
			if c.remote() {
				return c.farExport(cmd.Context(), args[0], as, file)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				row, err := a.Service.FindThread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.into(file, func(out io.Writer) error { return a.Service.Export(cmd.Context(), out, row, as) })
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "jsonl, or markdown (md)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write (default: standard output)")
	return cmd
}

// farExport writes a session of a server.
func (c *cli) farExport(ctx context.Context, name string, as command.Format, file string) error {
	return c.at(func(service command.Service) error {
		s, err := farSession(ctx, service, name)
		if err != nil {
			return err
		}
		return c.into(file, func(out io.Writer) error { return service.Export(ctx, command.Caller{}, s.ID, as, out) })
	})
}

// into writes to a file; "": to the standard output.
func (c *cli) into(file string, write func(io.Writer) error) error {
	if file == "" {
		return write(c.out())
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return errors.Join(write(f), f.Close())
}

func (c *cli) threadReplay() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "replay ID", Short: "Rebuild every request from the journal and compare it with what was sent", Args: exactly(1),
		Long: `Rebuilds every request of a thread from its journal alone and compares its digest
with the one recorded when it was sent. Exit code 1 if one differs.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if c.remote() {
				return c.at(func(service command.Service) error {
					s, err := farSession(ctx, service, args[0])
					if err != nil {
						return err
					}
					return c.tellReplay(service.Replay(ctx, command.Caller{}, s.ID))
				})
			}
			return c.with(ctx, func(a *app.App) error {
				row, err := a.Service.FindThread(ctx, args[0])
				if err != nil {
					return err
				}
				return c.tellReplay(a.Service.Replay(ctx, row.ID))
			})
		},
	})
}

// tellReplay shows each request as it comes, and what all of them came to.
func (c *cli) tellReplay(all iter.Seq2[command.Replayed, error]) error {
	tell, end := c.replayLine, func(requests, differ int) error {
		_, err := fmt.Fprintf(c.out(), "%d requests, %d differ\n", requests, differ)
		return err
	}
	if c.json {
		list := &jsonList{w: c.out()}
		tell, end = func(r command.Replayed) error { return list.add(r) }, func(int, int) error { return list.end() }
	}
	requests, differ := 0, 0
	for r, err := range all {
		if err != nil {
			if c.json { // what came is a whole list all the same
				err = errors.Join(err, end(requests, differ))
			}
			return err
		}
		requests++
		if !r.Same {
			differ++
		}
		if err := tell(r); err != nil {
			return err
		}
	}
	err := end(requests, differ)
	if err == nil && differ > 0 {
		err = exitError(1)
	}
	return err
}

func (c *cli) replayLine(r command.Replayed) error {
	word := "same"
	if !r.Same {
		word = "DIFFERS " + r.Why
	}
	_, err := fmt.Fprintf(c.out(), "#%d  step %d attempt %d  %-10s  %.12s  %s\n", r.Seq, r.Step, r.Attempt, r.Purpose, r.Digest, word)
	return err
}

// jsonList writes a list as printJSON would, without holding it.
type jsonList struct {
	w     io.Writer
	begun bool
}

func (l *jsonList) add(v any) error {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("  ", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	before := ",\n  "
	if !l.begun {
		before, l.begun = "[\n  ", true
	}
	_, err := fmt.Fprintf(l.w, "%s%s", before, bytes.TrimRight(data.Bytes(), "\n"))
	return err
}

func (l *jsonList) end() error {
	after := "\n]\n"
	if !l.begun {
		after = "[]\n"
	}
	_, err := io.WriteString(l.w, after)
	return err
}
