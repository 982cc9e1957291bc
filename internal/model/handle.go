package model

import "chorus/internal/model/catalog"

// Handle is a model that can be asked, and what is known of it.
type Handle struct {
	Model Model
	Name  string // as the provider calls it
	Entry catalog.Entry
}
