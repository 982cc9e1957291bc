package digest

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	if Of("abc") != abc || Of([]byte("abc")) != abc {
		t.Errorf("got %s", Of("abc"))
	}
}
