//go:build linux && !amd64 && !arm64

package inside

const (
	auditArch    = 0 // no filter: the numbers of its calls are not known here
	foreignCalls = 0xffffffff
)

var (
	machineCalls []call
	newImage     call
)

// NewImage is the number of no call.
const NewImage = -1
