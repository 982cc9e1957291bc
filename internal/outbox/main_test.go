package outbox

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/store/storetest"
)

// TestMain keeps the model check to a few seconds unless somebody asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		checks := "60"
		if raceDetector { // which makes SQLite ten times slower
			checks = "6"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	if _, err := storetest.Empty(); err != nil { // outside of any bubble
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
