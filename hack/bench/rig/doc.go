// Package rig is what programs that measure share: figures and their table, turns of the contenders, and how busy the
// machine is with other work. hack/bench, its module perf and hack/chaos call it. It knows nothing of what is measured.
package rig
