//go:build !race

package approved

import "time"

// lookAgain is how long a look at what has not changed may take.
const lookAgain = time.Millisecond
