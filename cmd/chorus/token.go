package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/readiness"
	"chorus/internal/app"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/http/guard"
)

func (c *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Manage tokens for the HTTP API and the web page", RunE: onlySubcommands,
		Long: `A token gives access to the HTTP API and the web page. Its scopes say what for: read (look),
chat (talk, steer, stop), approve (answer approvals), admin (everything, including everybody's
sessions). Only a digest is stored, so the token is shown once.

The first chorus serve makes the owner's token and stores it in the home folder, in a file
that only you can read.`,
		Example: `  chorus token create --name laptop --scopes chat,approve
  chorus token create --name ci --scopes read --expires 720h --json
  chorus token link          make a sign-in link, valid once within 15 minutes
  chorus token revoke laptop`,
	}
	cmd.AddCommand(c.tokenLink())
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.CreateToken, func(v cli.View, _ operations.NewToken, made operations.Token) error {
			fmt.Fprintln(v.Out, made.Text)
			_, err := fmt.Fprintf(v.Err, "chorus: token %s (%s) is for %s; it is not shown again\n", made.Name, made.ID, strings.Join(scopesOf(made), ", "))
			return err
		})
		cli.Prepare(commands, operations.CreateToken, func(*cobra.Command) func(context.Context, cli.Connection, *operations.NewToken, []string) error {
			return func(_ context.Context, _ cli.Connection, in *operations.NewToken, _ []string) error {
				for i, s := range in.Scopes {
					in.Scopes[i] = operation.Scope(strings.ToLower(string(s)))
				}
				return nil
			}
		})
		cli.InvalidIsUsage(commands, operations.CreateToken)
		cli.Render(commands, operations.ListTokens, listTokens)
	})
}

func scopesOf(t operations.Token) []string {
	var out []string
	for _, s := range t.Scopes {
		out = append(out, string(s))
	}
	return out
}

func listTokens(v cli.View, _ operation.None, list operation.List[operations.Token]) error {
	t := operation.Table{Head: []string{"NAME", "SCOPES", "CREATED", "USED", "STATE", "ID"}}
	for _, x := range list.Items {
		t.Rows = append(t.Rows, []string{x.Name, strings.Join(scopesOf(x), ","), day(x.CreatedAt), day(x.UsedAt), tokenState(x), x.ID})
	}
	return cli.WriteTable(v, t, operations.ListTokens.Empty)
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02")
}

func tokenState(t operations.Token) string {
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

func (c *program) tokenLink() *cobra.Command {
	url := ""
	cmd := c.jsonFlag(&cobra.Command{
		Use: "link", Short: "Make a link that signs a browser in as the owner", Args: exactly(0),
		Long: `The link works once, within 15 minutes. Whoever opens it is signed in as the owner of this
home. Run this where the home is: on the server's machine.`,
		Example: `  chorus token link
  chorus token link --url https://chorus.example.org`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				_, token, err := a.Service.Tokens().OwnerToken(cmd.Context())
				if err != nil {
					return err
				}
				key, err := a.Service.Tokens().SessionKey()
				if err != nil {
					return err
				}
				url = cmp.Or(url, "http://"+readiness.LocalAddress(defaultAddr(c.getenv)))
				link := guard.Link(key, url, token.ID, time.Now())
				if c.json {
					return c.printJSON(map[string]string{"url": link})
				}
				_, err = fmt.Fprintln(c.out(), link)
				return err
			})
		},
	})
	cmd.Flags().StringVar(&url, "url", "", "address of the server (default http://127.0.0.1:8420, or as CHORUS_ADDR says)")
	return cmd
}
