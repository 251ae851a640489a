// Package rig is what all benchmark programs share: a command with its flags, figures and their table, turns of the
// contenders, and how busy the machine is with other work. It knows nothing of Kubernetes. Programs that measure on a
// local control plane use package live besides, programs that replay package replays.
package rig
