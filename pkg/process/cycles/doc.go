// Package cycles holds what plugins keep and return in a scheduling cycle: their state, the terms of a score, and the
// reasons of a rejection, as values.
//
// The plugins, the dry run of gangs, explain and replays call it. It decides nothing.
package cycles
