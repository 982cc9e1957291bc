// Package provider makes the models that a home can use: which providers there are, with whose keys, what each can and costs.
package provider

import "chorus/internal/datadir"

// Discovery asks providers which models they offer, and keeps their answers in the home.
type Discovery struct {
	Home   *datadir.Home
	Models *Models
}
