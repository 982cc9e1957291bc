package hangs

import "testing"

func TestHangs(t *testing.T) {
	t.Parallel()
	<-t.Context().Done()
}
