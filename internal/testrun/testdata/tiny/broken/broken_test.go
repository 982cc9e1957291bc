package broken

import "testing"

func TestAlwaysFails(t *testing.T) { t.Fatal("as always") }

func TestFine(t *testing.T) {}
