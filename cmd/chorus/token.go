package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/command"
	"chorus/internal/service"
	"chorus/internal/transport/http/guard"
	"chorus/internal/usage"
)

func (c *cli) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Tokens for the HTTP API and the web page: create, list, revoke, link", RunE: oneOf,
		Long: `A token opens the HTTP API and the web page. What it opens is said by its scopes:
read (look), chat (talk, steer, stop), approve (answer questions), admin (all of it, and
everybody's sessions). Only a digest is kept, so the token is shown once.

The owner's own token is made by the first chorus serve and lies in the home folder, in
a file that only you can read.`,
		Example: `  chorus token create --name laptop --scopes chat,approve
  chorus token create --name ci --scopes read --expires 720h --json
  chorus token link          a link that signs a browser in, valid once and for 15 minutes
  chorus token revoke laptop`,
	}
	cmd.AddCommand(c.tokenCreate(), c.tokenList(), c.tokenRevoke(), c.tokenLink())
	return c.serverFlags(cmd)
}

func (c *cli) tokenCreate() *cobra.Command {
	var in command.NewToken
	var scopes []string
	cmd := c.jsonFlag(&cobra.Command{
		Use: "create", Short: "Make a token and show it, once", Args: exactly(0),
		Example: "  chorus token create --name laptop --scopes chat,approve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range scopes {
				in.Scopes = append(in.Scopes, command.Scope(strings.ToLower(strings.TrimSpace(s))))
			}
			return c.keys(cmd.Context(), func(keys command.Keys, by command.Caller) error {
				made, err := keys.CreateToken(cmd.Context(), by, in)
				if command.KindOf(err) == command.Invalid {
					return &usage.Error{Err: err}
				}
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(made)
				}
				fmt.Fprintln(c.out(), made.Text)
				c.warn(fmt.Sprintf("token %s (%s) opens %s; it is not shown again", made.Name, made.ID, strings.Join(scopesOf(made), ", ")))
				return nil
			})
		},
	})
	cmd.Flags().StringVar(&in.Name, "name", "", "what you call it")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what it opens: read, chat, approve, admin")
	cmd.Flags().StringSliceVar(&in.Roles, "roles", nil, "roles of whoever shows it, for rules that name roles")
	cmd.Flags().DurationVar(&in.ExpiresIn, "expires", 0, "how long it is valid, for example 720h (default: until it is revoked)")
	return cmd
}

func scopesOf(t command.Token) []string {
	var out []string
	for _, s := range t.Scopes {
		out = append(out, string(s))
	}
	return out
}

func (c *cli) tokenList() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "list", Short: "List the tokens there are, the newest first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.keys(cmd.Context(), func(keys command.Keys, by command.Caller) error {
				list, err := keys.ListTokens(cmd.Context(), by)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(list.Items)
				}
				if len(list.Items) == 0 {
					fmt.Fprintln(c.out(), "there are no tokens; `chorus serve` makes the first one")
					return nil
				}
				w := tabwriter.NewWriter(c.out(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tSCOPES\tMADE\tUSED\tSTATE\tID")
				for _, t := range list.Items {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, strings.Join(scopesOf(t), ","), day(t.CreatedAt), day(t.UsedAt), tokenState(t), t.ID)
				}
				return w.Flush()
			})
		},
	})
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02")
}

func tokenState(t command.Token) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && time.Now().After(t.ExpiresAt):
		return "expired"
	case !t.ExpiresAt.IsZero():
		return "until " + day(t.ExpiresAt)
	}
	return "active"
}

func (c *cli) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME|ID", Short: "Revoke a token; it stops working at once", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.keys(cmd.Context(), func(keys command.Keys, by command.Caller) error {
				if err := keys.RevokeToken(cmd.Context(), by, args[0]); err != nil {
					return err
				}
				fmt.Fprintf(c.out(), "token %s revoked\n", args[0])
				return nil
			})
		},
	}
}

func (c *cli) tokenLink() *cobra.Command {
	url := ""
	cmd := &cobra.Command{
		Use: "link", Short: "Make a link that signs a browser in as the owner", Args: exactly(0),
		Long: "The link is valid once and for 15 minutes. Whoever opens it is signed in as the owner of this home.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				_, token, err := a.Service.Tokens().OwnerToken(cmd.Context())
				if err != nil {
					return err
				}
				key, err := a.Service.SessionKey()
				if err != nil {
					return err
				}
				if url == "" {
					url = "http://" + fromHere(service.DefaultAddr(c.getenv))
				}
				fmt.Fprintln(c.out(), guard.Link(key, url, token.ID, time.Now()))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "where the server is reached (default http://127.0.0.1:8420, or as CHORUS_ADDR says)")
	return cmd
}
