package model

import "chorus/internal/model/catalog"

// Handle is a model that can be asked, and what is known about it.
type Handle struct {
	Model Model
	Name  string // the provider's name for it
	Entry catalog.Entry
}
