package message

import "gompi/internal/world"

// Progress polls once, as a test in vain does.
func (e *Engine) Progress() {
	e.progress.Lock()
	defer e.exitPolling()
	e.test(world.None)
}
