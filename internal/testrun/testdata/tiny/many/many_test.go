package many

import (
	"strconv"
	"testing"
)

func TestMany(t *testing.T) {
	for i := range 11 {
		t.Run(strconv.Itoa(i), func(t *testing.T) { t.Error("broken for all") })
	}
}
