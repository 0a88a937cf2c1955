package plainfile

// nonBlocking is no flag here, and there are no pipes.
const nonBlocking = 0
