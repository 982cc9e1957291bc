// Package apierror says no as Discord's API does: with its codes, and each mistake in a body at its place.
package apierror

type object = map[string]any
