// Package apierror returns errors as Discord's API does: with its codes, and with each mistake in a body at its place.
package apierror

type object = map[string]any
