// Package defragment decides whether pods are moved so that a gang starts sooner than it was told, and follows the
// moves.
//
// Case weighs the GPU time by which the gang starts sooner against the work that the moves lose, which package eviction
// knows. Budget bounds what moves cost in an hour. Moves leads through them, one pod after the other, and ends at the
// first that does not go as planned.
//
// The evictor finds the pods, proves by a dry run that they and the gang fit, and carries out what is decided. This
// package knows no Kubernetes, no clock and no lock.
package defragment
