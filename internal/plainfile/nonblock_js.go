package plainfile

// nonBlocking has no effect: this system has no pipes.
const nonBlocking = 0
