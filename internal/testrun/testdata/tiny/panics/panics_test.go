package panics

import "testing"

func TestPanics(t *testing.T) { panic("out of hand") }
