// Package docs holds the guides, tutorials and the comparison, for `chorus docs`. Everything else below this folder is read in the repository.
package docs

import "embed"

// Pages are the documents that are part of the program.
//
//go:embed guides/*.md tutorials/*.md comparison.md
var Pages embed.FS
