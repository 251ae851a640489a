package simulation

import "syscall"

const unusedSignal = syscall.SIGURG
